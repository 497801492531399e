// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

var _ = Describe("The NetworkPolicy under kubernetes/", func() {
	It("lets in who scrapes, on the ports of the Deployment, and nobody else", func() {
		objects := render("kubernetes/control")
		policy := only[networkingv1.NetworkPolicy](objects, "NetworkPolicy")
		deployment := only[appsv1.Deployment](objects, "Deployment")
		Expect(policy.Namespace).To(Equal(deployment.Namespace))
		Expect(selects(&policy.Spec.PodSelector, deployment.Spec.Template.Labels)).To(BeTrue(), "the policy is about other pods")
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress))

		monitoring, prometheus := namespaceLabels("monitoring"), map[string]string{"app.kubernetes.io/name": "prometheus"}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, port := range container.Ports {
				Expect(letsIn(policy, monitoring, prometheus, port.Name)).To(BeTrue(), "Prometheus on %s", port.Name)
				Expect(letsIn(policy, namespaceLabels("tenant"), prometheus, port.Name)).To(BeFalse(), "a pod with Prometheus' label in another namespace")
				Expect(letsIn(policy, monitoring, nil, port.Name)).To(BeFalse(), "another pod of the namespace")
				Expect(letsIn(policy, namespaceLabels(deployment.Namespace), nil, port.Name)).To(BeFalse(), "a pod of the policy's own namespace")
			}
		}
		Expect(letsIn(policy, monitoring, prometheus, "other")).To(BeFalse(), "another port")
	})
})

// letsIn says whether a policy lets a pod with these labels in on a port.
func letsIn(policy *networkingv1.NetworkPolicy, namespace, pod map[string]string, port string) bool {
	for _, rule := range policy.Spec.Ingress {
		fromPod := len(rule.From) == 0
		for _, peer := range rule.From {
			inNamespace := peer.NamespaceSelector != nil && selects(peer.NamespaceSelector, namespace) ||
				peer.NamespaceSelector == nil && namespace[corev1.LabelMetadataName] == policy.Namespace
			fromPod = fromPod || peer.IPBlock != nil || inNamespace && (peer.PodSelector == nil || selects(peer.PodSelector, pod))
		}
		onPort := len(rule.Ports) == 0
		for _, open := range rule.Ports {
			onPort = onPort || open.Port == nil || open.Port.String() == port
		}
		if fromPod && onPort {
			return true
		}
	}
	return false
}

func namespaceLabels(name string) map[string]string {
	return map[string]string{corev1.LabelMetadataName: name}
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	GinkgoHelper()
	converted, err := metav1.LabelSelectorAsSelector(selector)
	Expect(err).NotTo(HaveOccurred())
	return converted.Matches(labels.Set(set))
}

// only returns the one object of a kind, with the fields that T knows and no other.
func only[T any](objects []*unstructured.Unstructured, kind string) *T {
	GinkgoHelper()
	var found []*T
	for _, object := range objects {
		if object.GetKind() == kind {
			typed := new(T)
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)).To(Succeed())
			found = append(found, typed)
		}
	}
	Expect(found).To(HaveLen(1), "objects of the kind %s", kind)
	return found[0]
}

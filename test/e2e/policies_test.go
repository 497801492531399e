// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
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

var _ = Describe("The admission policies under kubernetes/", func() {
	It("leave Secrets of kube-system and credentials alone in two clusters, whoever has the service accounts' tokens", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithTargetCluster(), localenv.WithoutManager(), localenv.WithoutSidecar()))
		for _, object := range render("kubernetes/target") {
			Expect(c.target.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		Expect(c.applyAll(ctx, render("kubernetes/control"))).To(Succeed())
		c.expectTokensOnly(ctx, serviceAccount{metav1.NamespaceSystem, account})
		c.expectFinalizersOnly(ctx, serviceAccount{c.env.Namespace(), account})
	})

	It("do so in one cluster", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar()))
		// As kubernetes/README.md has it, with the kustomize of kubectl.
		apply := exec.CommandContext(ctx, filepath.Join(root(), "bin", "kubectl"), "apply", "-k", "kubernetes", "--kubeconfig", c.env.KubeconfigPath())
		apply.Dir = root()
		output, err := apply.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		c.expectTokensOnly(ctx, serviceAccount{c.env.Namespace(), account})
		c.expectFinalizersOnly(ctx, serviceAccount{c.env.Namespace(), account})
	})
})

// expectTokensOnly tries, as a service account, what leads from Secrets of kube-system to
// the whole target cluster, and then what the manager does.
func (c *cluster) expectTokensOnly(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may write only Secrets of the type bootstrap.kubernetes.io/token here"
	// RBAC does not grant to update; the policy holds where somebody has granted it.
	user.grant(ctx, c.target, metav1.NamespaceSystem, "update")
	user.awaitRights(ctx, c.target, slices.Concat(targetRights,
		[]authorizationv1.ResourceAttributes{{Resource: "secrets", Verb: "update", Namespace: metav1.NamespaceSystem}}))
	thief := user.client(ctx, c.target, c.env.TargetRESTConfig())
	theft := secretIn(metav1.NamespaceSystem, "theft", corev1.SecretTypeServiceAccountToken)
	theft.Annotations = map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"}
	awaitRefusal(ctx, refusal, func(ctx context.Context) error { return thief.Create(ctx, theft.DeepCopy(), client.DryRunAll) })

	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeOpaque} {
		created := secretIn(metav1.NamespaceSystem, "created", kind)
		created.Annotations = theft.Annotations
		Expect(thief.Create(ctx, created)).To(MatchError(ContainSubstring(refusal)), "creating one of the type %s", kind)
	}
	Expect(apierrors.IsNotFound(thief.Get(ctx, client.ObjectKeyFromObject(theft), &corev1.Secret{}))).To(BeTrue(), "there is something to read")
	others := secretIn(metav1.NamespaceSystem, "others", corev1.SecretTypeOpaque)
	Expect(c.target.Create(ctx, others)).To(Succeed())
	Expect(thief.Delete(ctx, others)).To(MatchError(ContainSubstring(refusal)))
	others.Data["key"] = []byte("another")
	Expect(thief.Update(ctx, others)).To(MatchError(ContainSubstring(refusal)))
	Expect(c.target.Get(ctx, client.ObjectKeyFromObject(others), others)).To(Succeed())
	Expect(others.Data).To(HaveKeyWithValue("key", BeEquivalentTo("value")))

	token := secretIn(metav1.NamespaceSystem, "bootstrap-token-abcdef", corev1.SecretTypeBootstrapToken)
	Expect(thief.Create(ctx, token)).To(Succeed())
	Expect(thief.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
	Expect(thief.Delete(ctx, token)).To(Succeed())
}

// expectFinalizersOnly tries, as a service account, to change what a Secret in the
// Machines' namespace says, and then what the manager changes.
func (c *cluster) expectFinalizersOnly(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may change only the finalizers of a Secret"
	user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
	thief := user.client(ctx, c.Client, c.env.RESTConfig())
	credentials := secretIn(c.env.Namespace(), "credentials", corev1.SecretTypeOpaque)
	Expect(c.Create(ctx, credentials)).To(Succeed())
	changes := map[string]func(*corev1.Secret){
		"its data":            func(s *corev1.Secret) { s.Data["key"] = []byte("another") },
		"to more data":        func(s *corev1.Secret) { s.StringData = map[string]string{"more": "data"} },
		"to no data":          func(s *corev1.Secret) { s.Data = nil },
		"its labels":          func(s *corev1.Secret) { s.Labels = map[string]string{"a": "label"} },
		"its annotations":     func(s *corev1.Secret) { s.Annotations = map[string]string{"an": "annotation"} },
		"to an immutable one": func(s *corev1.Secret) { s.Immutable = ptr.To(true) },
		"its owner": func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
		},
	}
	awaitRefusal(ctx, refusal, func(ctx context.Context) error {
		changed := credentials.DeepCopy()
		changed.Data = nil
		return thief.Update(ctx, changed, client.DryRunAll)
	})
	for name, change := range changes {
		changed := credentials.DeepCopy()
		change(changed)
		Expect(thief.Update(ctx, changed)).To(MatchError(ContainSubstring(refusal)), "changing %s", name)
	}
	for _, finalizers := range [][]string{{"machine.sapcloud.io/machine-controller"}, nil} {
		credentials.Finalizers = finalizers
		Expect(thief.Update(ctx, credentials)).To(Succeed())
	}
	Expect(credentials.Data).To(HaveKeyWithValue("key", BeEquivalentTo("value")))
}

// awaitRefusal returns when the API server has taken note of a policy.
func awaitRefusal(ctx context.Context, refusal string, try func(context.Context) error) {
	GinkgoHelper()
	Eventually(ctx, try).WithPolling(poll / 10).WithTimeout(upTimeout).Should(MatchError(ContainSubstring(refusal)))
}

func secretIn(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       kind,
		Data:       map[string][]byte{"key": []byte("value")},
	}
}

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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectPolicies tries, with the rights of the pod, what the policies under kubernetes/ refuse, and leaves nothing.
func (c *cluster) expectPolicies(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	c.expectTokensOnly(ctx, user)
	c.expectFinalizersOnly(ctx, user)
	c.expectClassStays(ctx, user)
	c.expectInUseStays(ctx)
	c.expectLargeObjectsGo(ctx, user)
	c.expectNoTokenInSecrets(ctx)
	c.expectMachinesOfUsableNames(ctx)
	c.expectForeignNodesStay(ctx, user)
	for _, object := range []client.Object{&v1alpha1.Machine{}, &v1alpha1.MachineClass{}, &corev1.Secret{}} {
		Expect(c.DeleteAllOf(ctx, object, client.InNamespace(c.env.Namespace()))).To(Succeed())
	}
	Expect(c.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
}

// overlay writes the overlay of kubernetes/README.md beside a copy of the manifests, and returns its
// folder.
func overlay() string {
	GinkgoHelper()
	folder := filepath.Join(filepath.Dir(copyOfManifests()), "overlay")
	page := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section("With GitOps"))
	Expect(page).To(HaveLen(2))
	content := regexp.MustCompile(`https://\S+//kubernetes\?ref=\S+`).ReplaceAllString(page[1], "../kubernetes")
	content = strings.NewReplacer("<registry>/<image>", "registry/"+account+"-provider-stackit", "<tag>", "tag").
		Replace(content)
	Expect(os.Mkdir(folder, 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(content), 0o600)).To(Succeed())
	return folder
}

// expectClosed expects that Prometheus alone reaches the ports that the pod serves, that the pod reaches DNS, STACKIT
// and API servers only, and that no pod gets a token without asking for it.
func expectClosed(objects []*unstructured.Unstructured) {
	GinkgoHelper()
	pods, policy := only[appsv1.Deployment](objects, "Deployment").Spec.Template, &networkingv1.NetworkPolicy{}
	for _, object := range objects {
		if object.GetKind() == "NetworkPolicy" && object.GetName() == account {
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy)).To(Succeed())
		}
		if object.GetKind() == "ServiceAccount" {
			Expect(object.Object).To(HaveKeyWithValue("automountServiceAccountToken", false))
		}
	}
	Expect(metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)).To(
		Satisfy(func(selector labels.Selector) bool { return selector.Matches(labels.Set(pods.Labels)) }))
	Expect(policy.Spec.Ingress).To(HaveExactElements(HaveField("From",
		HaveExactElements(And(HaveField("NamespaceSelector", Not(BeNil())), HaveField("PodSelector", Not(BeNil())))))))
	var open, served, out []string
	for _, port := range policy.Spec.Ingress[0].Ports {
		open = append(open, port.Port.String())
	}
	for _, container := range pods.Spec.Containers {
		for _, port := range container.Ports {
			served = append(served, port.Name)
		}
	}
	Expect(open).To(ConsistOf(served))
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			out = append(out, fmt.Sprintf("%s %s", *port.Protocol, port.Port))
		}
	}
	Expect(out).To(ConsistOf("UDP 53", "TCP 53", "UDP 8053", "TCP 8053", "TCP 443", "TCP 6443"))
}

// expectNoTokenInSecrets tries to have the token of the pod's service account written into a Secret.
func (c *cluster) expectNoTokenInSecrets(ctx SpecContext) {
	GinkgoHelper()
	const refusal = "no Secret may have the token of the service account machine-controller-manager"
	theft := secretIn(c.env.Namespace(), "steal", corev1.SecretTypeServiceAccountToken)
	theft.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	awaitRefusal(ctx, refusal,
		func(ctx context.Context) error { return c.Create(ctx, theft.DeepCopy(), client.DryRunAll) })
	theft.Annotations[corev1.ServiceAccountNameKey] = "default"
	Expect(c.Create(ctx, theft)).To(Succeed())
	theft.Annotations[corev1.ServiceAccountNameKey] = account
	Expect(c.Update(ctx, theft)).To(MatchError(ContainSubstring(refusal)))
}

// expectMachinesOfUsableNames tries to end the sidecar by a short name, and to fill its log.
func (c *cluster) expectMachinesOfUsableNames(ctx SpecContext) {
	GinkgoHelper()
	const refusal = "must have at most 1,024 characters"
	awaitRefusal(ctx, "must have at least 5 characters", func(ctx context.Context) error {
		return c.Create(ctx, c.newMachine("m-k2", "none"), client.DryRunAll)
	})
	long := c.newMachine("worker", "none")
	long.Spec.ProviderID = "stackit://" + strings.Repeat("x", 1024)
	Expect(c.Create(ctx, long.DeepCopy())).To(MatchError(ContainSubstring(refusal)))
	Expect(c.Create(ctx, c.newMachine("worker", "none"))).To(Succeed())
	Expect(c.Get(ctx, client.ObjectKeyFromObject(long), long)).To(Succeed())
	long.Spec.ProviderID = "stackit://" + strings.Repeat("x", 1024)
	Expect(c.Update(ctx, long)).To(MatchError(ContainSubstring(refusal)))
}

// expectForeignNodesStay tries, as the manager's service account, to change Nodes that are none of its Machines'.
func (c *cluster) expectForeignNodesStay(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may change only Nodes of STACKIT's servers that are not of the control plane"
	manager := user.client(ctx, c.Client, c.env.RESTConfig())
	node := func(name, providerID string, labels map[string]string) *corev1.Node {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: corev1.NodeSpec{ProviderID: providerID}}
		Expect(c.Create(ctx, made)).To(Succeed())
		return made
	}
	foreign := node("foreign", "aws:///eu-west-1a/i-1", nil)
	awaitRefusal(ctx, refusal,
		func(ctx context.Context) error { return manager.Delete(ctx, foreign.DeepCopy(), client.DryRunAll) })
	for _, other := range []*corev1.Node{
		foreign, node("control-plane", "stackit://p/s", map[string]string{"node-role.kubernetes.io/control-plane": ""}),
	} {
		Expect(manager.Delete(ctx, other)).To(MatchError(ContainSubstring(refusal)))
		other.Spec.Unschedulable = true
		Expect(manager.Update(ctx, other)).To(MatchError(ContainSubstring(refusal)))
		Expect(manager.Status().Update(ctx, other)).To(MatchError(ContainSubstring(refusal)))
	}
	for _, own := range []*corev1.Node{node("new", "", nil), node("own", "stackit://p/s", nil),
		node("old", "openstack:///eu01/s", nil)} {
		own.Spec.Unschedulable = true
		Expect(manager.Update(ctx, own)).To(Succeed())
		Expect(manager.Delete(ctx, own)).To(Succeed())
	}
}

// expectTokensOnly tries, as a service account, what leads from Secrets of kube-system to
// the whole target cluster, and then what the manager does.
func (c *cluster) expectTokensOnly(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	target := c.target
	const refusal, malformed = "may write only Secrets of the type bootstrap.kubernetes.io/token here",
		"must have 6 and its token-secret 16"
	// RBAC does not grant to update; the policy holds where somebody has granted it.
	defer user.grant(ctx, target, metav1.NamespaceSystem, "update")()
	user.awaitRights(ctx, target, slices.Concat(targetRights,
		[]authorizationv1.ResourceAttributes{{Resource: "secrets", Verb: "update", Namespace: metav1.NamespaceSystem}}))
	thief := user.client(ctx, target, c.env.TargetRESTConfig())
	theft := secretIn(metav1.NamespaceSystem, "theft", corev1.SecretTypeServiceAccountToken)
	theft.Annotations = map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"}
	awaitRefusal(ctx, refusal,
		func(ctx context.Context) error { return thief.Create(ctx, theft.DeepCopy(), client.DryRunAll) })
	Expect(thief.Create(ctx, secretIn(metav1.NamespaceSystem, "created", corev1.SecretTypeOpaque))).
		To(MatchError(ContainSubstring(refusal)))
	others := secretIn(metav1.NamespaceSystem, "others", corev1.SecretTypeOpaque)
	Expect(target.Create(ctx, others)).To(Succeed())
	Expect(thief.Delete(ctx, others)).To(MatchError(ContainSubstring(refusal)))
	others.Data["key"] = []byte("another")
	Expect(thief.Update(ctx, others)).To(MatchError(ContainSubstring(refusal)))

	token := secretIn(metav1.NamespaceSystem, "bootstrap-token-abcdef", corev1.SecretTypeBootstrapToken)
	for _, wrong := range []map[string][]byte{
		tokenData("abcdef", ""), tokenData("abcdef", "0123456789abcdeZ"), tokenData("abcdef", "0123456789abcdef0"),
		tokenData("abcdef", "0123456789abcdef\nruncmd:\n- evil"), tokenData("", "0123456789abcdef"),
		tokenData("abc\n:f", "0123456789abcdef"), tokenData("abcdef", strings.Repeat("a", largeSecret)),
	} {
		token.Data = wrong
		Expect(thief.Create(ctx, token.DeepCopy())).To(MatchError(ContainSubstring(malformed)))
	}
	large := token.DeepCopy()
	Expect(target.Create(ctx, large)).To(Succeed())
	Expect(thief.Delete(ctx, large)).To(Succeed(), "a large one of somebody else's")
	token.Data = tokenData("09az5m", "ghijklmnopqrstuv")
	Expect(thief.Create(ctx, token)).To(Succeed())
	Expect(thief.Delete(ctx, token)).To(Succeed())
}

// expectFinalizersOnly tries, as a service account, to change what a Secret in the
// Machines' namespace says, and then what the manager changes.
func (c *cluster) expectFinalizersOnly(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may change only the finalizers of a Secret"
	user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
	thief := user.client(ctx, c.Client, c.env.RESTConfig())
	credentials := secretIn(c.env.Namespace(), secretName, corev1.SecretTypeOpaque)
	Expect(c.Create(ctx, credentials)).To(Succeed())
	for name, change := range map[string]func(*corev1.Secret){
		"its data":    func(s *corev1.Secret) { s.Data["key"] = []byte("another") },
		"to no data":  func(s *corev1.Secret) { s.Data = nil },
		"its labels":  func(s *corev1.Secret) { s.Labels = map[string]string{"a": "label"} },
		"annotations": func(s *corev1.Secret) { s.Annotations = map[string]string{"an": "annotation"} },
	} {
		changed := credentials.DeepCopy()
		change(changed)
		awaitRefusal(ctx, refusal,
			func(ctx context.Context) error { return thief.Update(ctx, changed.DeepCopy(), client.DryRunAll) }, name)
	}
	for _, finalizers := range [][]string{{secretFinalizer}, nil} {
		credentials.Finalizers = finalizers
		Expect(thief.Update(ctx, credentials)).To(Succeed())
	}
	Expect(credentials.Data).To(HaveKeyWithValue("key", BeEquivalentTo("value")))
}

// expectClassStays tries, as a service account, to change what the machines of a MachineClass
// boot with, and then what the manager changes.
func (c *cluster) expectClassStays(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may change only the finalizers and the nodeTemplate of a MachineClass"
	thief := user.client(ctx, c.Client, c.env.RESTConfig())
	// What the manager's types leave out or write otherwise.
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass",
		"metadata":     map[string]any{"name": "odd", "namespace": c.env.Namespace(), "labels": map[string]any{}},
		"provider":     "",
		"secretRef":    map[string]any{"name": "credentials", "namespace": ""},
		"providerSpec": map[string]any{"imageId": "image", "size": int64(20), "share": 0.5, "none": nil},
		"nodeTemplate": map[string]any{"instanceType": "small", "region": "eu01", "zone": "eu01-1",
			"capacity": map[string]any{"cpu": "1000m", "memory": "1024Mi"}},
	}}
	Expect(c.Create(ctx, stored)).To(Succeed())
	class := &v1alpha1.MachineClass{}
	Expect(thief.Get(ctx, client.ObjectKeyFromObject(stored), class)).To(Succeed())
	for name, change := range map[string]func(*v1alpha1.MachineClass){
		"userData": func(m *v1alpha1.MachineClass) {
			m.ProviderSpec.Raw = []byte(`{"imageId":"image","userData":"mine"}`)
		},
		"provider":           func(m *v1alpha1.MachineClass) { m.Provider = "another" },
		"Secret":             func(m *v1alpha1.MachineClass) { m.SecretRef.Name = "another" },
		"Secret's namespace": func(m *v1alpha1.MachineClass) { m.SecretRef.Namespace = metav1.NamespaceSystem },
		"credentials": func(m *v1alpha1.MachineClass) {
			m.CredentialsSecretRef = &corev1.SecretReference{Name: "another"}
		},
		"labels": func(m *v1alpha1.MachineClass) { m.Labels = map[string]string{"a": "label"} },
	} {
		changed := class.DeepCopy()
		change(changed)
		awaitRefusal(ctx, refusal,
			func(ctx context.Context) error { return thief.Update(ctx, changed.DeepCopy(), client.DryRunAll) }, name)
	}
	for _, finalizers := range [][]string{{classFinalizer}, nil} {
		class.Finalizers = finalizers
		Expect(thief.Update(ctx, class)).To(Succeed())
	}
}

// The manager's finalizers say that a MachineClass has Machines, and a Secret a MachineClass.
const (
	classFinalizer  = "machine.sapcloud.io/machine-controller-manager"
	secretFinalizer = "machine.sapcloud.io/machine-controller"
)

// awaitRefusal returns when the API server has taken note of a policy.
func awaitRefusal(ctx context.Context, refusal string, try func(context.Context) error, description ...any) {
	GinkgoHelper()
	Eventually(ctx, try).WithPolling(poll/10).WithTimeout(upTimeout).
		Should(MatchError(ContainSubstring(refusal)), description...)
}

func tokenData(id, secret string) map[string][]byte {
	return map[string][]byte{"token-id": []byte(id), "token-secret": []byte(secret)}
}

func secretIn(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       kind,
		Data:       map[string][]byte{"key": []byte("value")},
	}
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

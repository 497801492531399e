// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("The manifests under kubernetes/", short, func() {
	It("let in who scrapes, let out to STACKIT and API servers, and give no token to who does not ask", func() {
		control := render("kubernetes/control")
		policy := only[networkingv1.NetworkPolicy](control, "NetworkPolicy")
		deployment := only[appsv1.Deployment](control, "Deployment")
		pods := deployment.Spec.Template
		Expect(policy.Namespace).To(Equal(deployment.Namespace))
		Expect(policy.Spec.PodSelector.MatchExpressions).To(BeEmpty())
		for key, value := range policy.Spec.PodSelector.MatchLabels {
			Expect(pods.Labels).To(HaveKeyWithValue(key, value), "the policy is about other pods")
		}
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))

		// Of one peer both must hold: Prometheus' label in another namespace, or its namespace alone, is nobody.
		matching := func(key, value string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		}
		ports := map[string]bool{}
		Expect(policy.Spec.Ingress).To(HaveLen(1))
		Expect(policy.Spec.Ingress[0].From).To(Equal([]networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: matching(corev1.LabelMetadataName, "monitoring"),
			PodSelector:       matching("app.kubernetes.io/name", "prometheus"),
		}}))
		for _, open := range policy.Spec.Ingress[0].Ports {
			ports[open.Port.String()] = true
		}
		for _, container := range pods.Spec.Containers {
			for _, port := range container.Ports {
				Expect(ports).To(HaveKey(port.Name))
				delete(ports, port.Name)
			}
		}
		Expect(ports).To(BeEmpty(), "other ports")

		out := map[string]bool{}
		for _, rule := range policy.Spec.Egress {
			Expect(rule.To).To(BeEmpty(), "addresses of the cloud change")
			Expect(rule.Ports).NotTo(BeEmpty(), "any port would do")
			for _, open := range rule.Ports {
				Expect(open.EndPort).To(BeNil())
				out[fmt.Sprintf("%s %s", *open.Protocol, open.Port)] = true
			}
		}
		Expect(out).To(And(HaveLen(6), HaveKey("UDP 53"), HaveKey("TCP 53"), HaveKey("UDP 8053"), HaveKey("TCP 8053"),
			HaveKey("TCP 443"), HaveKey("TCP 6443")))

		for _, objects := range [][]*unstructured.Unstructured{control, render("kubernetes/target")} {
			Expect(only[corev1.ServiceAccount](objects, "ServiceAccount").AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		}
		Expect(pods.Spec.AutomountServiceAccountToken).To(HaveValue(BeTrue()))
	})

	It("take the overlay of README.md, "+
		"which has another namespace, image, Prometheus and number of pods", func(ctx SpecContext) {
		for base, components := range map[string][]string{
			"kubernetes": nil, "kubernetes/control": {"kubernetes/token-renewal/control"},
		} {
			page := kustomize(ctx, overlay(base, components, func(page string) string { return page }))
			bare := kustomize(ctx, overlay(base, components, func(page string) string {
				page, _, _ = strings.Cut(page, "\nimages:")
				return page + "\n"
			}))
			expectMoved(bare, page)
			deployment := only[appsv1.Deployment](page, "Deployment")
			Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
			Expect(deployment.Spec.Template.Spec.Containers[1].Image).To(Equal("<registry>/<image>:<tag>"))
		}

		By("namespace: instead of the patches")
		refused := exec.CommandContext(ctx, built("bin/kubectl"), "kustomize",
			overlay("kubernetes", nil, func(page string) string {
				page, _, _ = strings.Cut(page, "\nimages:")
				return page + "\nnamespace: machines\n"
			}))
		output, err := refused.CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(output)).To(ContainSubstring("namespace transformation produces ID conflict"))
	})

	It("leave Secrets and classes alone in one cluster and in two, whoever has a token", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithTargetCluster(),
			localenv.WithoutManager(), localenv.WithoutSidecar()))
		user := serviceAccount{c.env.Namespace(), account}
		By("two clusters: what the target grants")
		for _, object := range render("kubernetes/target") {
			Expect(c.target.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		expectTokensOnly(ctx, c.target, c.env.TargetRESTConfig(), serviceAccount{metav1.NamespaceSystem, account})

		By("one cluster, which has control/, too: by the overlay of kubernetes/README.md, with the kustomize of kubectl")
		folder := overlay("kubernetes", nil, func(page string) string { return page })
		output, err := exec.CommandContext(ctx, built("bin/kubectl"), "apply", "-k", folder,
			"--kubeconfig", c.env.KubeconfigPath()).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		expectTokensOnly(ctx, c.Client, c.env.RESTConfig(), user)
		c.expectFinalizersOnly(ctx, user)
		c.expectClassStays(ctx, user)
		c.expectClassInUseStays(ctx)
		c.expectSecretInUseStays(ctx)
		c.expectLargeClassesGo(ctx, user)
		c.expectLargeSecretsGo(ctx, user)
		c.expectNoTokenInSecrets(ctx)
		c.expectMachinesOfUsableNames(ctx)
		c.expectForeignNodesStay(ctx, user)
	})
})

// overlay writes the overlay of kubernetes/README.md over a copy of the manifests, after a change, and returns its
// folder.
func overlay(base string, components []string, change func(page string) string) string {
	GinkgoHelper()
	folder := filepath.Join(filepath.Dir(copyOfManifests()), "overlay")
	page := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section("With GitOps"))
	Expect(page).To(HaveLen(2))
	remote := regexp.MustCompile(`https://\S+//kubernetes\?ref=\S+`)
	Expect(remote.FindAllString(page[1], -1)).To(HaveLen(1))
	content := change(remote.ReplaceAllString(page[1], "../"+base))
	for i, component := range components {
		if i == 0 {
			content += "components:\n"
		}
		content += "  - ../" + component + "\n"
	}
	Expect(os.Mkdir(folder, 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(content), 0o600)).To(Succeed())
	return folder
}

// kustomize builds a folder with the kustomize of kubectl.
func kustomize(ctx context.Context, folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, built("bin/kubectl"), "kustomize", folder).Output()
	Expect(err).NotTo(HaveOccurred())
	objects, err := localenv.ParseManifests(output)
	Expect(err).NotTo(HaveOccurred())
	return objects
}

// expectMoved compares objects with those in the namespace default: all are in the namespace machines but for those
// of kube-system and those of no namespace, bindings follow, and policies are as they were.
func expectMoved(from, to []*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(to).To(HaveLen(len(from)))
	moved := map[string]*unstructured.Unstructured{}
	for _, object := range to {
		moved[object.GetKind()+" "+object.GetName()+" "+object.GetNamespace()] = object
	}
	for _, object := range from {
		namespace, kind := "machines", object.GetKind()
		switch {
		case strings.HasPrefix(kind, "Cluster"), strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
			namespace = ""
		case object.GetNamespace() == metav1.NamespaceSystem:
			namespace = metav1.NamespaceSystem
		}
		key := kind + " " + object.GetName() + " " + namespace
		Expect(moved).To(HaveKey(key))
		if strings.HasPrefix(kind, "ValidatingAdmissionPolicy") {
			Expect(moved[key]).To(Equal(object))
		}
		if strings.HasSuffix(kind, "RoleBinding") {
			Expect(moved[key].Object["subjects"]).To(HaveExactElements(HaveKeyWithValue("namespace", "machines")), key)
		}
	}
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
	machine := func(name, providerID string) *v1alpha1.Machine {
		made := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name}}
		made.Spec.ProviderID = providerID
		return made
	}
	awaitRefusal(ctx, "must have at least 5 characters", func(ctx context.Context) error {
		return c.Create(ctx, machine("m-k2", ""), client.DryRunAll)
	})
	long := machine("worker", "stackit://"+strings.Repeat("x", 1024))
	Expect(c.Create(ctx, long)).To(MatchError(ContainSubstring("must have at most 1,024 characters")))
	long.Spec.ProviderID = ""
	Expect(c.Create(ctx, long)).To(Succeed())
	long.Spec.ProviderID = "stackit://" + strings.Repeat("x", 1024)
	Expect(c.Update(ctx, long)).To(MatchError(ContainSubstring("must have at most 1,024 characters")))
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
// the whole target cluster, which config reaches, and then what the manager does.
func expectTokensOnly(ctx SpecContext, target client.Client, config *rest.Config, user serviceAccount) {
	GinkgoHelper()
	const refusal = "may write only Secrets of the type bootstrap.kubernetes.io/token here"
	// RBAC does not grant to update; the policy holds where somebody has granted it.
	user.grant(ctx, target, metav1.NamespaceSystem, "update")
	user.awaitRights(ctx, target, slices.Concat(targetRights,
		[]authorizationv1.ResourceAttributes{{Resource: "secrets", Verb: "update", Namespace: metav1.NamespaceSystem}}))
	thief := user.client(ctx, target, config)
	theft := secretIn(metav1.NamespaceSystem, "theft", corev1.SecretTypeServiceAccountToken)
	theft.Annotations = map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"}
	awaitRefusal(ctx, refusal,
		func(ctx context.Context) error { return thief.Create(ctx, theft.DeepCopy(), client.DryRunAll) })

	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeOpaque} {
		created := secretIn(metav1.NamespaceSystem, "created", kind)
		created.Annotations = theft.Annotations
		Expect(thief.Create(ctx, created)).To(MatchError(ContainSubstring(refusal)), "creating one of the type %s", kind)
	}
	Expect(apierrors.IsNotFound(thief.Get(ctx, client.ObjectKeyFromObject(theft), &corev1.Secret{}))).
		To(BeTrue(), "there is something to read")
	others := secretIn(metav1.NamespaceSystem, "others", corev1.SecretTypeOpaque)
	Expect(target.Create(ctx, others)).To(Succeed())
	Expect(thief.Delete(ctx, others)).To(MatchError(ContainSubstring(refusal)))
	others.Data["key"] = []byte("another")
	Expect(thief.Update(ctx, others)).To(MatchError(ContainSubstring(refusal)))
	Expect(target.Get(ctx, client.ObjectKeyFromObject(others), others)).To(Succeed())
	Expect(others.Data).To(HaveKeyWithValue("key", BeEquivalentTo("value")))

	token := secretIn(metav1.NamespaceSystem, "bootstrap-token-abcdef", corev1.SecretTypeBootstrapToken)
	for _, secret := range []string{
		"", "short", "0123456789abcde\n", "a\nruncmd: [evil]", "0123456789abcdeZ", "0123456789abcdef0",
		"0123456789abcdef\n", "0123456789abcdef\n#", "0123456789abcdef\nruncmd:\n- evil",
	} {
		token.Data = tokenData("abcdef", secret)
		Expect(thief.Create(ctx, token.DeepCopy())).To(MatchError(ContainSubstring("must have 6 and its token-secret 16")),
			"%q", secret)
	}
	for _, id := range []string{"", "abcde", "abcd\n", "abc\n:f", "abcdef0", "abcdef\n#!"} {
		token.Data = tokenData(id, "0123456789abcdef")
		Expect(thief.Create(ctx, token.DeepCopy())).To(MatchError(ContainSubstring("must have 6 and its token-secret 16")),
			"%q", id)
	}
	for _, data := range []map[string][]byte{
		tokenData("abcdef", strings.Repeat("a", largeSecret)),
		tokenData(strings.Repeat("a", largeSecret), "0123456789abcdef"),
	} {
		token.Data = data
		Expect(thief.Create(ctx, token.DeepCopy())).To(MatchError(ContainSubstring("must have 6 and its token-secret 16")),
			"a large one")
		large := token.DeepCopy()
		Expect(target.Create(ctx, large)).To(Succeed())
		Expect(thief.Delete(ctx, large)).To(Succeed(), "a large one of somebody else's")
	}
	for _, secret := range []string{"0123456789abcdef", "ghijklmnopqrstuv", "wxyz0000zzzz9999"} {
		token.Data = tokenData("09az5m", secret)
		Expect(thief.Create(ctx, token.DeepCopy(), client.DryRunAll)).To(Succeed())
	}
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
	user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
	thief := user.client(ctx, c.Client, c.env.RESTConfig())
	// What the manager's types leave out or write otherwise.
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass",
		"metadata": map[string]any{"name": "odd", "namespace": c.env.Namespace(),
			"labels": map[string]any{}, "annotations": map[string]any{"an": "annotation"}},
		"provider":  "",
		"secretRef": map[string]any{"name": "credentials", "namespace": ""},
		"providerSpec": map[string]any{"imageId": "image", "size": int64(20), "share": 0.5, "none": nil,
			"empty": map[string]any{}},
		"nodeTemplate": map[string]any{"instanceType": "small", "region": "eu01", "zone": "eu01-1", "unknown": "field",
			"capacity": map[string]any{"cpu": "1000m", "memory": "1024Mi"}},
	}}
	Expect(c.Create(ctx, stored)).To(Succeed())
	class := &v1alpha1.MachineClass{}
	Expect(thief.Get(ctx, client.ObjectKeyFromObject(stored), class)).To(Succeed())
	changes := map[string]func(*v1alpha1.MachineClass){
		"userData": func(m *v1alpha1.MachineClass) {
			m.ProviderSpec.Raw = []byte(`{"imageId":"image","userData":"mine"}`)
		},
		"image":              func(m *v1alpha1.MachineClass) { m.ProviderSpec.Raw = []byte(`{"imageId":"mine"}`) },
		"provider":           func(m *v1alpha1.MachineClass) { m.Provider = "another" },
		"Secret":             func(m *v1alpha1.MachineClass) { m.SecretRef.Name = "another" },
		"Secret's namespace": func(m *v1alpha1.MachineClass) { m.SecretRef.Namespace = metav1.NamespaceSystem },
		"Secret, to none":    func(m *v1alpha1.MachineClass) { m.SecretRef = nil },
		"credentials": func(m *v1alpha1.MachineClass) {
			m.CredentialsSecretRef = &corev1.SecretReference{Name: "another"}
		},
		"credentials' namespace": func(m *v1alpha1.MachineClass) {
			m.CredentialsSecretRef = &corev1.SecretReference{Namespace: "another"}
		},
		"labels":      func(m *v1alpha1.MachineClass) { m.Labels = map[string]string{"a": "label"} },
		"annotations": func(m *v1alpha1.MachineClass) { m.Annotations = nil },
		"owner": func(m *v1alpha1.MachineClass) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
		},
	}
	awaitRefusal(ctx, refusal, func(ctx context.Context) error {
		changed := class.DeepCopy()
		changed.ProviderSpec.Raw = []byte("{}")
		return thief.Update(ctx, changed, client.DryRunAll)
	})
	for name, change := range changes {
		changed := class.DeepCopy()
		change(changed)
		Expect(thief.Update(ctx, changed)).To(MatchError(ContainSubstring(refusal)), "changing the %s", name)
	}
	for _, finalizers := range [][]string{{classFinalizer}, nil} {
		class.Finalizers = finalizers
		Expect(thief.Update(ctx, class)).To(Succeed())
	}
	Expect(c.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	Expect(stored.Object["nodeTemplate"]).
		NotTo(HaveKey("unknown"), "the manager's types know it: compare the nodeTemplate, too")
}

// The manager's finalizers say that a MachineClass has Machines, and a Secret a MachineClass.
const (
	classFinalizer  = "machine.sapcloud.io/machine-controller-manager"
	secretFinalizer = "machine.sapcloud.io/machine-controller"
)

// expectClassInUseStays tries, as an administrator, to change by what servers of a
// MachineClass with Machines are found.
func (c *cluster) expectClassInUseStays(ctx SpecContext) {
	GinkgoHelper()
	const region, cluster = "providerSpec.region must stay", "that ends in /cluster must stay"
	const stackit, openstack = "stackit", "openstack"
	for i, row := range []struct {
		name, before, after, wasProvider, isProvider string
		// refused is "" if the change is allowed.
		refused string
	}{
		{"another region", `{"region":"eu01"}`, `{"region":"eu02"}`, stackit, stackit, region},
		{"another region, without a provider", `{"region":"eu01"}`, `{"region":"eu02"}`, "", "", region},
		{"another region, and a provider", `{"region":"eu01"}`, `{"region":"eu02"}`, "", stackit, region},
		{"the Secret's region", `{"region":"eu01"}`, `{}`, stackit, stackit, region},
		{"no longer the Secret's region", `{}`, `{"region":"eu02"}`, stackit, stackit, region},
		{"another cluster", `{"labels":{"a/cluster":"x"}}`, `{"labels":{"a/cluster":"y"}}`, stackit, stackit, cluster},
		{"another cluster's key", `{"labels":{"a/cluster":"x"}}`, `{"labels":{"b/cluster":"x"}}`, stackit, stackit, cluster},
		{"a second cluster", `{"labels":{"a/cluster":"x"}}`, `{"labels":{"a/cluster":"x","b/cluster":"x"}}`, stackit, stackit,
			cluster},
		{"no cluster", `{"labels":{"a/cluster":"x","c":"d"}}`, `{"labels":{"c":"d"}}`, stackit, stackit, cluster},
		{"no labels", `{"labels":{"a/cluster":"x"}}`, `{"labels":null}`, stackit, stackit, cluster},
		{"a wrong cluster", `{"labels":{"a/cluster":"x"}}`, `{"labels":{"a/cluster":7}}`, stackit, stackit, cluster},

		{"the first cluster", `{"labels":{"c":"d"}}`, `{"labels":{"a/cluster":"x","c":"d"}}`, stackit, stackit, ""},
		{"the first label", `{}`, `{"labels":{"a/cluster":"x"}}`, stackit, stackit, ""},
		{"a template's missing value", `{"labels":{"a/cluster":""}}`, `{"labels":{"a/cluster":"x"}}`, stackit, stackit, ""},
		{"a value that no server can carry", `{"labels":{"a/cluster":"x y"}}`, `{"labels":{"a/cluster":"x"}}`, stackit,
			stackit, ""},
		{"labels of a wrong type", `{"labels":["a"],"region":5}`, `{"labels":{"a/cluster":"x"}}`, stackit, stackit, ""},
		{"another image and label", `{"region":"eu01","imageId":"a","labels":{"a/cluster":"x"}}`,
			`{"region":"eu01","imageId":"b","labels":{"a/cluster":"x","c":"d"}}`, stackit, stackit, ""},
		{"from OpenStack", `{"region":"RegionOne"}`, `{"region":"eu01","labels":{"a/cluster":"x"}}`, openstack, stackit, ""},
		{"back to OpenStack", `{"region":"eu01","labels":{"a/cluster":"x"}}`, `{"region":"RegionOne"}`, stackit, openstack,
			""},
		{"OpenStack's", `{"region":"RegionOne"}`, `{"region":"RegionTwo"}`, openstack, openstack, ""},
	} {
		class := &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: fmt.Sprintf("in-use-%d", i),
				Finalizers: []string{classFinalizer}},
			Provider: row.wasProvider, ProviderSpec: runtime.RawExtension{Raw: []byte(row.before)},
		}
		Expect(c.Create(ctx, class)).To(Succeed(), row.name)
		changed := class.DeepCopy()
		changed.Provider, changed.ProviderSpec.Raw, changed.Finalizers = row.isProvider, []byte(row.after), nil
		if i == 0 {
			awaitRefusal(ctx, row.refused,
				func(ctx context.Context) error { return c.Update(ctx, changed.DeepCopy(), client.DryRunAll) })
		}
		if row.refused != "" {
			Expect(c.Update(ctx, changed.DeepCopy())).To(MatchError(ContainSubstring(row.refused)), row.name)
			class.Finalizers = nil // its last Machine is gone
			Expect(c.Update(ctx, class)).To(Succeed(), row.name)
			changed.ResourceVersion = class.ResourceVersion
		}
		Expect(c.Update(ctx, changed)).To(Succeed(), row.name)
	}
}

// expectSecretInUseStays does the same with a Secret that a MachineClass names.
func (c *cluster) expectSecretInUseStays(ctx SpecContext) {
	GinkgoHelper()
	const region, project = "the region of a Secret must stay", "the project of a Secret must stay"
	const uuid, other = "10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002"
	for i, row := range []struct {
		name          string
		before, after map[string]string
		refused       string
	}{
		{"another region", map[string]string{"region": "eu01"}, map[string]string{"region": "eu02"}, region},
		{"another region's zone", map[string]string{"region": "eu01"}, map[string]string{"region": "eu02-1"}, region},
		{"another region than the zone's", map[string]string{"region": "eu01-2"}, map[string]string{"region": "eu02-2"},
			region},
		{"something else with a hyphen", map[string]string{"region": "eu01"}, map[string]string{"region": "eu01-x"}, region},
		{"a longer region", map[string]string{"region": "eu01"}, map[string]string{"region": "eu011"}, region},
		{"no region", map[string]string{"region": "eu01"}, nil, region},
		{"another project", map[string]string{"projectId": "a"}, map[string]string{"projectId": "b"}, project},
		{"another project in Gardener's spelling", map[string]string{"project-id": "a"}, map[string]string{"project-id": "b"},
			project},
		{"no project", map[string]string{"projectId": "a"}, nil, project},
		{"another project under the other key", map[string]string{"projectId": uuid}, map[string]string{"project-id": other},
			project},
		{"a second project", map[string]string{"projectId": uuid},
			map[string]string{"projectId": uuid, "project-id": other}, project},
		{"a longer project", map[string]string{"projectId": uuid}, map[string]string{"projectId": uuid + "1"}, project},
		{"another region, without a line break", map[string]string{"region": "eu01\n"}, map[string]string{"region": "eu02"},
			region},
		{"no line", map[string]string{"projectId": uuid}, map[string]string{"projectId": "\n"}, project},

		{"a region without its line break", map[string]string{"region": "eu01\n"}, map[string]string{"region": "eu01"}, ""},
		{"a zone without its line break", map[string]string{"region": "eu01-1\n"}, map[string]string{"region": "eu01-2"}, ""},
		{"a project without its line break", map[string]string{"projectId": uuid + "\n"},
			map[string]string{"projectId": uuid}, ""},
		{"a project with a line break", map[string]string{"projectId": uuid},
			map[string]string{"projectId": uuid + "\n"}, ""},
		{"a project under the other key", map[string]string{"project-id": uuid}, map[string]string{"projectId": uuid}, ""},
		{"a project under one key", map[string]string{"projectId": uuid, "project-id": uuid + "\n"},
			map[string]string{"project-id": uuid}, ""},
		{"one of two projects", map[string]string{"projectId": uuid, "project-id": other},
			map[string]string{"projectId": uuid}, ""},
		{"a zone of the region", map[string]string{"region": "eu01"}, map[string]string{"region": "eu01-1"}, ""},
		{"the region of a zone", map[string]string{"region": "us02-m"}, map[string]string{"region": "us02"}, ""},
		{"another zone", map[string]string{"region": "eu03-m"}, map[string]string{"region": "eu03-9"}, ""},
		{"another key and user data", map[string]string{"projectId": "a", "region": "eu01", "serviceAccountKey": "a"},
			map[string]string{"projectId": "a", "region": "eu01", "serviceAccountKey": "b", "userData": "c"}, ""},
		{"a region and a project at last", map[string]string{"userData": "a"},
			map[string]string{"region": "eu01", "project-id": "a"}, ""},
	} {
		secret := secretIn(c.env.Namespace(), fmt.Sprintf("in-use-%d", i), corev1.SecretTypeOpaque)
		secret.Finalizers, secret.Data, secret.StringData = []string{secretFinalizer}, nil, row.before
		Expect(c.Create(ctx, secret)).To(Succeed(), row.name)
		changed := secret.DeepCopy()
		changed.Finalizers, changed.Data, changed.StringData = nil, nil, row.after
		if i == 0 {
			awaitRefusal(ctx, row.refused,
				func(ctx context.Context) error { return c.Update(ctx, changed.DeepCopy(), client.DryRunAll) })
		}
		if row.refused != "" {
			Expect(c.Update(ctx, changed.DeepCopy())).To(MatchError(ContainSubstring(row.refused)), row.name)
			secret.Finalizers = nil
			Expect(c.Update(ctx, secret)).To(Succeed(), row.name)
			changed.ResourceVersion = secret.ResourceVersion
		}
		Expect(c.Update(ctx, changed)).To(Succeed(), row.name)
	}
}

const (
	// large is about as much as etcd takes of an object, in bytes: 1.5 MiB with all that is around it.
	large = 1_300_000
	// largeSecret is what the API server takes of a Secret's values, a MiB with all of them.
	largeSecret = 1<<20 - 100
)

// entries returns a map with so many keys.
func entries[V any](count int, key string, value V) map[string]V {
	all := make(map[string]V, count)
	for i := range count {
		all[fmt.Sprintf(key, i)] = value
	}
	return all
}

// Metadata of objects.
var (
	plain          = metav1.ObjectMeta{}
	manyFinalizers = metav1.ObjectMeta{Finalizers: slices.Sorted(maps.Keys(entries(20_000, "a.io/f%05d", "")))}
	manyLabels     = metav1.ObjectMeta{Labels: entries(5_000, "a.io/l%05d", "x")}
)

// expectLargeClassesGo makes MachineClasses with texts as long as etcd takes them, and with many entries; three
// to fifteen times as many pass, too, and take the API server seconds. A policy whose expression costs too much
// fails, and refuses everything: a change that is allowed, the removal of finalizers, and with it the end of the
// namespace.
func (c *cluster) expectLargeClassesGo(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	manager := user.client(ctx, c.Client, c.env.RESTConfig())
	long := strings.Repeat("a", large)
	const region, cluster = "providerSpec.region must stay", "that ends in /cluster must stay"
	named := providerSpec{"labels": map[string]any{"a/cluster": "x"}}
	for i, row := range []struct {
		name          string
		metadata      metav1.ObjectMeta
		before, after providerSpec
		refused       string
	}{
		{"1,000 clusters", plain, providerSpec{"labels": entries(1000, "a%d.io/cluster", "x")}, named, ""},
		{"20,000 clusters", plain, providerSpec{"labels": entries(20_000, "a%05d/cluster", "x")}, named, ""},
		{"256 clusters", plain, providerSpec{"labels": entries(256, "a%054d/cluster", strings.Repeat("a", 63))}, named,
			cluster},
		{"to 1,000 clusters", plain, named, providerSpec{"labels": entries(1000, "a%05d/cluster", "x")}, cluster},
		{"a long cluster", plain, providerSpec{"labels": map[string]any{"a/cluster": long}}, named, ""},
		{"a cluster with a long key", plain, providerSpec{"labels": map[string]any{long + "/cluster": "x"}}, named, ""},
		{"a list of labels", plain, providerSpec{"labels": slices.Repeat([]int{1}, 10_000)}, named, ""},
		{"a text for labels", plain, providerSpec{"labels": long}, named, ""},
		{"a long region", plain, providerSpec{"region": long}, providerSpec{"region": long[1:] + "b"}, region},
		{"a list of regions", plain, providerSpec{"region": slices.Repeat([]int{1}, 10_000)}, named, ""},
		{"5,000 fields", plain, entries[any](5_000, "f%05d", 1), named, ""},
		{"5,000 levels", plain,
			providerSpec{"labels": json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}, named, ""},
		{"20,000 finalizers", manyFinalizers, providerSpec{"region": "eu01"}, named, region},
		{"5,000 labels of its own", manyLabels, providerSpec{"region": "eu01"}, named, region},
	} {
		raw := func(spec providerSpec) runtime.RawExtension {
			content, err := json.Marshal(spec)
			Expect(err).NotTo(HaveOccurred())
			return runtime.RawExtension{Raw: content}
		}
		class := &v1alpha1.MachineClass{ObjectMeta: *row.metadata.DeepCopy(), Provider: "stackit",
			ProviderSpec: raw(row.before)}
		class.Namespace, class.Name = c.env.Namespace(), fmt.Sprintf("large-%d", i)
		class.Finalizers = append(class.Finalizers, classFinalizer)
		Expect(c.Create(ctx, class)).To(Succeed(), row.name)
		changed := class.DeepCopy()
		changed.ProviderSpec = raw(row.after)
		c.expectChange(ctx, changed, row.refused, row.name)
		c.expectFinalizerGoes(ctx, manager, class, classFinalizer, row.name)
	}
}

// expectLargeSecretsGo does the same with Secrets.
func (c *cluster) expectLargeSecretsGo(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	manager := user.client(ctx, c.Client, c.env.RESTConfig())
	const region, project = "the region of a Secret must stay", "the project of a Secret must stay"
	data := func(key, value string) map[string][]byte { return map[string][]byte{key: []byte(value)} }
	long := strings.Repeat("a", largeSecret)
	eu01, eu02 := data("region", "eu01"), data("region", "eu02")
	for i, row := range []struct {
		name          string
		metadata      metav1.ObjectMeta
		before, after map[string][]byte
		refused       string
	}{
		{"a long region", plain, data("region", long), eu01, region},
		{"to a long region", plain, eu01, data("region", long), region},
		{"a long project", plain, data("projectId", long), data("projectId", long[1:]+"b"), project},
		{"long user data", plain, data("userData", long), eu01, ""},
		{"5,000 keys", plain, entries(5_000, "key%05d", []byte("value")), eu01, ""},
		{"20,000 finalizers", manyFinalizers, eu01, eu02, region},
		{"5,000 labels", manyLabels, eu01, eu02, region},
	} {
		secret := &corev1.Secret{ObjectMeta: *row.metadata.DeepCopy(), Data: row.before}
		secret.Namespace, secret.Name = c.env.Namespace(), fmt.Sprintf("large-%d", i)
		secret.Finalizers = append(secret.Finalizers, secretFinalizer)
		Expect(c.Create(ctx, secret)).To(Succeed(), row.name)
		changed := secret.DeepCopy()
		changed.Data = row.after
		c.expectChange(ctx, changed, row.refused, row.name)
		c.expectFinalizerGoes(ctx, manager, secret, secretFinalizer, row.name)
	}
}

// expectChange tries an update as an administrator; refused is "" if it is allowed.
func (c *cluster) expectChange(ctx context.Context, changed client.Object, refused, name string) {
	GinkgoHelper()
	err := c.Update(ctx, changed, client.DryRunAll)
	if refused == "" {
		Expect(err).NotTo(HaveOccurred(), name)
	} else {
		Expect(err).To(MatchError(ContainSubstring(refused)), name)
	}
}

// expectFinalizerGoes has the manager and an administrator take a finalizer away and put it back, as
// both may, changes something that no policy is about, and deletes the object.
func (c *cluster) expectFinalizerGoes(
	ctx context.Context, manager client.Client, object client.Object, finalizer, name string,
) {
	GinkgoHelper()
	for _, user := range []client.Client{manager, c.Client} {
		controllerutil.RemoveFinalizer(object, finalizer)
		Expect(user.Update(ctx, object)).To(Succeed(), name)
		controllerutil.AddFinalizer(object, finalizer)
		Expect(user.Update(ctx, object)).To(Succeed(), name)
	}
	object.SetAnnotations(map[string]string{"an": "annotation"})
	Expect(c.Update(ctx, object)).To(Succeed(), name)
	Expect(c.Delete(ctx, object)).To(Succeed(), name)
	Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed(), name)
	object.SetFinalizers(nil)
	Expect(c.Update(ctx, object)).To(Succeed(), name)
	Expect(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))).To(BeTrue(), name)
}

// awaitRefusal returns when the API server has taken note of a policy.
func awaitRefusal(ctx context.Context, refusal string, try func(context.Context) error) {
	GinkgoHelper()
	Eventually(ctx, try).WithPolling(poll / 10).WithTimeout(upTimeout).Should(MatchError(ContainSubstring(refusal)))
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

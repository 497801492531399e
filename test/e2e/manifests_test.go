// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("The manifests", func() {
	It("under samples/ are valid, are taken by the API server, and make machines", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		Expect(c.env.ApplyFile(ctx, filepath.Join(root(), "samples"))).To(Succeed())

		var classes v1alpha1.MachineClassList
		Expect(c.List(ctx, &classes)).To(Succeed())
		Expect(classes.Items).To(HaveLen(2))
		for _, class := range classes.Items {
			expectValid(ctx, c, &class)
		}
		deployment := &v1alpha1.MachineDeployment{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: "worker"}, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(int(deployment.Spec.Replicas) + 1))
	})

	It("on the README's front page make a machine", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		for _, object := range frontPage(c.env.ServiceAccountKey()) {
			Expect(c.env.Apply(ctx, object)).To(Succeed())
		}
		c.createMachine(ctx, "front-page", "worker")
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(1))
	})

	It("under kubernetes/ are taken by the API server", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		for _, folder := range []string{"kubernetes", "kubernetes/control", "kubernetes/target"} {
			By(folder)
			objects := render(folder)
			for _, object := range objects {
				Expect(c.env.Apply(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
				DeferCleanup(c.deleteObject, object)
			}
		}
	})

	It("under kubernetes/ let the two containers make and remove machines", func(ctx SpecContext) {
		objects := render("kubernetes")
		manager := containerArgs(objects, "machine-controller-manager")
		sidecar := containerArgs(objects, "machine-controller")
		c := newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithControllerUser(deployedUser),
			localenv.WithManagerArgs(manager...), localenv.WithSidecarArgs(sidecar...)))
		for _, object := range objects {
			Expect(c.env.Apply(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		Eventually(ctx, c.allowed).WithPolling(poll/10).WithTimeout(upTimeout).Should(BeTrue(), "RBAC has not taken effect")
		Expect(c.env.StartManager(ctx)).To(Succeed())
		Expect(c.env.StartSidecar(ctx)).To(Succeed())

		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		deployment := c.createDeployment(ctx, "workers", "small", 2)
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(2))
		pod := c.createPodOn(ctx, c.env.Cloud().Servers()[0].Name)

		Expect(c.Delete(ctx, deployment)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		Expect(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod))).To(BeTrue(), "the Pod was not evicted")
		for _, part := range []localenv.Part{localenv.PartManager, localenv.PartSidecar} {
			logs, err := c.env.Logs(part)
			Expect(err).NotTo(HaveOccurred())
			Expect(logs).To(ContainSubstring("successfully acquired lease"), "%s did not lead", part)
			Expect(logs).NotTo(ContainSubstring("forbidden"), "%s", part)
		}
	})
})

// frontPage returns the manifests of README.md, with the mock's values and this key.
func frontPage(key []byte) []*unstructured.Unstructured {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(root(), "README.md"))
	Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	Expect(block).NotTo(BeNil(), "README.md has no YAML")
	text := strings.NewReplacer(
		"<UUID of the project>", iaasmock.DefaultProjectID, "<UUID of an image>", iaasmock.DefaultImageID,
		"<UUID of a network>", iaasmock.DefaultNetworkID, "<JSON of a service-account key>", string(key),
	).Replace(string(block[1]))
	objects, err := localenv.ParseManifests([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return objects
}

// deployedUser is whom the Deployment's pod logs in as.
const deployedUser = "system:serviceaccount:default:machine-controller-manager"

// render returns the objects of a folder with a kustomization.
func render(folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root(), folder))
	Expect(err).NotTo(HaveOccurred())
	content, err := resources.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	objects, err := localenv.ParseManifests(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	return objects
}

// containerArgs returns the flags of a container of the Deployment, without those
// that only hold in a pod: the kubeconfigs, for which the environment has its own,
// and the port.
func containerArgs(objects []*unstructured.Unstructured, name string) []string {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
		}
	}
	Expect("system:serviceaccount:" + deployment.Namespace + ":" + deployment.Spec.Template.Spec.ServiceAccountName).To(Equal(deployedUser))
	var args []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == name {
			args = container.Args
		}
	}
	Expect(args).To(ContainElements("--control-kubeconfig=inClusterConfig", "--target-kubeconfig=/var/run/target/kubeconfig",
		"--namespace=$(POD_NAMESPACE)", "--leader-elect=true"), "of container %s", name)
	var kept []string
	for _, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if !slices.Contains([]string{"--control-kubeconfig", "--target-kubeconfig", "--port"}, flag) {
			kept = append(kept, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", deployment.Namespace))
		}
	}
	return kept
}

// allowed tells whether the API server has taken note of every binding.
func (c *cluster) allowed(ctx context.Context) (bool, error) {
	for _, right := range []authorizationv1.ResourceAttributes{
		{Group: "machine.sapcloud.io", Resource: "machines", Verb: "list", Namespace: c.env.Namespace()},
		{Resource: "nodes", Verb: "list"},
		{Resource: "secrets", Verb: "create", Namespace: metav1.NamespaceSystem},
	} {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: deployedUser, ResourceAttributes: &right},
		}
		if err := c.Create(ctx, review); err != nil || !review.Status.Allowed {
			return false, err
		}
	}
	return true, nil
}

// createPodOn makes a Pod on a Node, to be evicted. There is no kubelet: without a
// grace period it is gone at once.
func (c *cluster) createPodOn(ctx context.Context, node string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "to-be-evicted", Namespace: c.env.Namespace()},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "idle", Image: "idle"}},
		},
	}
	Expect(c.Create(ctx, pod)).To(Succeed())
	return pod
}

func (c *cluster) deleteObject(ctx SpecContext, object *unstructured.Unstructured) {
	if object.GetNamespace() == "" && object.GetKind() == "Namespace" {
		return // nothing here would ever finish its deletion
	}
	Expect(client.IgnoreNotFound(c.env.Client().Delete(ctx, object))).To(Succeed())
}

func root() string {
	GinkgoHelper()
	path, err := localenv.Root()
	Expect(err).NotTo(HaveOccurred())
	return path
}

// expectValid decodes and checks a class as the driver does, with its Secret.
func expectValid(ctx SpecContext, c *cluster, class *v1alpha1.MachineClass) {
	GinkgoHelper()
	spec, unknown, errs := apis.DecodeProviderSpec(class.ProviderSpec.Raw)
	Expect(errs).To(BeEmpty())
	Expect(unknown).To(BeEmpty())
	secret := &corev1.Secret{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: class.SecretRef.Namespace, Name: class.SecretRef.Name}, secret)).To(Succeed())
	decoded, errs := apis.DecodeSecret(secret.Data)
	Expect(errs).To(BeEmpty())
	Expect(validation.ValidateSecret(decoded, apis.SecretPath)).To(BeEmpty())
	apis.SetDefaults(spec, decoded)
	Expect(validation.ValidateProviderSpec(spec, apis.SpecPath)).To(BeEmpty())
}

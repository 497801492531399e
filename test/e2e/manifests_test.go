// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("The manifests", short, func() {
	It("of samples/ and the front page are valid, are taken by the API server, make machines", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		Expect(c.env.ApplyFile(ctx, filepath.Join(root(), "samples"))).To(Succeed())
		for _, object := range frontPage(c.env.ServiceAccountKey()) {
			Expect(c.env.Apply(ctx, object)).To(Succeed())
		}
		c.createMachine(ctx, "front-page", "worker")

		var classes v1alpha1.MachineClassList
		Expect(c.List(ctx, &classes)).To(Succeed())
		Expect(classes.Items).To(HaveLen(3))
		for _, class := range classes.Items {
			expectValid(ctx, c, &class)
		}
		deployment := &v1alpha1.MachineDeployment{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: "worker"}, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(int(deployment.Spec.Replicas) + 2))
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

// render returns the objects of a folder of the repository with a kustomization.
func render(folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	return build(filepath.Join(root(), folder))
}

// build returns the objects of any folder with a kustomization.
func build(path string) []*unstructured.Unstructured {
	GinkgoHelper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	Expect(err).NotTo(HaveOccurred())
	content, err := resources.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	objects, err := localenv.ParseManifests(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	return objects
}

// renderIn is render of kubernetes/ after README.md's first step, which gives the pod a
// namespace, and after the components of that folder were added to control, as
// "kustomize edit add component" does.
func renderIn(namespace string, components ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(root(), "kubernetes")))).To(Succeed())
	path := filepath.Join(folder, "control", "kustomization.yaml")
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	edited := strings.Replace(string(content), "\nnamespace: default\n", "\nnamespace: "+namespace+"\n", 1)
	Expect(edited).NotTo(Equal(string(content)))
	for i, component := range components {
		if i == 0 {
			edited += "components:\n"
		}
		edited += "  - ../" + component + "\n"
	}
	Expect(os.WriteFile(path, []byte(edited), 0o600)).To(Succeed())
	return build(folder)
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("mcm-stackit validate", Ordered, func() {
	var c *cluster
	var mcm *command

	BeforeAll(func(ctx SpecContext) {
		c = newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar()))
		mcm = newCommand(c.env)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		c.createDeployment(ctx, "workers", "small", 2)
		c.createMachine(ctx, "single", "small")
	})

	// validate runs the command in the namespace of the environment.
	validate := func(ctx SpecContext, args ...string) ran {
		GinkgoHelper()
		got := mcm.run(ctx, append([]string{"validate", "-n", c.env.Namespace()}, args...)...)
		(&canaries{env: c.env}).expectNone("the command", got.Stdout+got.Stderr)
		return got
	}
	write := func(text string) string {
		GinkgoHelper()
		path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}

	It("finds nothing wrong in a namespace that is right", func(ctx SpecContext) {
		got := validate(ctx, "--online", "--replicas=2")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		Expect(got.Stderr).NotTo(ContainSubstring("Feature gate"), "client-go's log")
		Expect(got.Stdout).To(And(ContainSubstring("Checked 1 Machine, 1 MachineClass, 1 MachineDeployment, 1 Secret"), ContainSubstring("nothing is wrong")))
		got = validate(ctx, "-o", "json")
		Expect(got.Code).To(Equal(0))
		Expect(got.Stdout).To(ContainSubstring(`"findings": []`))
	})

	It("tells what is wrong with objects of a cluster, without a position", func(ctx SpecContext) {
		class := c.createClass(ctx, "broken", specWith(providerSpec{"machineTyp": "c2i.2", "imageId": "nowhere"}))
		machine := c.createMachine(ctx, "orphan", "deleted-class")
		DeferCleanup(func(ctx SpecContext) {
			Expect(c.Delete(ctx, class)).To(Succeed())
			Expect(c.Delete(ctx, machine)).To(Succeed())
		})
		got := validate(ctx)
		Expect(got.Code).To(Equal(1))
		Expect(strings.Split(strings.TrimSpace(got.Stdout), "\n")).To(ConsistOf(
			HavePrefix(`MachineClass `+c.env.Namespace()+`/broken: providerSpec.imageId: is "nowhere"; must be a UUID`),
			HavePrefix(`MachineClass `+c.env.Namespace()+`/broken: providerSpec.machineTyp: is not a known field`),
			HavePrefix(`Machine `+c.env.Namespace()+`/orphan: spec.class.name: MachineClass `+c.env.Namespace()+`/deleted-class does not exist`)))
	})

	It("says that a Secret is missing, or may not be read", func(ctx SpecContext) {
		class := c.createClass(ctx, "no-secret", specWith(nil))
		change(ctx, c, class, func() { class.SecretRef.Name = "deleted" })
		got := validate(ctx)
		Expect(got.Code).To(Equal(1))
		Expect(got.Stdout).To(ContainSubstring("no-secret: secretRef: Secret " + c.env.Namespace() + "/deleted does not exist"))
		Expect(c.Delete(ctx, class)).To(Succeed())

		c.allowToSeeMachines(ctx, "viewer")
		Eventually(ctx, func() string { return validate(ctx, "--as", "viewer").Stdout }).WithTimeout(upTimeout).WithPolling(poll).
			Should(ContainSubstring("small: secretRef: reading Secret "), "once the API server knows of the role")
		Expect(validate(ctx, "--as", "viewer").Code).To(Equal(2))
		got = validate(ctx, "--as", "nobody")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stderr).To(ContainSubstring("listing MachineClasses in namespace " + c.env.Namespace()))
	})

	It("takes a Secret of the cluster for the classes of a file", func(ctx SpecContext) {
		file := write(`apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: in-a-file}
secretRef: {name: nowhere, namespace: ` + c.env.Namespace() + `}
providerSpec:
  machineType: c2i.2
  imageId: 30000000-0000-4000-8000-000000000001
  bootVolume: {size: 20}
  labels: {kubernetes.io/cluster: a}
`)
		Expect(validate(ctx, "-f", file).Code).To(Equal(2), "without the Secret")
		got := validate(ctx, "-f", file, "--secret", secretName, "--online")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		got = validate(ctx, "-f", file, "--secret", "nowhere")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stderr).To(ContainSubstring("Secret " + c.env.Namespace() + "/nowhere does not exist"))
	})

	It("is right about names that the API server cuts", func(ctx SpecContext) {
		name := strings.Repeat("abcde-", 9) + "abcdef"
		class, deployment := filepath.Join("..", "..", "samples", "machine-class.yaml"), write(`apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: `+name+`}
spec:
  selector: {matchLabels: {pool: a}}
  template:
    metadata: {labels: {pool: a}}
    spec: {class: {kind: MachineClass, name: stackit-worker}}
  strategy: {type: Recreate}
`)
		got := validate(ctx, "-f", deployment, "-f", class, "--allow-missing-secret")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		machine := &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-12345-", Namespace: c.env.Namespace()},
			Spec:       v1alpha1.MachineSpec{Class: classReference("small")},
		}
		Expect(c.Create(ctx, machine)).To(Succeed())
		Expect(machine.Name).To(And(HavePrefix(name[:58]), HaveLen(63)))
		Expect(c.Delete(ctx, machine)).To(Succeed())
	})

	It("says that a namespace has nothing to check", func(ctx SpecContext) {
		got := mcm.run(ctx, "validate", "-n", metav1.NamespacePublic, "-o", "json")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stdout).To(ContainSubstring("there is no MachineClass"))
	})
})

// allowToSeeMachines lets a user read all but Secrets of what validate reads.
func (c *cluster) allowToSeeMachines(ctx SpecContext, user string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: user, Namespace: c.env.Namespace()}
	Expect(c.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{"list"},
	}}})).To(Succeed())
	Expect(c.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
}

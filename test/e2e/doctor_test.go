// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"regexp"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// diagnosis is what doctor has to find: its exit code and lines.
type diagnosis struct {
	code  int
	lines []string
}

var _ = Describe("mcm-stackit doctor", Ordered, ContinueOnFailure, func() {
	var c *clinic
	BeforeAll(func(ctx SpecContext) { c = newClinic(ctx) })

	It("finds nothing in a cluster that is fine", func(ctx SpecContext) {
		got := c.doctor.run(ctx, "doctor", "-n", c.env.Namespace())
		Expect(got.Code).To(Equal(0), "%s", got.Stdout)
		Expect(got.Stdout).NotTo(Or(ContainSubstring("WRONG"), ContainSubstring("UNKNOWN")))
		for _, line := range []string{
			"FINE     control cluster: Kubernetes v1.36.",
			"FINE     CRD machineclasses.machine.sapcloud.io: serves v1alpha1 with all fields of v0.62.1",
			"FINE     CRD machinedeployments.machine.sapcloud.io: serves v1alpha1 with all fields of v0.62.1",
			"FINE     CRD machines.machine.sapcloud.io: serves v1alpha1 with all fields of v0.62.1",
			"FINE     CRD machinesets.machine.sapcloud.io: serves v1alpha1 with all fields of v0.62.1",
			"FINE     MachineClass default/small: provider, credentials and userData are there, in Secret default/credentials",
			"FINE     cluster label kubernetes.io/cluster=shoot--test--e2e: no other namespace uses it",
			"FINE     manager: container machine-controller-manager of Deployment default/machine-controller-manager",
			"FINE     manager's version: v0.62.1",
			"FINE     sidecar: container machine-controller of Deployment default/machine-controller-manager",
			"HINT     sidecar's environment: differs from this command's: there the default endpoint, here endpoint " + c.env.CloudURL(),
			"FINE     lease machine-controller-manager: pod-1 holds it",
			"FINE     lease machine-controller: pod-1 holds it",
			"FINE     rights in namespace default: system:serviceaccount:default:machine-controller-manager has all 36",
			"FINE     rights in the target cluster: system:serviceaccount:default:machine-controller-manager has all 24",
		} {
			Expect(got.Stdout).To(ContainSubstring(line))
		}
	})

	It("does what the examples of its help say", func(ctx SpecContext) {
		help := c.doctor.run(ctx, "doctor", "--help")
		Expect(help.Code).To(Equal(0))
		_, examples, _ := strings.Cut(help.Stdout, "Examples:\n")
		examples, _, _ = strings.Cut(examples, "\nFlags:")
		commands := regexp.MustCompile(`(?m)^  mcm-stackit (.*)$`).FindAllStringSubmatch(examples, -1)
		Expect(commands).To(HaveLen(3))
		files := strings.NewReplacer("secret.yaml", c.secretFile(), "target.kubeconfig", c.env.TargetKubeconfigPath())
		for _, command := range commands {
			got := c.doctor.run(ctx, strings.Fields(files.Replace(command[1]))...)
			Expect(got.Code).To(Equal(0), "%s: %s%s", command[1], got.Stdout, got.Stderr)
		}
	})

	DescribeTable("finds", func(ctx SpecContext, spoilWith func(SpecContext, *clinic) []string, want diagnosis) {
		args := append([]string{"doctor", "-n", c.env.Namespace()}, spoilWith(ctx, c)...)
		got := c.doctor.run(ctx, args...)
		Expect(got.Code).To(Equal(want.code), "%s%s", got.Stdout, got.Stderr)
		for _, line := range want.lines {
			Expect(got.Stdout).To(ContainSubstring(line))
		}
		Expect(got.Stdout + got.Stderr).NotTo(Or(ContainSubstring(userDataCanary), ContainSubstring("PRIVATE KEY")))
	},
		Entry("a cluster that cannot be reached", func(SpecContext, *clinic) []string { return []string{"--server", "https://127.0.0.1:1"} },
			diagnosis{2, []string{"UNKNOWN  control cluster: cannot be reached: "}}),
		Entry("a user who may not read anything", func(SpecContext, *clinic) []string { return []string{"--as", "somebody"} }, diagnosis{2, []string{
			"UNKNOWN  credentials: cannot be read: listing MachineClasses in namespace default: machineclasses.machine.sapcloud.io is forbidden",
			`UNKNOWN  CRD machines.machine.sapcloud.io: cannot be read: customresourcedefinitions.apiextensions.k8s.io "machines.machine.sapcloud.io" is forbidden`,
			"UNKNOWN  MachineClasses of namespace default: cannot be read: ",
			"UNKNOWN  manager and sidecar: cannot be read: deployments.apps is forbidden",
			"UNKNOWN  lease machine-controller: cannot be read: ",
			"UNKNOWN  rights in namespace default: not looked at: ", "log in as somebody who may do that"}}),
		Entry("rights that may not be asked for", func(SpecContext, *clinic) []string { return []string{"--as", "somebody", "--service-account", account} },
			diagnosis{2, []string{"UNKNOWN  rights in namespace default: cannot be read: subjectaccessreviews.authorization.k8s.io is forbidden"}}),

		Entry("a CRD that is not there", func(ctx SpecContext, c *clinic) []string {
			remove(ctx, c, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machinesets.machine.sapcloud.io"}})
			return nil
		}, diagnosis{1, []string{"WRONG    CRD machinesets.machine.sapcloud.io: is not there", "apply the custom resource definitions"}}),
		Entry("a CRD that is too old", func(ctx SpecContext, c *clinic) []string {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machines.machine.sapcloud.io"}}
			spoil(ctx, c, crd, func() {
				delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "addresses")
			})
			return nil
		}, diagnosis{1, []string{"WRONG    CRD machines.machine.sapcloud.io: is older than v0.62.1: it lacks 1 field: status.addresses"}}),
		Entry("a CRD whose version is not served", func(ctx SpecContext, c *clinic) []string {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machinesets.machine.sapcloud.io"}}
			spoil(ctx, c, crd, func() { crd.Spec.Versions[0].Served = false })
			return nil
		}, diagnosis{1, []string{"WRONG    CRD machinesets.machine.sapcloud.io: does not serve v1alpha1"}}),

		Entry("a namespace with nothing in it", func(SpecContext, *clinic) []string { return []string{"-n", otherNamespace} }, diagnosis{1, []string{
			"UNKNOWN  credentials: namespace other has no MachineClass", "HINT     MachineClasses of namespace other: there is none",
			"WRONG    manager: no Deployment of namespace other has a container of it", "WRONG    sidecar: no Deployment of namespace other has a container of it",
			"UNKNOWN  rights in namespace other: not looked at"}}),
		Entry("a class without userData", func(ctx SpecContext, c *clinic) []string {
			secret := named(c, &corev1.Secret{}, secretName)
			spoil(ctx, c, secret, func() { delete(secret.Data, "userData") })
			return nil
		}, diagnosis{1, []string{"WRONG    MachineClass default/small: the key userData is missing in Secret default/credentials", "add the key userData"}}),
		Entry("a class whose Secret is not there", func(ctx SpecContext, c *clinic) []string {
			remove(ctx, c, named(c, &corev1.Secret{}, secretName))
			return nil
		}, diagnosis{1, []string{"WRONG    MachineClass default/small: ", "Secret default/credentials is not there"}}),
		Entry("a class that names no Secret", func(ctx SpecContext, c *clinic) []string {
			class := named(c, &v1alpha1.MachineClass{}, "small")
			spoil(ctx, c, class, func() { class.SecretRef = nil })
			return nil
		}, diagnosis{1, []string{"WRONG    MachineClass default/small: names no Secret"}}),
		Entry("a class with a key that cannot be used", func(ctx SpecContext, c *clinic) []string {
			secret := named(c, &corev1.Secret{}, secretName)
			spoil(ctx, c, secret, func() { secret.Data["serviceAccountKey"] = []byte("{") })
			return nil
		}, diagnosis{1, []string{
			"WRONG    MachineClass default/small: Secret default/credentials of MachineClass small: the service-account key is not the JSON"}}),
		Entry("a class of another provider", func(ctx SpecContext, c *clinic) []string {
			class := classIn(c.env.Namespace())
			class.Name, class.Provider, class.SecretRef.Name = "aws", "aws", "none"
			c.add(ctx, class)
			return nil
		}, diagnosis{0, []string{`HINT     MachineClass default/aws: is of provider "aws"`}}),
		Entry("a class with a wrong providerSpec", func(ctx SpecContext, c *clinic) []string {
			class := named(c, &v1alpha1.MachineClass{}, "small")
			spoil(ctx, c, class, func() { class.ProviderSpec = rawSpec(specWith(providerSpec{"imageId": "x"})) })
			return nil
		}, diagnosis{1, []string{"WRONG    MachineClass default/small: ", "providerSpec.imageId", "mcm-stackit validate"}}),
		Entry("a class without a cluster label", func(ctx SpecContext, c *clinic) []string {
			class := named(c, &v1alpha1.MachineClass{}, "small")
			spoil(ctx, c, class, func() { class.ProviderSpec = rawSpec(specWith(providerSpec{"labels": nil})) })
			return nil
		}, diagnosis{0, []string{"HINT     MachineClass default/small: has no cluster label"}}),

		Entry("a cluster label that another namespace uses", func(ctx SpecContext, c *clinic) []string {
			secret := named(c, &corev1.Secret{}, secretName)
			Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			c.add(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: otherNamespace}, Data: secret.Data})
			c.add(ctx, classIn(otherNamespace))
			return nil
		}, diagnosis{1, []string{"WRONG    cluster label kubernetes.io/cluster=shoot--test--e2e: also used by MachineClass other/small, in the same project"}}),
		Entry("a cluster label that another namespace uses in another project", func(ctx SpecContext, c *clinic) []string {
			c.add(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: otherNamespace},
				Data: map[string][]byte{"projectId": []byte(iaasmock.SecondProjectID)}})
			c.add(ctx, classIn(otherNamespace))
			return nil
		}, diagnosis{0, []string{"FINE     cluster label kubernetes.io/cluster=shoot--test--e2e: "}}),
		Entry("a cluster label that another namespace uses, whose Secret is not there", func(ctx SpecContext, c *clinic) []string {
			c.add(ctx, classIn(otherNamespace))
			return nil
		}, diagnosis{2, []string{"UNKNOWN  cluster label kubernetes.io/cluster=shoot--test--e2e: also used by MachineClass other/small, in a project that cannot be told"}}),
		Entry("servers that may be another cluster's", func(ctx SpecContext, c *clinic) []string {
			c.addServer(ctx, "theirs", map[string]string{clusterLabel: clusterName, provider.StackitMachineLabel: "theirs", provider.StackitMachineClassLabel: "large"})
			c.addServer(ctx, "lost", map[string]string{clusterLabel: clusterName, provider.StackitMachineLabel: "lost", provider.StackitMachineClassLabel: "small"})
			return nil
		}, diagnosis{0, []string{
			`HINT     cluster label kubernetes.io/cluster=shoot--test--e2e: on 1 server of no MachineClass and no Machine here: theirs (class "large")`,
			"HINT     cluster label kubernetes.io/cluster=shoot--test--e2e: on 1 server of a MachineClass here but no Machine: lost",
			"FINE     reads: a server's NICs: allowed"}}),
		Entry("a Machine whose server the manager would delete", func(ctx SpecContext, c *clinic) []string {
			id := c.addServer(ctx, "machine-1", map[string]string{clusterLabel: clusterName, provider.StackitMachineLabel: "machine-1", provider.StackitMachineClassLabel: "small"})
			machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-1", Namespace: c.env.Namespace()}, Spec: v1alpha1.MachineSpec{Class: classReference("small")}}
			machine.Spec.ProviderID = "openstack:///" + id
			c.add(ctx, machine)
			return nil
		}, diagnosis{1, []string{"WRONG    Machines: 1 server named by a ProviderID of another form than the driver's: default/machine-1", "scale the manager and its sidecar to 0 now"}}),
		Entry("nothing in servers that have Machines", func(ctx SpecContext, c *clinic) []string {
			c.add(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-1", Namespace: c.env.Namespace()}, Spec: v1alpha1.MachineSpec{Class: classReference("small")}})
			c.addServer(ctx, "machine-1", map[string]string{clusterLabel: clusterName, provider.StackitMachineLabel: "machine-1", provider.StackitMachineClassLabel: "small"})
			return nil
		}, diagnosis{0, []string{"FINE     cluster label kubernetes.io/cluster=shoot--test--e2e: "}}),

		Entry("a Deployment without a ready Pod", func(ctx SpecContext, c *clinic) []string {
			c.setReady(ctx, 0)
			DeferCleanup(func(ctx SpecContext) { c.setReady(ctx, 1) })
			return nil
		}, diagnosis{1, []string{"WRONG    sidecar: container machine-controller of Deployment default/machine-controller-manager", "0 of 1 ready", "look at the Pods"}}),
		Entry("two sidecars that do not elect a leader", func(ctx SpecContext, c *clinic) []string {
			deployment := named(c, &appsv1.Deployment{}, account)
			spoil(ctx, c, deployment, func() {
				deployment.Spec.Replicas = ptr.To[int32](2)
				deployment.Spec.Template.Spec.Containers[1].Args = append(deployment.Spec.Template.Spec.Containers[1].Args, "--leader-elect=false")
			})
			return nil
		}, diagnosis{1, []string{"1 of 2 ready with --leader-elect=false: they work against each other"}}),
		Entry("a Deployment that is scaled to nothing", func(ctx SpecContext, c *clinic) []string {
			deployment := named(c, &appsv1.Deployment{}, account)
			spoil(ctx, c, deployment, func() { deployment.Spec.Replicas = ptr.To[int32](0) })
			return nil
		}, diagnosis{1, []string{"scaled to nothing", "--replicas=1"}}),
		Entry("another version of the manager", func(ctx SpecContext, c *clinic) []string {
			deployment := named(c, &appsv1.Deployment{}, account)
			spoil(ctx, c, deployment, func() {
				deployment.Spec.Template.Spec.Containers[0].Image = "a/machine-controller-manager:v0.50.0"
				deployment.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "STACKIT_NO_AUTH", Value: "true"}}
			})
			return nil
		}, diagnosis{1, []string{"WRONG    manager's version: v0.50.0, but the sidecar's library is v0.62.1",
			"WRONG    sidecar's environment: the sidecar ends at its start: STACKIT_NO_AUTH=true is for a local mock"}}),
		Entry("a lease that is not there", func(ctx SpecContext, c *clinic) []string {
			remove(ctx, c, named(c, &coordinationv1.Lease{}, "machine-controller"))
			return nil
		}, diagnosis{1, []string{"WRONG    lease machine-controller: is not there: nobody has ever led"}}),
		Entry("a lease that nobody renews", func(ctx SpecContext, c *clinic) []string {
			lease := named(c, &coordinationv1.Lease{}, "machine-controller")
			spoil(ctx, c, lease, func() {
				lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To[int32](15), ptr.To(metav1.NewMicroTime(time.Unix(0, 0)))
			})
			return nil
		}, diagnosis{1, []string{"WRONG    lease machine-controller: pod-1 holds it, renewed ", "for 15s: nobody leads now"}}),
		Entry("a lease that nobody holds", func(ctx SpecContext, c *clinic) []string {
			lease := named(c, &coordinationv1.Lease{}, "machine-controller-manager")
			spoil(ctx, c, lease, func() { lease.Spec.HolderIdentity = nil })
			return nil
		}, diagnosis{1, []string{"WRONG    lease machine-controller-manager: nobody holds it"}}),

		Entry("a right that is missing", func(ctx SpecContext, c *clinic) []string {
			role := named(c, &rbacv1.Role{}, "machine-controller-manager-control")
			spoil(ctx, c, role, func() { role.Rules[2].Resources = []string{"machinedeployments/status"} })
			return nil
		}, diagnosis{1, []string{"WRONG    rights in namespace default: system:serviceaccount:default:machine-controller-manager lacks machines/status (update), machinesets/status (update)",
			"apply kubernetes/control/rbac.yaml"}}),
		Entry("a right that is missing in the target cluster", func(ctx SpecContext, c *clinic) []string {
			role := named(c, &rbacv1.Role{}, "machine-controller-manager-bootstrap-tokens")
			role.Namespace = metav1.NamespaceSystem
			spoil(ctx, c, role, func() { role.Rules[0].Verbs = []string{"get"} })
			return nil
		}, diagnosis{1, []string{"WRONG    rights in the target cluster: ", "lacks secrets in kube-system (create, delete)", "apply kubernetes/target/rbac.yaml"}}),
		Entry("another service account", func(SpecContext, *clinic) []string { return []string{"--service-account", "nobody"} },
			diagnosis{1, []string{"WRONG    rights in namespace default: system:serviceaccount:default:nobody lacks "}}),

		Entry("the target cluster's version", func(_ SpecContext, c *clinic) []string {
			return []string{"--target-kubeconfig", c.env.TargetKubeconfigPath()}
		},
			diagnosis{0, []string{"FINE     target cluster: Kubernetes v1.36."}}),
		Entry("a kubeconfig of the target cluster that is not there", func(SpecContext, *clinic) []string { return []string{"--target-kubeconfig", "missing.kubeconfig"} },
			diagnosis{2, []string{"UNKNOWN  target cluster: not looked at: reading --target-kubeconfig missing.kubeconfig"}}),
		Entry("a target cluster that cannot be reached", func(_ SpecContext, c *clinic) []string {
			config := c.env.TargetRESTConfig()
			config.Host = "https://127.0.0.1:1"
			return []string{"--target-kubeconfig", writeKubeconfig(config)}
		}, diagnosis{2, []string{"UNKNOWN  target cluster: cannot be reached: "}}),
		Entry("a sidecar that logs in to the target cluster as somebody else", func(ctx SpecContext, c *clinic) []string {
			token, err := localenv.ServiceAccountToken(ctx, c.target, metav1.NamespaceSystem, account)
			Expect(err).NotTo(HaveOccurred())
			secret := named(c, &corev1.Secret{}, "machine-controller-manager-target")
			spoil(ctx, c, secret, func() {
				secret.Data["token"] = []byte(token)
				secret.Data["kubeconfig"] = []byte(strings.ReplaceAll(string(secret.Data["kubeconfig"]),
					"tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "tokenFile: /var/run/target/token"))
			})
			return []string{"--target-kubeconfig", c.env.TargetKubeconfigPath()}
		}, diagnosis{1, []string{"WRONG    rights in the target cluster: system:serviceaccount:kube-system:machine-controller-manager lacks nodes (delete, get, list, patch, update, watch)"}}),
		Entry("a sidecar whose target is another cluster", func(ctx SpecContext, c *clinic) []string {
			secret := named(c, &corev1.Secret{}, "machine-controller-manager-target")
			spoil(ctx, c, secret, func() {
				secret.Data["kubeconfig"] = []byte(strings.ReplaceAll(string(secret.Data["kubeconfig"]), "kubernetes.default.svc", "other.example.com"))
			})
			return nil
		}, diagnosis{2, []string{"UNKNOWN  rights in the target cluster: not looked at: the sidecar's target cluster is another one, https://other.example.com", "--target-kubeconfig"}}),
	)
})

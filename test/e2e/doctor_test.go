// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("mcm-stackit", Ordered, func() {
	var c *cluster
	var mcm *command

	// What kubernetes/ makes, played by nobody: the Deployment is ready, and its containers lead.
	BeforeAll(func(ctx SpecContext) {
		c = newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar()))
		mcm = newCommand(c.env)
		for _, object := range render("kubernetes") {
			Expect(c.env.Apply(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.target, targetRights)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: c.env.Namespace()}}
		Expect(c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		deployment.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1}
		Expect(c.Status().Update(ctx, deployment)).To(Succeed())
		for _, name := range []string{"machine-controller", "machine-controller-manager"} {
			Expect(c.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: ptr.To[int32](3600),
					RenewTime: ptr.To(metav1.NowMicro()),
				},
			})).To(Succeed())
		}
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
	})

	// run runs a subcommand in the namespace of the environment.
	run := func(ctx SpecContext, subcommand string, args ...string) ran {
		GinkgoHelper()
		got := mcm.run(ctx, append([]string{subcommand, "-n", c.env.Namespace()}, args...)...)
		(&canaries{env: c.env}).expectNone("the command", got.Stdout+got.Stderr)
		return got
	}

	It("doctor finds nothing in a cluster that is fine, and says what it did not try", func(ctx SpecContext) {
		got := run(ctx, "doctor")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		for _, line := range []string{
			"FINE     token: granted by " + c.env.CloudURL(),
			"FINE     reads: servers: allowed\nFINE     reads: a network's NICs: allowed\n",
			"FINE     MachineClass default/small: provider, credentials and userData are present, in Secret default/credentials",
			"FINE     manager: container machine-controller-manager of Deployment default/machine-controller-manager",
			"FINE     manager's version: v0.62.1",
			"FINE     sidecar: container machine-controller of Deployment default/machine-controller-manager",
			"FINE     lease machine-controller-manager: pod-1 holds it",
			"FINE     lease machine-controller: pod-1 holds it",
			"not tried: the sidecar's login to the target cluster, which is its own cluster: it uses the Pod's own token, " +
				"which must not leave the Pod",
			"not tried: POST, PATCH and DELETE",
		} {
			Expect(got.Stdout).To(ContainSubstring(line))
		}
		help := strings.ReplaceAll(run(ctx, "doctor", "--help").Stdout, "\\\n", " ") // as a shell joins lines
		key := filepath.Join(GinkgoT().TempDir(), "key.json")
		Expect(os.WriteFile(key, c.env.ServiceAccountKey(), 0o600)).To(Succeed())
		examples := regexp.MustCompile(`(?m)^  mcm-stackit (doctor -.*)$`).FindAllStringSubmatch(help, -1)
		Expect(examples).To(HaveLen(2))
		for _, example := range examples {
			got := mcm.run(ctx, strings.Fields(strings.ReplaceAll(example[1], "key.json", key))...)
			Expect(got.Code).To(Equal(0), "%s: %s%s", example[1], got.Stdout, got.Stderr)
		}
	})

	It("validate finds nothing wrong in what kubectl gets, with its Secret or without", func(ctx SpecContext) {
		kubectl := newPlugin()
		kubectl.env = append(kubectl.env, "KUBECONFIG="+c.env.KubeconfigPath())
		get := func(objects ...string) string {
			GinkgoHelper()
			got := kubectl.run(ctx, append([]string{"get", "-n", c.env.Namespace(), "-o", "yaml"}, objects...)...)
			Expect(got.Code).To(Equal(0), "%s", got.Stderr)
			file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
			Expect(os.WriteFile(file, []byte(got.Stdout), 0o600)).To(Succeed())
			return file
		}
		got := run(ctx, "validate", "-f", get("machineclass/small", "secret/"+secretName), "--online")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		Expect(got.Stdout).To(ContainSubstring("Checked 1 MachineClass, 1 Secret, with 1 hint: nothing is wrong"),
			"but for the missing nodeTemplate")

		file := get("machineclass/small")
		Expect(run(ctx, "validate", "-f", file).Code).To(Equal(2), "without the Secret")
		got = run(ctx, "validate", "-f", file, "--secret", secretName, "--online")
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		got = run(ctx, "validate", "-f", file, "--secret", "nowhere")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stderr).To(ContainSubstring("Secret " + c.env.Namespace() + "/nowhere does not exist"))
	})
})

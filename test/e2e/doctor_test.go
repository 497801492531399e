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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("mcm-stackit doctor", Ordered, func() {
	var c *cluster
	var mcm *command
	targetSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "machine-controller-manager-target"}}

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
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro())},
			})).To(Succeed())
		}
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
	})

	doctor := func(ctx SpecContext, args ...string) ran {
		GinkgoHelper()
		got := mcm.run(ctx, append([]string{"doctor", "-n", c.env.Namespace()}, args...)...)
		(&canaries{env: c.env}).expectNone("the command", got.Stdout+got.Stderr)
		return got
	}

	It("finds nothing in a cluster that is fine, and says what it did not try", func(ctx SpecContext) {
		got := doctor(ctx)
		Expect(got.Code).To(Equal(0), "%s%s", got.Stdout, got.Stderr)
		for _, line := range []string{
			"FINE     token: granted by " + c.env.CloudURL(),
			"FINE     reads: servers: allowed\nFINE     reads: a network's NICs: allowed\n",
			"FINE     MachineClass default/small: provider, credentials and userData are there, in Secret default/credentials",
			"FINE     manager: container machine-controller-manager of Deployment default/machine-controller-manager",
			"FINE     manager's version: v0.62.1",
			"FINE     sidecar: container machine-controller of Deployment default/machine-controller-manager",
			"FINE     lease machine-controller-manager: pod-1 holds it",
			"FINE     lease machine-controller: pod-1 holds it",
			"not tried: the sidecar's login to the target cluster https://kubernetes.default.svc: it uses the token of the Pod itself",
			"not tried: POST, PATCH and DELETE",
		} {
			Expect(got.Stdout).To(ContainSubstring(line))
		}
		help := doctor(ctx, "--help").Stdout
		key := filepath.Join(GinkgoT().TempDir(), "key.json")
		Expect(os.WriteFile(key, c.env.ServiceAccountKey(), 0o600)).To(Succeed())
		examples := regexp.MustCompile(`(?m)^  mcm-stackit (doctor -.*)$`).FindAllStringSubmatch(help, -1)
		Expect(examples).To(HaveLen(2))
		for _, example := range examples {
			got := mcm.run(ctx, strings.Fields(strings.ReplaceAll(example[1], "key.json", key))...)
			Expect(got.Code).To(Equal(0), "%s: %s%s", example[1], got.Stdout, got.Stderr)
		}
	})

	It("tries the login to the target cluster that stands in a Secret", func(ctx SpecContext) {
		config := c.env.TargetRESTConfig()
		login := func(token string) {
			targetSecret.Namespace = c.env.Namespace()
			Expect(c.Get(ctx, client.ObjectKeyFromObject(targetSecret), targetSecret)).To(Succeed())
			targetSecret.Data["token"] = []byte(token)
			targetSecret.Data["ca.crt"] = config.CAData
			targetSecret.Data["kubeconfig"] = []byte(strings.NewReplacer("https://kubernetes.default.svc", config.Host,
				"/var/run/secrets/kubernetes.io/serviceaccount/", "/var/run/target/").Replace(string(targetSecret.Data["kubeconfig"])))
			Expect(c.Update(ctx, targetSecret)).To(Succeed())
		}
		token, err := localenv.ServiceAccountToken(ctx, c.target, c.env.Namespace(), account)
		Expect(err).NotTo(HaveOccurred())
		login(token)
		got := doctor(ctx)
		Expect(got.Code).To(Equal(0), "%s", got.Stdout)
		Expect(got.Stdout).To(MatchRegexp(`FINE     login to the target cluster: %s, valid until .* UTC: reads Nodes`, regexp.QuoteMeta(config.Host)))

		login("another")
		got = doctor(ctx)
		Expect(got.Code).To(Equal(1), "%s", got.Stdout)
		Expect(got.Stdout).To(ContainSubstring("WRONG    login to the target cluster: " + config.Host + ", which does not say when it ends: cannot read Nodes: Unauthorized"))
	})

	It("says what a user may not read, and that a cluster does not answer", func(ctx SpecContext) {
		got := doctor(ctx, "--as", "somebody")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stdout).To(And(
			ContainSubstring("UNKNOWN  credentials: cannot be read: listing MachineClasses in namespace default: machineclasses.machine.sapcloud.io is forbidden"),
			ContainSubstring("UNKNOWN  manager and sidecar: cannot be read: deployments.apps is forbidden"), ContainSubstring("log in as somebody who may do that")))
		got = doctor(ctx, "--server", "https://127.0.0.1:1")
		Expect(got.Code).To(Equal(2))
		Expect(strings.Count(got.Stdout, "UNKNOWN")).To(Equal(1), "%s", got.Stdout)
		Expect(got.Stdout).To(ContainSubstring("UNKNOWN  cluster with the Machines: not looked at: "))
	})
})

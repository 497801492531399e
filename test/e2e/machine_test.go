// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// havePhase is for Machines read with (*cluster).machine.
func havePhase(phase v1alpha1.MachinePhase) OmegaMatcher {
	return HaveField("Status.CurrentStatus.Phase", phase)
}

func (c *cluster) awaitPhase(ctx context.Context, machine string, phase v1alpha1.MachinePhase) {
	GinkgoHelper()
	Eventually(ctx, c.machine(machine)).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(phase))
}

var _ = Describe("A Machine", Ordered, ContinueOnFailure, longest, func() {
	var env *localenv.Env
	BeforeAll(func(ctx SpecContext) {
		env = startEnvironment(ctx, localenv.WithSidecarArgs("--v=10"))
	})

	It("becomes a server and a Node, and is gone without a trace", func(ctx SpecContext) {
		c := newCluster(env)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(providerSpec{"allowedAddresses": []any{"100.96.0.0/11"}}))

		single := c.createMachine(ctx, "with-user-data", "small")
		c.awaitPhase(ctx, single.Name, v1alpha1.MachineRunning)
		c.expectMetricsInUse(ctx)
		server := c.serverNamed(single.Name)
		Expect(server.Status).To(Equal(iaasmock.StatusActive))
		Expect(c.Get(ctx, client.ObjectKeyFromObject(single), single)).To(Succeed())
		Expect(single.Spec.ProviderID).To(Equal("stackit://" + iaasmock.DefaultProjectID + "/" + server.ID))
		Expect(single.Labels).To(HaveKeyWithValue(v1alpha1.NodeLabelKey, single.Name))
		node := &corev1.Node{}
		Expect(c.Get(ctx, client.ObjectKey{Name: single.Name}, node)).To(Succeed())
		Expect(node.Spec.ProviderID).To(Equal("stackit://" + server.ID))

		Expect(string(server.UserData)).To(MatchRegexp(`^#cloud-config\n# ` + userDataCanary +
			`\nhostname: with-user-data\ntoken: [a-z0-9]{6}\.[a-z0-9]{16}\n$`))
		Expect(server.NetworkID).To(Equal(iaasmock.DefaultNetworkID))
		Expect(c.nics(server.ID)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11"))))

		By("deleting it")
		Expect(c.Delete(ctx, single)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
	})

	It("of samples/ and of the front page runs: "+
		"the manifests are valid, and are taken by the API server", func(ctx SpecContext) {
		c := newCluster(env)
		Expect(c.env.ApplyFile(ctx, filepath.Join(root(), "samples"))).To(Succeed())
		for _, object := range frontPage(c.env.ServiceAccountKey()) {
			Expect(c.env.Apply(ctx, object)).To(Succeed())
		}
		c.createMachine(ctx, "front-page", "worker")

		var classes v1alpha1.MachineClassList
		Expect(c.List(ctx, &classes)).To(Succeed())
		Expect(classes.Items).To(HaveLen(3))
		for _, class := range classes.Items {
			_, unknown, errs := apis.DecodeProviderSpec(class.ProviderSpec.Raw)
			Expect(errs).To(BeEmpty())
			Expect(unknown).To(BeEmpty(), "fields that the driver does not know, of %s", class.Name)
		}
		deployment := &v1alpha1.MachineDeployment{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: "worker"}, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(int(deployment.Spec.Replicas) + 2))
	})
})

var _ = Describe("A sidecar", Ordered, ContinueOnFailure, func() {
	var c *cluster

	BeforeAll(func(ctx SpecContext) {
		c = newCluster(startEnvironment(ctx, localenv.WithSidecarArgs("--machine-safety-orphan-vms-period=20s")))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
	})

	It("takes over the servers of STACKIT's own driver", func(ctx SpecContext) {
		machine := c.newMachine("theirs-1", "worker")
		server := c.postServer(ctx, machine.Name, map[string]any{clusterLabel: clusterName,
			"kubernetes.io/machine": machine.Name, "kubernetes.io/machineclass": "worker"})
		Expect(c.env.Cloud().SetServerStatus(server, iaasmock.StatusActive, "")).To(Succeed())
		machine.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + server
		Expect(c.Create(ctx, machine)).To(Succeed())
		c.awaitPhase(ctx, machine.Name, v1alpha1.MachineRunning)
		Expect(c.env.Cloud().Servers()).To(ConsistOf(HaveField("ID", server)))
		Expect(c.Delete(ctx, machine)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		Expect(c.env.Cloud().Servers()).To(BeEmpty())
	})

	It("deletes a server of the cluster that has no Machine, and none of another cluster's", func(ctx SpecContext) {
		labels := func(cluster string) map[string]any {
			return map[string]any{clusterLabel: cluster, "kubernetes.io/machine": "orphan-1",
				"kubernetes.io/machineclass": "worker"}
		}
		c.postServer(ctx, "orphan-1", labels(clusterName))
		other := c.postServer(ctx, "orphan-1", labels("other"))
		Eventually(c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll).
			Should(ConsistOf(HaveField("ID", other)))
		Expect(c.env.Cloud().RemoveServer(other)).To(Succeed())
		Expect(c.target.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
	})

	It("goes on with a new key from the moment it is in the Secret", func(ctx SpecContext) {
		newKey := func() []byte {
			key, err := c.env.Cloud().NewServiceAccountKey(iaasmock.DefaultProjectID)
			Expect(err).NotTo(HaveOccurred())
			return key
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: c.env.Namespace()}}
		rotate := func(key []byte) {
			change(ctx, c, secret, func() { secret.Data["serviceAccountKey"] = key })
		}
		before := newKey()
		rotate(before)
		first := c.createMachine(ctx, "before-1", "worker")
		c.awaitPhase(ctx, first.Name, v1alpha1.MachineRunning)
		rotate(newKey())
		Expect(c.env.Cloud().RevokeServiceAccountKey(before)).To(Succeed())
		second := c.createMachine(ctx, "after-1", "worker")
		c.awaitPhase(ctx, second.Name, v1alpha1.MachineRunning)
		Expect(c.Delete(ctx, first)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).
			Should(ConsistOf(HaveField("Name", second.Name)))
	})
})

var _ = Describe("A class with fallbacks", long, func() {
	It("runs its Machines in another zone while its own is full", func(ctx SpecContext) {
		const boot = 10 * time.Second
		c := newCluster(startEnvironment(ctx,
			localenv.WithCloudOptions(iaasmock.WithBootDuration(boot), iaasmock.WithDeleteDuration(deleteDuration))))
		awaitLeadership(time.Now())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "full", specWith(providerSpec{
			"availabilityZone": iaasmock.DefaultAvailabilityZone,
			"fallbacks":        []any{map[string]any{"availabilityZone": "eu01-2"}},
		}))
		// Its servers end in ERROR once they have booted.
		DeferCleanup(c.env.Cloud().Inject(iaasmock.Fault{
			Operation: "CreateServer", Zone: iaasmock.DefaultAvailabilityZone,
			FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found.",
		}))
		deployment := c.newDeployment("fallbacks", "full", 3)
		Expect(c.Create(ctx, deployment)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(upTimeout).WithPolling(poll).Should(ContainElement(
			HaveField("Status.LastOperation.Description",
				ContainSubstring("NoCapacity: c2i.2 in eu01-1; next: c2i.2 in eu01-2"))))
		Eventually(ctx, c.running).WithTimeout(2 * upTimeout).WithPolling(poll).Should(HaveLen(3))
		Eventually(c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll).Should(And(HaveLen(3),
			HaveEach(And(HaveField("AvailabilityZone", "eu01-2"), HaveField("Status", iaasmock.StatusActive)))))
	})
})

// awaitLeadership waits until new Machines are surely this sidecar's: one that is created within 10 s of its start
// may be a predecessor's.
func awaitLeadership(leads time.Time) {
	GinkgoHelper()
	Eventually(func() time.Duration { return time.Since(leads) }).WithTimeout(upTimeout).WithPolling(poll).
		Should(BeNumerically(">", 15*time.Second))
}

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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// migratedAnnotation is what the extension marks Machines with.
const migratedAnnotation = "stackit.cloud/migrated-machine"

// createNIC makes a NIC that no server has, createVolume a volume.
func (c *cluster) createNIC(ctx context.Context, networkID, name string, labels map[string]any) string {
	GinkgoHelper()
	nic, err := c.api().CreateNic(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, networkID).
		CreateNicPayload(iaas.CreateNicPayload{Name: &name, Labels: labels}).Execute()
	Expect(err).NotTo(HaveOccurred())
	return nic.GetId()
}

func (c *cluster) createVolume(ctx context.Context, name string) string {
	GinkgoHelper()
	size := int64(20)
	volume, err := c.api().CreateVolume(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateVolumePayload(iaas.CreateVolumePayload{Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone,
			Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID}}).Execute()
	Expect(err).NotTo(HaveOccurred())
	return volume.GetId()
}

// fromOpenStack makes a server as Gardener's OpenStack provider does: with a NIC and a volume
// that are resources of their own, and with tags instead of labels.
func (c *cluster) fromOpenStack(ctx context.Context, name string) (serverID string) {
	GinkgoHelper()
	return c.attach(ctx, name, c.createNIC(ctx, iaasmock.DefaultNetworkID, name, nil), c.createVolume(ctx, name))
}

// openStackTags are what Gardener's OpenStack provider marks servers with.
var openStackTags = map[string]any{"kubernetes.io-cluster-" + clusterName: "1", "kubernetes.io-role-node": "1"}

// attach makes a server with a NIC and a volume that there are.
func (c *cluster) attach(ctx context.Context, name, nicID, volumeID string) (serverID string) {
	GinkgoHelper()
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nicID}},
	})
	payload.Metadata = openStackTags
	payload.BootVolume = &iaas.BootVolume{Source: iaas.NewBootVolumeSource(volumeID, "volume")}
	server, err := c.api().CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(*payload).Execute()
	Expect(err).NotTo(HaveOccurred())
	return server.GetId()
}

// deleteByHand deletes a server with its NIC and volume, by hand.
func (c *cluster) deleteByHand(ctx context.Context, serverID string) {
	GinkgoHelper()
	server, exists := c.env.Cloud().Server(serverID)
	Expect(exists).To(BeTrue(), "server %s is gone", serverID)
	Expect(c.env.Cloud().RemoveServer(serverID)).To(Succeed())
	c.discardRest(ctx, server.NICIDs, server.VolumeIDs)
}

func (c *cluster) discardRest(ctx context.Context, nicIDs, volumeIDs []string) {
	GinkgoHelper()
	for _, id := range nicIDs {
		nic, err := c.api().GetProjectNIC(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).Execute()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.api().DeleteNic(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, nic.GetNetworkId(), id).Execute()).To(Succeed())
	}
	for _, id := range volumeIDs {
		Expect(c.api().DeleteVolume(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).Execute()).To(Succeed())
	}
}

// awaitOrphanRun restarts the sidecar: an orphan run is the first thing that it does.
func (c *cluster) awaitOrphanRun(ctx context.Context) {
	GinkgoHelper()
	c.env.Cloud().ResetCalls()
	c.restartSidecar(ctx)
	Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll).Should(HaveKey("ListServers"))
}

// predecessors are Machines of an earlier provider, which this sidecar finds when it starts.
func (c *cluster) predecessors(ctx context.Context, class string, names ...string) {
	GinkgoHelper()
	c.env.KillSidecar()
	for _, name := range names {
		c.createMachine(ctx, name, class)
	}
}

// changeMachine changes a Machine as the API server has it.
func (c *cluster) changeMachine(ctx context.Context, name string, mutate func(*v1alpha1.Machine)) {
	GinkgoHelper()
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name}}
	change(ctx, c, machine, func() { mutate(machine) })
}

func mark(machine *v1alpha1.Machine) {
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, migratedAnnotation, "true")
}

func setProviderID(id string) func(*v1alpha1.Machine) {
	return func(machine *v1alpha1.Machine) { machine.Spec.ProviderID = id }
}

// refusedTimeout is for a Machine that was refused something: the manager comes back after 3
// minutes, or when its spec changes.
const refusedTimeout = 3*time.Minute + upTimeout

// becomesRunning waits until a Machine runs on a server.
func (c *cluster) becomesRunning(ctx context.Context, name, serverID string) {
	GinkgoHelper()
	Eventually(ctx, c.machine(name)).WithTimeout(refusedTimeout).WithPolling(poll).
		Should(And(havePhase(v1alpha1.MachineRunning), HaveField("Spec.ProviderID", HaveSuffix("/"+serverID))))
}

// label puts our labels on a server, as the loop of kubernetes/migration.md does.
func (c *cluster) label(ctx context.Context, serverID, machine, class string) {
	GinkgoHelper()
	labels := map[string]any{} // all that the server has, too: a PATCH may replace
	for _, server := range c.env.Cloud().Servers() {
		for key, value := range server.Labels {
			if server.ID == serverID {
				labels[key] = value
			}
		}
	}
	for key, value := range machineLabels(machine, class, clusterName) {
		labels[key] = value
	}
	_, err := c.api().UpdateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, serverID).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: labels}).Execute()
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Machines of an earlier provider", long, func() {
	It("keep their servers, and take all along when they go", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(providerSpec{
			"allowedAddresses": []any{"100.96.0.0/11"}, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID}}))
		const ourID = "stackit://" + iaasmock.DefaultProjectID + "/"
		id, marked := c.fromOpenStack(ctx, "os-real-1"), c.fromOpenStack(ctx, "os-marked-1")
		public := c.createServer(ctx, "public-1", "worker") // by the public STACKIT provider
		c.predecessors(ctx, "worker", "os-real-1", "os-marked-1", "public-1")
		c.changeMachine(ctx, "os-real-1", setProviderID("openstack:///RegionOne/"+id))
		c.changeMachine(ctx, "os-marked-1", mark)
		c.changeMachine(ctx, "public-1", setProviderID(ourID+public))
		// Names alone say nothing: these stay.
		labelled := c.createNIC(ctx, iaasmock.DefaultDualStackNetworkID, "os-real-1", map[string]any{clusterLabel: clusterName})
		nic, volume := c.createNIC(ctx, iaasmock.DefaultNetworkID, "os-real-1", nil), c.createVolume(ctx, "os-other")
		other := c.attach(ctx, "os-other", nic, volume)
		DeferCleanup(func(ctx SpecContext) {
			c.deleteByHand(ctx, other)
			c.discardRest(ctx, []string{labelled}, nil)
			Expect(c.target.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "os-other"}})).To(Succeed())
		})
		c.env.Cloud().ResetCalls()
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		for name, server := range map[string]string{"os-real-1": id, "os-marked-1": marked, "public-1": public} {
			c.becomesRunning(ctx, name, server)
		}
		Expect(c.nics(id)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11"))))
		Expect(c.env.Cloud().CallCounts()).NotTo(Or(HaveKey("CreateServer"), HaveKey("DeleteServer")))

		By("letting an orphan run look at them, with the ID of before and with ours")
		c.awaitOrphanRun(ctx)
		c.changeMachine(ctx, "os-real-1", func(machine *v1alpha1.Machine) {
			mark(machine)
			machine.Spec.ProviderID = ourID + id
		})
		By("giving one our labels, now that its ID is ours")
		Expect(c.serverNamed("os-real-1").Labels).To(BeEmpty())
		c.label(ctx, id, "os-real-1", "worker")
		c.awaitOrphanRun(ctx)
		Expect(c.serverNamed("os-real-1").Labels).To(Equal(machineLabels("os-real-1", "worker", clusterName)))
		Expect(c.serverNamed("os-other").Labels).To(BeEmpty())
		Expect(c.serverIDs()).To(ConsistOf(id, marked, public, other))

		By("deleting them")
		Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(2 * downTimeout).WithPolling(poll).Should(BeEmpty())
		Expect(c.serverIDs()).To(ConsistOf(other))
		named := HaveField("Name", "os-real-1")
		Expect(c.env.Cloud().NICs()).To(ContainElements(And(named, HaveField("ID", labelled)), And(named, HaveField("ServerID", other))))
		Expect(c.env.Cloud().Volumes()).NotTo(ContainElement(Or(named, HaveField("Name", "os-marked-1"))))
	}, SpecTimeout(6*time.Minute))
})

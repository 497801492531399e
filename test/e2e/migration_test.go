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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
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
	return c.attach(ctx, name, c.createNIC(ctx, iaasmock.DefaultNetworkID, name, nil), c.createVolume(ctx, name), asMetadata)
}

// openStackTags are what Gardener's OpenStack provider marks servers with. How the API shows
// them is not known.
var openStackTags = map[string]any{"kubernetes.io-cluster-" + clusterName: "1", "kubernetes.io-role-node": "1"}

func asMetadata(payload *iaas.CreateServerPayload) { payload.Metadata = openStackTags }

func asLabels(payload *iaas.CreateServerPayload) { payload.Labels = openStackTags }

func (c *cluster) attach(ctx context.Context, name, nicID, volumeID string, tag func(*iaas.CreateServerPayload)) (serverID string) {
	GinkgoHelper()
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nicID}},
	})
	tag(payload)
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

var _ = Describe("Machines from OpenStack", long, func() {
	It("keep their servers under the IDs of Gardener's OpenStack provider, and take all along when they go", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(providerSpec{
			"allowedAddresses": []any{"100.96.0.0/11"}, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID}}))
		id := c.fromOpenStack(ctx, "os-real-1")
		c.predecessors(ctx, "worker", "os-real-1")
		c.changeMachine(ctx, "os-real-1", setProviderID("openstack:///RegionOne/"+id))
		// Names alone say nothing: these stay.
		labelled := c.createNIC(ctx, iaasmock.DefaultDualStackNetworkID, "os-real-1", map[string]any{clusterLabel: clusterName})
		other := c.attach(ctx, "os-other", c.createNIC(ctx, iaasmock.DefaultNetworkID, "os-real-1", nil), c.createVolume(ctx, "os-other"), asMetadata)
		DeferCleanup(func(ctx SpecContext) {
			c.deleteByHand(ctx, other)
			c.discardRest(ctx, []string{labelled}, nil)
			Expect(c.target.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "os-other"}})).To(Succeed())
		})
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		c.becomesRunning(ctx, "os-real-1", id)
		Expect(c.nics(id)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11"))))

		By("letting an orphan run look at it, with the ID of before and with ours")
		c.env.Cloud().ResetCalls()
		c.restartSidecar(ctx)
		Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll).Should(HaveKey("ListServers"))
		c.changeMachine(ctx, "os-real-1", func(machine *v1alpha1.Machine) {
			mark(machine)
			machine.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + id
		})
		By("giving it our labels, now that its ID is ours")
		labels := And(HaveKeyWithValue(provider.StackitMachineLabel, "os-real-1"),
			HaveKeyWithValue(provider.StackitMachineClassLabel, "worker"), HaveKeyWithValue(clusterLabel, clusterName))
		Expect(c.env.Cloud().Servers()).To(HaveEach(HaveField("Labels", BeEmpty())))
		c.label(ctx, id, "os-real-1", "worker")
		Expect(c.env.Cloud().Servers()).To(ConsistOf(And(HaveField("ID", id), HaveField("Labels", labels)),
			And(HaveField("ID", other), HaveField("Labels", BeEmpty()))))
		c.env.Cloud().ResetCalls()
		c.restartSidecar(ctx)
		Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll).Should(HaveKey("ListServers"))
		Expect(c.serverIDs()).To(ConsistOf(id, other))

		By("deleting it")
		Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(2 * downTimeout).WithPolling(poll).Should(BeEmpty())
		Expect(c.serverIDs()).To(ConsistOf(other))
		named := HaveField("Name", "os-real-1")
		Expect(c.env.Cloud().NICs()).To(ContainElements(And(named, HaveField("ID", labelled)), And(named, HaveField("ServerID", other))))
		Expect(c.env.Cloud().Volumes()).NotTo(ContainElement(named))
	})

	It("are taken over one by one, when somebody has marked them", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		first, second := c.fromOpenStack(ctx, "os-first"), c.fromOpenStack(ctx, "os-second")
		twins := []string{c.fromOpenStack(ctx, "os-twins"), c.fromOpenStack(ctx, "os-twins")}
		c.predecessors(ctx, "worker", "os-first", "os-second", "os-twins", "os-never")
		c.changeMachine(ctx, "os-twins", mark)
		c.changeMachine(ctx, "os-never", mark)
		c.env.Cloud().ResetCalls()
		Expect(c.env.StartSidecar(ctx)).To(Succeed())

		By("marking the first when the sidecar has begun to look for its server")
		Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll / 10).Should(HaveKey("ListServers"))
		c.changeMachine(ctx, "os-first", mark)
		c.becomesRunning(ctx, "os-first", first)
		Eventually(ctx, c.machine("os-second")).WithTimeout(upTimeout).WithPolling(poll).
			Should(HaveField("Status.LastOperation.Description", WithTransform(provider.ReasonIn, Equal(provider.ReasonNotOurs))), "it is not marked yet")
		for _, name := range []string{"os-twins", "os-never"} {
			Eventually(ctx, c.machine(name)).WithTimeout(upTimeout).WithPolling(poll).
				Should(HaveField("Status.LastOperation.Description", WithTransform(provider.ReasonIn, Equal(provider.ReasonNotTakenOver))))
		}
		Expect(c.serverIDs()).To(ConsistOf(append(twins, first, second)), "none has a second server")

		By("marking the second, and naming the server of the third")
		c.changeMachine(ctx, "os-second", mark)
		c.changeMachine(ctx, "os-twins", setProviderID("stackit://"+iaasmock.DefaultProjectID+"/"+twins[0]))
		c.becomesRunning(ctx, "os-second", second)
		c.becomesRunning(ctx, "os-twins", twins[0])
		Expect(c.serverIDs()).To(ConsistOf(append(twins, first, second)))
		Expect(c.env.Cloud().CallCounts()).NotTo(Or(HaveKey("CreateServer"), HaveKey("DeleteServer")))

		By("deleting the third, whose twin is nobody's")
		Expect(c.Delete(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: "os-twins"}})).To(Succeed())
		Eventually(ctx, c.serverIDs).WithTimeout(2 * downTimeout).WithPolling(poll).Should(ConsistOf(twins[1], first, second))
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(3))
		Expect(c.serverIDs()).To(ConsistOf(twins[1], first, second))
		c.deleteByHand(ctx, twins[1])
	})

	// The cloud shows NICs and volumes as attached for a while after their server is gone, tags
	// as labels, and takes the labels of a PATCH for all of them.
	It("roll on where the earlier provider began, and leave nothing", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithCloudOptions(
			iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration), iaasmock.WithReleaseDuration(10*time.Second), iaasmock.WithReplacedLabels())))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "before", specWith(nil))
		c.createClass(ctx, "after", specWith(nil))
		c.env.KillSidecar()
		deployment := c.createDeployment(ctx, "os-pool", "before", 2)
		Eventually(ctx, c.machines).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		old, err := c.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		var ids []string
		for i := range old {
			name := old[i].Name
			ids = append(ids, c.attach(ctx, name, c.createNIC(ctx, iaasmock.DefaultNetworkID, name, nil), c.createVolume(ctx, name), asLabels))
			c.changeMachine(ctx, old[i].Name, setProviderID("openstack:///RegionOne/"+ids[i]))
		}
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		c.env.KillSidecar()
		c.changeMachine(ctx, old[0].Name, func(machine *v1alpha1.Machine) {
			mark(machine)
			machine.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + ids[0]
		})
		c.label(ctx, ids[0], old[0].Name, "before")
		Expect(c.env.Cloud().Servers()).To(ConsistOf(
			And(HaveField("ID", ids[0]), HaveField("Labels", And(HaveKeyWithValue("kubernetes.io-role-node", "1"),
				HaveKeyWithValue("kubernetes.io-cluster-"+clusterName, "1"), HaveKeyWithValue(provider.StackitMachineLabel, old[0].Name)))),
			And(HaveField("ID", ids[1]), HaveField("Labels", HaveLen(2)))))
		change(ctx, c, deployment, func() { deployment.Spec.Template.Spec.Class.Name = "after" })
		Eventually(ctx, c.machines).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(3), "the update has begun")

		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		after := HaveField("Spec.Class.Name", "after")
		Eventually(ctx, c.running).WithTimeout(2 * (upTimeout + downTimeout)).WithPolling(poll).Should(ConsistOf(after, after))
		Eventually(ctx, c.machines).WithTimeout(2 * downTimeout).WithPolling(poll).Should(HaveLen(2))
		Expect(c.serverIDs()).To(And(HaveLen(2), Not(ContainElement(ids[0])), Not(ContainElement(ids[1]))))
		for i := range old {
			named := HaveField("Name", old[i].Name)
			Expect(c.env.Cloud().NICs()).NotTo(ContainElement(named))
			Expect(c.env.Cloud().Volumes()).NotTo(ContainElement(named))
		}
	}, NodeTimeout(10*time.Minute))

	It("are reported if their servers were labelled before their ProviderIDs were rewritten", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		id := c.fromOpenStack(ctx, "os-early")
		c.predecessors(ctx, "worker", "os-early")
		c.changeMachine(ctx, "os-early", setProviderID("openstack:///RegionOne/"+id))
		c.label(ctx, id, "os-early", "worker")
		listed := newCommand(c.env).run(ctx, "list", "machines")
		Expect(listed.Code).To(Equal(0), listed.Stderr)
		Expect(listed.Stdout).To(ContainSubstring("ProviderID in another form"))

		c.changeMachine(ctx, "os-early", setProviderID("stackit://"+iaasmock.DefaultProjectID+"/"+id))
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		c.becomesRunning(ctx, "os-early", id)
		Expect(c.serverIDs()).To(ConsistOf(id))
		// Its NIC and volume are for the user: nothing says that they came from OpenStack.
		c.changeMachine(ctx, "os-early", mark)
	})
})

var _ = Describe("Machines of the public STACKIT provider", func() {
	It("keep their servers, and ours have what it looks for", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		c.createServer(ctx, "public-1", "worker")
		server := c.onlyServer()
		providerID := "stackit://" + iaasmock.DefaultProjectID + "/" + server.ID
		c.predecessors(ctx, "worker", "public-1")
		c.changeMachine(ctx, "public-1", setProviderID(providerID))
		c.env.Cloud().ResetCalls()
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		c.becomesRunning(ctx, "public-1", server.ID)
		Expect(c.env.Cloud().CallCounts()).NotTo(Or(HaveKey("CreateServer"), HaveKey("DeleteServer")))

		c.createMachine(ctx, "ours-1", "worker")
		Eventually(ctx, c.machine("ours-1")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))
		ours, err := c.machine("ours-1")(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, made := range c.env.Cloud().Servers() {
			Expect(made.Labels).To(And(HaveKeyWithValue("kubernetes.io/machine", made.Name), HaveKeyWithValue("kubernetes.io/machineclass", "worker")))
			if made.Name == "ours-1" {
				Expect(ours.Spec.ProviderID).To(Equal("stackit://" + iaasmock.DefaultProjectID + "/" + made.ID))
			}
		}
	})
})

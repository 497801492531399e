// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// havePhase is for Machines read with (*cluster).machine.
func havePhase(phase v1alpha1.MachinePhase) OmegaMatcher {
	return HaveField("Status.CurrentStatus.Phase", phase)
}

var _ = Describe("A Machine", func() {
	It("becomes a server and a Node, and is gone without a trace", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		machine := c.createMachine(ctx, "single", "small")
		Eventually(ctx, c.machine("single")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))

		server := c.onlyServer()
		Expect(server).To(And(HaveField("Name", "single"), HaveField("Status", iaasmock.StatusActive)))
		Expect(c.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		Expect(machine.Spec.ProviderID).To(Equal("stackit://" + iaasmock.DefaultProjectID + "/" + server.ID))
		Expect(machine.Labels).To(HaveKeyWithValue(v1alpha1.NodeLabelKey, "single"))
		node := &corev1.Node{}
		Expect(c.Get(ctx, client.ObjectKey{Name: "single"}, node)).To(Succeed())
		Expect(node.Spec.ProviderID).To(Equal("stackit://" + server.ID))

		Expect(c.Delete(ctx, machine)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
	})

	It("is deleted while its server is still being created", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		machine := c.createMachine(ctx, "short-lived", "small")
		Eventually(c.env.Cloud().Servers).WithPolling(poll / 10).WithTimeout(upTimeout).
			Should(ConsistOf(HaveField("Status", iaasmock.StatusCreating)))
		Expect(c.Delete(ctx, machine)).To(Succeed())
		// The manager comes back to a deletion that met a running creation after 3
		// minutes, unless something else wakes it.
		Eventually(ctx, c.machines).WithTimeout(2 * downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
	})

	It("gets its server with every field of the providerSpec", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "full", providerSpec{
			"region":              iaasmock.DefaultRegion,
			"machineType":         iaasmock.DefaultMachineType,
			"labels":              map[string]any{clusterLabel: clusterName, "team": "platform", "kubernetes.io/machine": "not-overridable"},
			"networking":          map[string]any{"nicIds": []any{iaasmock.DefaultNICID}},
			"allowedAddresses":    []any{"100.96.0.0/11", "fd00:10::1"},
			"securityGroups":      []any{iaasmock.DefaultSecurityGroupName},
			"userData":            "#cloud-config of the class",
			"bootVolume":          map[string]any{"size": 30, "performanceClass": "storage_premium_perf4", "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
			"volumes":             []any{iaasmock.DefaultVolumeID},
			"keypairName":         iaasmock.DefaultKeypairName,
			"availabilityZone":    iaasmock.DefaultAvailabilityZone,
			"affinityGroup":       iaasmock.DefaultAffinityGroupID,
			"serviceAccountMails": []any{"worker@sa.stackit.cloud"},
			"agent":               map[string]any{"provisioned": true},
			"metadata":            map[string]any{"tier": "batch"},
		})
		c.createMachine(ctx, "every-field", "full")
		Eventually(ctx, c.machine("every-field")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))

		Expect(c.onlyServer()).To(And(
			HaveField("Region", iaasmock.DefaultRegion),
			HaveField("MachineType", iaasmock.DefaultMachineType),
			HaveField("Labels", Equal(map[string]string{clusterLabel: clusterName, "team": "platform",
				"kubernetes.io/machine": "every-field", "kubernetes.io/machineclass": "full"})),
			HaveField("NICIDs", ConsistOf(iaasmock.DefaultNICID)),
			HaveField("SecurityGroups", ConsistOf(iaasmock.DefaultSecurityGroupID)),
			HaveField("UserData", BeEquivalentTo("#cloud-config of the class")),
			HaveField("BootVolume", PointTo(And(
				HaveField("Size", BeEquivalentTo(30)), HaveField("PerformanceClass", "storage_premium_perf4"),
				HaveField("DeleteOnTermination", true), HaveField("SourceType", "image"), HaveField("SourceID", iaasmock.DefaultImageID)))),
			HaveField("VolumeIDs", And(HaveLen(2), ContainElement(iaasmock.DefaultVolumeID))),
			HaveField("KeypairName", iaasmock.DefaultKeypairName),
			HaveField("AvailabilityZone", iaasmock.DefaultAvailabilityZone),
			HaveField("AffinityGroup", iaasmock.DefaultAffinityGroupID),
			HaveField("ServiceAccountMails", ConsistOf("worker@sa.stackit.cloud")),
			HaveField("AgentProvisioned", PointTo(BeTrue())),
			HaveField("Metadata", HaveKeyWithValue("tier", "batch")),
		))
		Expect(c.nics(c.onlyServer().ID)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11", "fd00:10::1/128"))))
	})

	It("boots with the Secret's userData, its placeholders replaced, in the Secret's network", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "addresses", specWith(providerSpec{"allowedAddresses": []any{"100.96.0.0/11"}}))
		c.createMachine(ctx, "with-user-data", "addresses")
		Eventually(ctx, c.machine("with-user-data")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))

		server := c.onlyServer()
		Expect(string(server.UserData)).To(MatchRegexp(`^#cloud-config\n# ` + userDataCanary + `\nhostname: with-user-data\ntoken: [a-z0-9]{6}\.[a-z0-9]{16}\n$`))
		Expect(server.NetworkID).To(Equal(iaasmock.DefaultNetworkID))
		Expect(c.nics(server.ID)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11"))))
	})

	It("without a target cluster becomes Available with the server's addresses", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithTargetless()))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		c.createMachine(ctx, "no-node", "small")
		Eventually(ctx, c.machine("no-node")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineAvailable))

		nics := c.nics(c.onlyServer().ID)
		Expect(nics).To(HaveLen(1))
		machine, err := c.machine("no-node")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(machine.Status.Addresses).To(ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nics[0].IPv4}))
	})
})

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the manager does with machines that live, without a call of the driver.

var _ = Describe("An update in place", long, func() {
	// nodesToUpdate are the Nodes that the manager has drained for the update.
	nodesToUpdate := func(c *cluster) func(context.Context) ([]corev1.Node, error) {
		return func(ctx context.Context) (ready []corev1.Node, err error) {
			var nodes corev1.NodeList
			err = c.target.List(ctx, &nodes)
			for _, node := range nodes.Items {
				for _, condition := range node.Status.Conditions {
					if condition.Type == v1alpha1.NodeInPlaceUpdate && condition.Reason == v1alpha1.ReadyForUpdate && node.Labels[v1alpha1.LabelKeyNodeUpdateResult] == "" {
						ready = append(ready, node)
					}
				}
			}
			return ready, err
		}
	}

	// updateNode is what the agent on the Node does: it updates the Node, and says how that went.
	updateNode := func(ctx context.Context, c *cluster, node *corev1.Node, result string) {
		GinkgoHelper()
		before := node.DeepCopy()
		metav1.SetMetaDataLabel(&node.ObjectMeta, v1alpha1.LabelKeyNodeUpdateResult, result)
		Expect(c.target.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	}

	It("moves the Machines to the new MachineSet, and leaves their servers alone", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "before", specWith(nil))
		c.createClass(ctx, "after", specWith(providerSpec{"userData": "#cloud-config of the new class"}))
		deployment := c.newDeployment("in-place", "before", 2)
		one, none := intstr.FromInt32(1), intstr.FromInt32(0)
		deployment.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
			Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
				UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxUnavailable: &one, MaxSurge: &none},
				OrchestrationType:   v1alpha1.OrchestrationTypeAuto,
			},
		}
		Expect(c.Create(ctx, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		servers := c.env.Cloud().Servers()
		c.env.Cloud().ResetCalls()

		change(ctx, c, deployment, func() { deployment.Spec.Template.Spec.Class.Name = "after" })
		for range 2 {
			Eventually(ctx, nodesToUpdate(c)).WithTimeout(downTimeout).WithPolling(poll).
				Should(ConsistOf(HaveField("Spec.Unschedulable", BeTrue())), "one Node at a time, drained")
			nodes, err := nodesToUpdate(c)(ctx)
			Expect(err).NotTo(HaveOccurred())
			updateNode(ctx, c, &nodes[0], v1alpha1.LabelValueNodeUpdateSuccessful)
		}
		Eventually(ctx, func(ctx context.Context) ([]v1alpha1.MachineSet, error) {
			var sets v1alpha1.MachineSetList
			err := c.List(ctx, &sets, client.InNamespace(c.env.Namespace()))
			return sets.Items, err
		}).WithTimeout(downTimeout).WithPolling(poll).Should(ConsistOf(
			And(HaveField("Spec.Template.Spec.Class.Name", "after"), HaveField("Status.AvailableReplicas", BeEquivalentTo(2))),
			And(HaveField("Spec.Template.Spec.Class.Name", "before"), HaveField("Status.Replicas", BeZero()))))
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))

		// A class goes when no Machine names it: the servers' label stays true.
		Expect(c.machines(ctx)).To(HaveEach(HaveField("Spec.Class.Name", "before")))
		Expect(c.env.Cloud().Servers()).To(ConsistOf(servers[0], servers[1]), "the servers are as they were")
		Expect(c.env.Cloud().CallCounts()).NotTo(Or(HaveKey("CreateServer"), HaveKey("DeleteServer")))
	})
})

// What preservation is: docs/usage/machine-preservation.md of machine-controller-manager.
var _ = Describe("A Machine that failed and is preserved", long, func() {
	var (
		c      *cluster
		server iaasmock.Server
	)
	isPreserved := And(havePhase(v1alpha1.MachineFailed), HaveField("Status.CurrentStatus.PreserveExpiryTime", Not(BeNil())))

	// The one Machine of a MachineDeployment fails, since its server was stopped.
	BeforeEach(func(ctx SpecContext) {
		c = sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		deployment := c.newDeployment("preserved", "small", 1)
		deployment.Spec.AutoPreserveFailedMachineMax = 1
		deployment.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
			MachineHealthTimeout: &metav1.Duration{Duration: 5 * time.Second}}
		Expect(c.Create(ctx, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(1))
		server = c.onlyServer()
		c.env.Cloud().ResetCalls()
		Expect(c.env.Cloud().SetServerStatus(server.ID, iaasmock.StatusInactive, "")).To(Succeed())
		Eventually(ctx, c.machine(server.Name)).WithTimeout(upTimeout).WithPolling(poll).Should(isPreserved)
		// An orphan run is the first thing a sidecar does.
		c.restartSidecar(ctx)
		Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll).Should(HaveKey("ListServers"))
		Expect(c.machine(server.Name)(ctx)).To(isPreserved)
		Expect(c.onlyServer().ID).To(Equal(server.ID))
	})

	It("runs again with the same server when that recovers", func(ctx SpecContext) {
		Expect(c.env.Cloud().SetServerStatus(server.ID, iaasmock.StatusActive, "")).To(Succeed())
		Eventually(ctx, c.machine(server.Name)).WithTimeout(upTimeout).WithPolling(poll).
			Should(And(havePhase(v1alpha1.MachineRunning), HaveField("Status.CurrentStatus.PreserveExpiryTime", BeNil())))
		Expect(c.onlyServer().ID).To(Equal(server.ID))
		Expect(c.env.Cloud().CallCounts()).NotTo(Or(HaveKey("CreateServer"), HaveKey("DeleteServer")))
	})

	It("is replaced when the preservation ends, and its server goes", func(ctx SpecContext) {
		machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: server.Name}}
		change(ctx, c, machine, func() {
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, machineutils.PreserveMachineAnnotationKey, machineutils.PreserveMachineAnnotationValueFalse)
		})
		Eventually(ctx, c.running).WithTimeout(upTimeout + downTimeout).WithPolling(poll).Should(ConsistOf(HaveField("Name", Not(Equal(server.Name)))))
		Eventually(c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll).Should(ConsistOf(HaveField("ID", Not(Equal(server.ID)))))
		Expect(c.env.Cloud().CallCounts()).To(HaveKeyWithValue("CreateServer", 1))
	})
})

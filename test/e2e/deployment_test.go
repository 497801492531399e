// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var _ = Describe("A MachineDeployment", long, func() {
	It("comes up, is scaled up and down, and rolls to another MachineClass", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "before", specWith(nil))
		c.createClass(ctx, "after", specWith(providerSpec{"machineType": "g2i.4"}))
		expectMachines := func(count int, machineType string) {
			GinkgoHelper()
			Eventually(ctx, c.running).WithTimeout(upTimeout + downTimeout).WithPolling(poll).Should(HaveLen(count))
			Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(count), "Machines that are going")
			Expect(c.env.Cloud().Servers()).To(And(HaveLen(count),
				HaveEach(And(HaveField("Status", iaasmock.StatusActive), HaveField("MachineType", machineType)))))
		}

		By("coming up")
		deployment := c.createDeployment(ctx, "workers", "before", 2)
		expectMachines(2, iaasmock.DefaultMachineType)

		By("scaling up")
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = 4 })
		expectMachines(4, iaasmock.DefaultMachineType)

		By("scaling down")
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = 2 })
		expectMachines(2, iaasmock.DefaultMachineType)

		By("rolling to another class")
		change(ctx, c, deployment, func() { deployment.Spec.Template.Spec.Class.Name = "after" })
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout + downTimeout).WithPolling(poll).
			Should(HaveEach(HaveField("MachineType", "g2i.4")))
		expectMachines(2, "g2i.4")
	})
})

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var _ = Describe("Wrong input", long, func() {
	It("in the providerSpec is told field by field, and heals at once when the class is fixed", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		c.createSecret(ctx, nil)
		class := c.createClass(ctx, "wrong", providerSpec{
			"imageId":          "ubuntu",
			"bootVolume":       map[string]any{"size": "20"},
			"allowedAddresses": []any{"10.0.0.0/33"},
			"volumes":          []any{"data"},
		})
		c.createMachine(ctx, "misconfigured", "wrong")
		Eventually(ctx, c.machine("misconfigured")).WithTimeout(upTimeout).WithPolling(poll).Should(And(
			havePhase(v1alpha1.MachineCrashLoopBackOff),
			HaveField("Status.LastOperation.ErrorCode", "InvalidArgument"),
			HaveField("Status.LastOperation.Description", And(
				ContainSubstring("providerSpec.machineType"), ContainSubstring("providerSpec.imageId"), ContainSubstring("providerSpec.bootVolume"),
				ContainSubstring("providerSpec.allowedAddresses"), ContainSubstring("providerSpec.volumes")))))
		Expect(c.env.Cloud().Servers()).To(BeEmpty())

		change(ctx, c, class, func() { class.ProviderSpec = rawSpec(specWith(nil)) })
		Eventually(ctx, c.machine("misconfigured")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))
	})

	It("in the Secret is told field by field, and heals within 3 minutes when the Secret is fixed", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		secret := c.createSecret(ctx, func(data map[string][]byte) {
			data["projectId"] = []byte("my-project")
			data["networkId"] = []byte("my-network")
			data["serviceAccountKey"] = []byte("{}")
		})
		c.createClass(ctx, "small", specWith(nil))
		c.createMachine(ctx, "locked-out", "small")
		Eventually(ctx, c.machine("locked-out")).WithTimeout(upTimeout).WithPolling(poll).Should(And(
			havePhase(v1alpha1.MachineCrashLoopBackOff),
			HaveField("Status.LastOperation.Description", And(
				ContainSubstring("secret.projectId"), ContainSubstring("secret.networkId"), ContainSubstring("secret.serviceAccountKey")))))
		Expect(c.env.Cloud().Servers()).To(BeEmpty())

		change(ctx, c, secret, func() {
			secret.Data["projectId"] = []byte(iaasmock.DefaultProjectID)
			secret.Data["networkId"] = []byte(iaasmock.DefaultNetworkID)
			secret.Data["serviceAccountKey"] = c.env.ServiceAccountKey()
		})
		Eventually(ctx, c.machine("locked-out")).WithTimeout(3*time.Minute + upTimeout).WithPolling(poll).
			Should(havePhase(v1alpha1.MachineRunning))
	})
})

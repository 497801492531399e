// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("The console of the mock", long, func() {
	// healTimeout allows for the time in which the sidecar takes a class for
	// exhausted without asking.
	const healTimeout = time.Minute + upTimeout

	It("shows machines come and go, and lets a person break and mend the cloud", func(ctx SpecContext) {
		findChromium() // before the environment starts in vain
		c := newCluster(startEnvironment(ctx,
			localenv.WithCloudOptions(iaasmock.WithBootDuration(4*time.Second), iaasmock.WithDeleteDuration(4*time.Second)),
			localenv.WithSidecarArgs("--resource-exhausted-retry=5s")))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		page := openBrowser(c.env.CloudURL())
		page.expectText(ctx, "#connection", Equal("live"))
		Expect(page.rows()).To(BeEmpty())

		By("scaling up")
		deployment := c.createDeployment(ctx, "workers", "small", 1)
		page.expectRows(ctx, upTimeout, ConsistOf(iaasmock.StatusCreating))
		page.expectRows(ctx, upTimeout, ConsistOf(iaasmock.StatusActive))
		Expect(page.text("#groups h4")).To(Equal(clusterName+"/small"), "the group's cluster and class")
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = 2 })
		page.expectRows(ctx, upTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusActive))
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))

		By("scaling down")
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = 1 })
		page.expectRows(ctx, downTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusDeleting))
		page.expectRows(ctx, downTimeout, ConsistOf(iaasmock.StatusActive))

		By("running out of capacity at a click")
		page.click(`[data-preset="no-capacity"]`)
		Eventually(c.env.Cloud().Faults).WithTimeout(actionTimeout).Should(HaveLen(1))
		page.expectText(ctx, "#active-faults", ContainSubstring("no-capacity"))
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = 2 })
		Eventually(ctx, c.exhausted).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(1))
		page.expectText(ctx, "#active-faults", MatchRegexp(`[1-9]\d* hits?`))

		By("mending it at a click")
		page.click("#clear-faults")
		Eventually(c.env.Cloud().Faults).WithTimeout(actionTimeout).Should(BeEmpty())
		page.expectText(ctx, "#active-faults", BeEmpty())
		page.expectRows(ctx, healTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusActive))
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		Expect(c.exhausted(ctx)).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})

// exhausted are the Machines that are told that the cloud has no room for them.
func (c *cluster) exhausted(ctx context.Context) ([]v1alpha1.Machine, error) {
	all, err := c.machines(ctx)
	return slices.DeleteFunc(all, func(machine v1alpha1.Machine) bool {
		last := machine.Status.LastOperation
		return last.ErrorCode != "ResourceExhausted" || last.State != v1alpha1.MachineStateFailed
	}), err
}

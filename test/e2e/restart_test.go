// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// As in each update of the Deployment. Lists lag, so that the next sidecar does not see at once what its
// predecessor has made.
var _ = Describe("A sidecar that is terminated in the middle of creations", longest, func() {
	It("leaves no Machine without its server and none with two", func(ctx SpecContext) {
		const machines = 6
		c := newCluster(startEnvironment(ctx, localenv.WithCloudOptions(iaasmock.WithListLag(25*time.Second))))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))

		By("terminating it while POSTs have made servers and are not answered")
		c.env.Cloud().Inject(iaasmock.Fault{Operation: "CreateServer", AnswerDelay: 3 * time.Second})
		for i := range machines {
			c.createMachine(ctx, fmt.Sprintf("worker-%d", i), "worker")
		}
		servers := c.env.Cloud().Servers
		Eventually(ctx, servers).WithTimeout(upTimeout).WithPolling(poll / 10).ShouldNot(BeEmpty())
		c.env.TerminateSidecar()
		Expect(c.running(ctx)).To(BeEmpty())

		By("starting the next")
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(2 * upTimeout).WithPolling(poll).Should(HaveLen(machines))
		verify()
		Expect(servers()).To(HaveLen(machines))
	})
})

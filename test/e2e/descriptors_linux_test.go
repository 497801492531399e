// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// Linux alone limits a process that runs.
var _ = Describe("A sidecar that may open three files more", long, func() {
	It("makes one server for each Machine and recovers, though calls find no file descriptor", func(ctx SpecContext) {
		const machines = 20
		// A call that is under way has a connection of its own: more of them than three at a time.
		c := newCluster(startEnvironment(ctx, localenv.WithCloudOptions(iaasmock.WithLatency(time.Second, time.Second))))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		sidecar := c.env.PID(localenv.PartSidecar)
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", sidecar))
		Expect(err).NotTo(HaveOccurred())
		limit := uint64(len(open) + 3)
		few := unix.Rlimit{Cur: limit, Max: limit}
		Expect(unix.Prlimit(sidecar, unix.RLIMIT_NOFILE, &few, nil)).To(Succeed())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		for i := range machines {
			c.createMachine(ctx, fmt.Sprintf("worker-%d", i), "worker")
		}
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(machines))
		verify()
		Expect(c.env.Cloud().Servers()).To(HaveLen(machines))
		Expect(c.env.Logs(localenv.PartSidecar)).To(ContainSubstring("too many open files"), "the limit is to be felt")
		Expect(c.env.PID(localenv.PartSidecar)).To(Equal(sidecar))
	})
})

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// expectMetricsInUse expects that the sidecar, with a Machine, has all metrics that alerts and dashboard read. The
// driver's own are in a generated table; some begin with their first event.
func (c *cluster) expectMetricsInUse(ctx context.Context) {
	GinkgoHelper()
	queries, err := monitoring.Queries()
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) { // some are set during a scrape, or each minute
		shown := readMetrics(ctx, c.env.SidecarMetricsURL())
		for user, query := range queries {
			for _, name := range monitoring.MetricNames(query) {
				if !strings.HasPrefix(name, "stackit_") && name != "up" && name != "ALERTS" {
					g.Expect(shown).To(ContainSubstring("# TYPE "+name+" "), user)
				}
			}
		}
	}).WithTimeout(upTimeout).WithPolling(poll).Should(Succeed())
}

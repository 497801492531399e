// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// expectMetricsInUse expects that the sidecar, with a Machine, has all metrics that alerts and dashboard read. The
// driver's own are in a generated table; some begin with their first event.
func (c *cluster) expectMetricsInUse(ctx context.Context) {
	GinkgoHelper()
	queries, err := monitoring.Queries()
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) { // some are set during a scrape, or each minute
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		g.Expect(err).NotTo(HaveOccurred())
		seen := map[string]bool{}
		for _, sample := range samples {
			seen[monitoring.Family(string(sample.Metric[model.MetricNameLabel]))] = true
		}
		for user, query := range queries {
			for _, name := range monitoring.MetricNames(query) {
				if !strings.HasPrefix(name, "stackit_") && name != "up" && name != "ALERTS" {
					g.Expect(seen).To(HaveKey(name), user)
				}
			}
		}
	}).WithTimeout(upTimeout).WithPolling(poll).Should(Succeed())
}

// readMetrics returns the series that a process shows at the URL.
func readMetrics(ctx context.Context, url string) (model.Vector, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, slices.Collect(maps.Values(families))...)
}

// measured are the metrics of one scrape.
type measured model.Vector

// sum adds up the series of a metric that have these values among their labels.
func (m measured) sum(name string, values ...string) (sum float64) {
	for _, sample := range m {
		has := slices.Collect(maps.Values(sample.Metric))
		if slices.Contains(has, model.LabelValue(name)) &&
			!slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(has, model.LabelValue(value)) }) {
			sum += float64(sample.Value)
		}
	}
	return sum
}

// expectKnownOperations looks for requests that the sidecar's metrics have no name for.
func (c *cluster) expectKnownOperations(ctx context.Context) {
	GinkgoHelper()
	if c.env.PID(localenv.PartSidecar) != 0 {
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		Expect(err).NotTo(HaveOccurred())
		Expect(measured(samples).sum("stackit_api_http_requests_total", "UnknownOperation")).To(BeZero())
	}
}

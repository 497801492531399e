// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// services are the operations of the mock that the sidecar uses, by the service that the
// manager's metrics give each.
var services = map[string][]string{
	"servers": {"CreateServer", "GetServer", "ListServers", "DeleteServer"},
	"nics":    {"ListServerNICs", "ListNics", "UpdateNic"},
	"token":   {fault.OperationToken},
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

var _ = Describe("The sidecar's metrics", long, func() {
	It("count what the cloud counts", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithSidecarArgs("--machine-safety-orphan-vms-period=5s",
			// Lists of this mock do not lag.
			"--stackit-settle=2s")))
		cloud := c.env.Cloud()
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(providerSpec{"allowedAddresses": []string{"100.64.0.0/12"}}))

		By("losing an answer")
		cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		c.createMachine(ctx, "machine-000-x", "small")
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(1))
		By("making a second server, which the orphan collector deletes")
		cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Duplicate: true})
		c.createMachine(ctx, "machine-001-x", "small")
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		Eventually(cloud.Servers).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		By("a call that is tried again")
		cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: 429})
		c.createMachine(ctx, "machine-002-x", "small")
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(3))

		c.expectMeasured(ctx, map[string]float64{
			"stackit_servers":                                 3,
			"mcm_machine_items_total":                         3,
			"stackit_server_posts_total accepted":             2,
			"stackit_server_posts_total unknown":              1,
			"stackit_server_posts_total refused":              0,
			"stackit_api_http_retries_total 429":              1,
			"stackit_api_http_errors_total 429":               1,
			"stackit_api_http_errors_total network_error":     1,
			"stackit_machine_creation_duration_seconds_count": 2, // of those that were accepted
			"stackit_machine_deletion_duration_seconds_count": 0, // nobody waits for the orphan
			"stackit_orphan_servers_deleted_total":            1,
			"stackit_duplicate_servers_total":                 0,
			"stackit_token_fetches_total granted":             1,
			"stackit_token_fetches_total refused":             0,
			"stackit_build_info":                              1,
		})
		readings := c.scrape(ctx)
		Expect(readings.sum("stackit_servers", "small", iaasmock.DefaultMachineType, iaasmock.StatusActive)).
			To(BeEquivalentTo(3))
		Expect(readings.sum("stackit_machine_creation_duration_seconds_sum")).To(And(
			BeNumerically(">=", 2*bootDuration.Seconds()), BeNumerically("<", 60)))
		Expect(readings.sum("stackit_api_wait_seconds_total", "read_limit")).To(BeNumerically(">", 0))
		Expect(readings.sum("mcm_cloud_api_driver_request_duration_seconds_count", "CreateMachine")).To(BeNumerically(">=", 3))
		for _, resource := range []string{"servers", "nics"} {
			served := readings.sum("stackit_read_callers_total", resource, "single")
			Expect(served).To(And(BeNumerically(">", 0), BeNumerically("<=", readings.sum("stackit_reads_total", resource, "single"))))
		}

		By("deleting the Machines")
		machines, err := c.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range machines {
			Expect(c.Delete(ctx, &machines[i])).To(Succeed())
		}
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectMeasured(ctx, map[string]float64{
			"stackit_servers":                                 0,
			"mcm_machine_items_total":                         0,
			"stackit_machine_deletion_duration_seconds_count": 3,
			"stackit_duplicate_servers_total":                 0,
			"mcm_cloud_api_driver_requests_failed_total":      0,
		})
	}, SpecTimeout(6*time.Minute))
})

func (c *cluster) scrape(ctx context.Context) measured {
	GinkgoHelper()
	samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
	Expect(err).NotTo(HaveOccurred())
	return measured(samples)
}

// expectMeasured waits until the sidecar's metrics have the values, given by name and label
// value, and count the API calls that the mock counts.
func (c *cluster) expectMeasured(ctx context.Context, want map[string]float64) {
	GinkgoHelper()
	Eventually(ctx, func() ([]string, error) {
		before := c.env.Cloud().CallCounts()
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		if err != nil {
			return nil, err
		}
		if after := c.env.Cloud().CallCounts(); !maps.Equal(before, after) {
			return []string{"calls came meanwhile"}, nil
		}
		return append(measured(samples).differences(want), measured(samples).differentCalls(before)...), nil
	}).WithTimeout(30 * time.Second).WithPolling(poll).Should(BeEmpty())
}

// differences says which of the wanted values it does not have.
func (m measured) differences(want map[string]float64) (found []string) {
	for series, value := range want {
		words := strings.Fields(series)
		if got := m.sum(words[0], words[1:]...); got != value {
			found = append(found, fmt.Sprintf("%s is %v, want %v", series, got, value))
		}
	}
	return found
}

// differentCalls compares its API calls, ours and those of the manager's metrics, with the
// mock's.
func (m measured) differentCalls(counts map[string]int) (found []string) {
	unknown := maps.Clone(counts)
	for service, operations := range services {
		calls := 0
		for _, operation := range operations {
			count := counts[operation]
			calls += count
			delete(unknown, operation)
			if operation == fault.OperationToken {
				operation = "GetAccessToken"
			}
			for _, name := range []string{"stackit_api_http_requests_total", "stackit_api_http_request_duration_seconds_count"} {
				if got := m.sum(name, operation, "machine-controller-manager-provider-stackit"); got != float64(count) {
					found = append(found, fmt.Sprintf("%s counts %v of %s, the cloud %d", name, got, operation, count))
				}
			}
		}
		if got := m.sum("mcm_cloud_api_requests_total", service); got != float64(calls) {
			found = append(found, fmt.Sprintf("the manager's metrics have %v calls of %s, the cloud counts %d", got, service, calls))
		}
	}
	for operation, calls := range unknown {
		found = append(found, fmt.Sprintf("%d calls of %s, which the spec does not know", calls, operation))
	}
	return found
}

// expectKnownOperations looks for requests that the sidecar's metrics have no name for.
func (c *cluster) expectKnownOperations(ctx context.Context) {
	GinkgoHelper()
	if c.env.PID(localenv.PartSidecar) != 0 {
		Expect(c.scrape(ctx).sum("stackit_api_http_requests_total", "UnknownOperation")).To(BeZero())
	}
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// roundTripper answers without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// counted returns a counter's value for a service, as /metrics would show it.
func counted(t *testing.T, name, service string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() == "service" && label.GetValue() == service {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func TestEveryAttemptIsCounted(t *testing.T) {
	const nic = "/v2/projects/p/regions/eu01/networks/n/nics/i"
	for name, row := range map[string]struct {
		path, service, labelled string
		status                  int
		err                     error
		failed                  float64
	}{
		"success":   {nic, "", "nics", http.StatusOK, nil, 0},
		"failure":   {"/v2/projects/p/regions/eu01/servers/s", "", "servers", http.StatusConflict, nil, 1},
		"no answer": {"/v2/projects/p/regions/eu01/quota", "", "other", 0, errors.New("connection reset"), 1},
		"token":     {nic, "token", "token", http.StatusOK, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, calls := WithCallCount(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://iaas.invalid"+row.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			before, failedBefore := counted(t, "mcm_cloud_api_requests_total", row.labelled), counted(t, "mcm_cloud_api_requests_failed_total", row.labelled)
			link := &metered{service: row.service, clock: clock.RealClock{}, next: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: row.status}, row.err
			})}
			_, _ = link.RoundTrip(request)
			if got := counted(t, "mcm_cloud_api_requests_total", row.labelled) - before; got != 1 {
				t.Errorf("service %s counts %v attempts, want 1", row.labelled, got)
			}
			if got := counted(t, "mcm_cloud_api_requests_failed_total", row.labelled) - failedBefore; got != row.failed {
				t.Errorf("service %s counts %v failures, want %v", row.labelled, got, row.failed)
			}
			if calls.Load() != 1 {
				t.Errorf("the caller's count is %d, want 1", calls.Load())
			}
		})
	}
}

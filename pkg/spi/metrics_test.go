// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"bytes"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// roundTripper answers without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// counted returns the sum of a counter's series that have the label values, as /metrics
// would show it.
func counted(t *testing.T, name string, values ...string) (sum float64) {
	t.Helper()
	ours := prometheus.NewRegistry()
	RegisterMetrics(ours)
	families, err := prometheus.Gatherers{ours, prometheus.DefaultGatherer}.Gather() // the manager's are in the second
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			has := func(value string) bool {
				return slices.ContainsFunc(metric.GetLabel(), func(label *dto.LabelPair) bool { return label.GetValue() == value })
			}
			if !slices.ContainsFunc(values, func(value string) bool { return !has(value) }) {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestAttemptsAreCounted(t *testing.T) {
	const (
		requests = "stackit_api_http_requests_total"
		failed   = "stackit_api_http_errors_total"
		// The manager's own.
		mcmRequests = "mcm_cloud_api_requests_total"
		mcmFailed   = "mcm_cloud_api_requests_failed_total"
	)
	type labels = []string
	type series struct {
		name   string
		values labels
		want   float64
	}
	lists := labels{component, "iaas.invalid", "ListServers", "GET"}
	tokens := labels{component, "accounts.stackit.cloud", "GetAccessToken", "POST"}
	for name, row := range map[string]struct {
		fault fault.Fault
		// attempts that the call takes.
		attempts int64
		want     []series
	}{
		"nothing happens": {attempts: 1, want: []series{
			{requests, append(lists, "200"), 1}, {requests, lists, 1}, {failed, lists, 0}, {requests, append(tokens, "200"), 1},
			{mcmRequests, labels{"servers"}, 1}, {mcmFailed, labels{"servers"}, 0}, {mcmRequests, labels{"token"}, 1}}},
		"the API is out of order": {
			fault:    fault.Fault{Operation: "ListServers", Count: 1, Status: http.StatusServiceUnavailable},
			attempts: 2,
			want: []series{{requests, append(lists, "503"), 1}, {failed, append(lists, "503"), 1}, {failed, lists, 1},
				{mcmRequests, labels{"servers"}, 2}, {mcmFailed, labels{"servers"}, 1}}},
		"the API hangs up": {
			fault: fault.Fault{Operation: "ListServers", Count: 2, DropBefore: true}, attempts: 3,
			want: []series{{failed, append(lists, "network_error"), 2}, {mcmFailed, labels{"servers"}, 2}}},
		"the key is refused": {
			fault: refused, want: []series{{failed, tokens, 1}, {mcmFailed, labels{"token"}, 1}, {requests, lists, 0}}},
		"the token endpoint is out of order": {
			fault: fault.Fault{Operation: fault.OperationToken, Status: http.StatusBadGateway},
			want:  []series{{failed, append(tokens, "502"), 1}}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.fault.Operation != "" {
				r.cloud.Inject(row.fault)
			}
			var before []float64
			for _, series := range row.want {
				before = append(before, counted(t, series.name, series.values...))
			}
			ctx, attempts := WithCallCount(t.Context())
			_ = list(ctx, r.session())
			for i, series := range row.want {
				if got := counted(t, series.name, series.values...) - before[i]; got != series.want {
					t.Errorf("%s%v is %v more, want %v", series.name, series.values, got, series.want)
				}
			}
			if attempts.Load() != row.attempts {
				t.Errorf("the caller's count is %d, want %d", attempts.Load(), row.attempts)
			}
		})
	}
}

// STACKIT's other controllers have these buckets: a quantile over all of them needs the same in each.
func TestDurationsHavePrometheusDefaultBuckets(t *testing.T) {
	var written dto.Metric
	series := httpDuration.WithLabelValues("iaas.invalid", http.MethodGet, "GetServer", "200")
	if err := series.(prometheus.Metric).Write(&written); err != nil {
		t.Fatal(err)
	}
	var bounds []float64
	for _, bucket := range written.GetHistogram().GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
	}
	if want := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}; !slices.Equal(bounds, want) {
		t.Errorf("the buckets end at %v, want %v", bounds, want)
	}
}

// Whoever writes a Secret may choose a part of the path, and the API what an error quotes. Failed calls are logged at
// verbosity 2.
func TestALineOfTheLogIsShort(t *testing.T) {
	long := strings.Repeat("x", 400_000)
	for name, transport := range map[string]roundTripper{
		"an answer": inMemory(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", long)
			http.Error(w, long, http.StatusInternalServerError)
		})),
		"an error": func(*http.Request) (*http.Response, error) { return nil, errors.New(long) },
	} {
		bubble(t, name, func(t *testing.T) {
			var log bytes.Buffer
			state, flags := klog.CaptureState(), flag.NewFlagSet("", flag.ContinueOnError)
			defer state.Restore()
			klog.InitFlags(flags)
			if err := flags.Parse([]string{"--logtostderr=false", "--v=2"}); err != nil {
				t.Fatal(err)
			}
			klog.SetOutput(&log)
			_, _ = sessionWith(t, transport, 0).API.ListServers(t.Context(), testProject, long).Execute()
			klog.Flush()
			for line := range strings.Lines(log.String()) {
				if len(line) > 1024 {
					t.Errorf("a line has %d bytes: %.200s", len(line), line)
				}
			}
			if !strings.Contains(log.String(), "API call") {
				t.Error("no call is logged")
			}
		})
	}
}

// TestOperationsAreNamedAsTheAPINamesThem: the SDK's functions are generated from its document.
func TestOperationsAreNamedAsTheAPINamesThem(t *testing.T) {
	parameter, named := regexp.MustCompile(`\{\w+\}`), map[string]bool{}
	for path, item := range openapi.Load().Paths.Map() {
		for method, operation := range item.Operations() {
			at := &url.URL{Path: "/iaas" + parameter.ReplaceAllString(path, testServer)}
			switch got, _ := operationOf(&http.Request{Method: method, URL: at}); got {
			case operation.OperationID:
				named[got] = true
			case operationUnknown: // the driver does not use it
			default:
				t.Errorf("%s %s is %s, want %s", method, path, got, operation.OperationID)
			}
		}
	}
	for _, known := range operations {
		if !named[known.name] {
			t.Errorf("%s %s is no %s", known.method, known.path, known.name)
		}
	}
}

// Keys may name many hosts.
func TestHostsAreBounded(t *testing.T) {
	for host, want := range map[string]string{"a.stackit.cloud": "other", "iaas.invalid": "iaas.invalid",
		"accounts.stackit.cloud": "accounts.stackit.cloud"} {
		if got := (Config{Endpoint: "http://iaas.invalid"}).hostLabel(host); got != want {
			t.Errorf("%s is %s, want %s", host, got, want)
		}
	}
}

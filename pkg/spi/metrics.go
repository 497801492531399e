// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	mcmmetrics "github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const metricsProvider = "stackit"

// component distinguishes this program's series from those of STACKIT's other controllers, which
// share the names, labels and buckets of these metrics.
const component = "machine-controller-manager-provider-stackit"

// attemptLabels are the labels that these controllers share. No outside input can add arbitrary
// values: see hostLabel and operationOf.
var attemptLabels = []string{"host", "method", "operation", "status_code"}

var (
	httpRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "stackit_api_http_requests_total",
		Help:        "HTTP attempts against STACKIT's APIs.",
		ConstLabels: prometheus.Labels{"component": component},
	}, attemptLabels)
	httpErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "stackit_api_http_errors_total",
		Help:        "HTTP attempts against STACKIT's APIs without an answer or with a status code of 400 or more.",
		ConstLabels: prometheus.Labels{"component": component},
	}, attemptLabels)
	httpDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "stackit_api_http_request_duration_seconds",
		Help:        "Duration of HTTP attempts against STACKIT's APIs, including reading the body.",
		ConstLabels: prometheus.Labels{"component": component},
		// Different buckets could not be summed across the controllers. So a quantile shows 10 s for
		// every attempt that took longer.
		Buckets: prometheus.DefBuckets,
	}, attemptLabels)
)

// RegisterMetrics registers the metrics of all sessions of the process. Call it only from main:
// programs that merely import this package, such as mcm-stackit, must not register metrics.
func RegisterMetrics(registerer prometheus.Registerer) {
	registerer.MustRegister(httpRequests, httpErrors, httpDuration)
}

type callsKey struct{}

// WithCallCount returns a context, and the number of API calls made with it so far: HTTP attempts,
// including retries but not requests for access tokens.
func WithCallCount(ctx context.Context) (context.Context, *atomic.Int64) {
	count := new(atomic.Int64)
	return context.WithValue(ctx, callsKey{}, count), count
}

// metered counts, times and logs every attempt.
type metered struct {
	next   http.RoundTripper
	clock  clock.PassiveClock
	config Config
	// isToken reports whether the requests are for access tokens.
	isToken bool
}

// RoundTrip implements http.RoundTripper.
func (m *metered) RoundTrip(request *http.Request) (*http.Response, error) {
	if count, ok := request.Context().Value(callsKey{}).(*atomic.Int64); ok {
		count.Add(1)
	}
	start := m.clock.Now()
	response, err := m.next.RoundTrip(request)
	m.observe(request, response, err, m.clock.Since(start))
	return response, err
}

// observe counts, times and logs an attempt.
func (m *metered) observe(request *http.Request, response *http.Response, err error, elapsed time.Duration) {
	operation, resource := operationOf(request)
	if m.isToken {
		operation, resource = operationToken, serviceToken
	}
	code, requestID, text := 0, "", ""
	if err == nil {
		code, requestID = response.StatusCode, RequestID(response.Header)
	} else {
		text = cut(err.Error())
	}
	labels := []string{m.config.hostLabel(request.URL.Host), request.Method, operation, statusLabel(code)}
	mcmmetrics.APIRequestCount.WithLabelValues(metricsProvider, resource).Inc()
	if err != nil || code >= http.StatusBadRequest {
		mcmmetrics.APIFailedRequestCount.WithLabelValues(metricsProvider, resource).Inc()
		httpErrors.WithLabelValues(labels...).Inc()
	} else {
		mcmmetrics.APIRequestDuration.WithLabelValues(metricsProvider, resource).Observe(elapsed.Seconds())
	}
	httpRequests.WithLabelValues(labels...).Inc()
	httpDuration.WithLabelValues(labels...).Observe(elapsed.Seconds())
	klog.V(verbosity(code)).InfoS("API call", "method", request.Method, "path", cut(request.URL.Path),
		"code", statusLabel(code), "duration", elapsed, "requestID", requestID, "err", text)
}

// verbosity returns the log level of a call. Failed calls are logged where state changes are, with
// the request ID that support asks for. A 404 is the normal end of a deletion.
func verbosity(code int) klog.Level {
	if code >= http.StatusBadRequest && code != http.StatusNotFound || code == 0 {
		return 2
	}
	return 4
}

// maxLogged limits logged text from another side, in bytes: a path of the API has up to 160, a
// request ID 55.
const maxLogged = 200

func cut(text string) string { return text[:min(len(text), maxLogged)] }

// RequestID returns the ID by which STACKIT's support finds a call: the answer's header X-Request-Id
// or, if it is missing, the gateway's X-Trace-Id, cut to 200 bytes; "" if neither is present.
func RequestID(header http.Header) string {
	return cut(cmp.Or(header.Get("X-Request-Id"), header.Get("X-Trace-Id")))
}

// Operations that are not in the list of paths: token endpoints have arbitrary paths, and the API
// has more operations than the driver uses.
const (
	operationToken   = "GetAccessToken"
	operationUnknown = "UnknownOperation"
)

// operations maps the driver's requests to the names of the SDK's functions. The path is the part
// after the region; a * is an ID.
var operations = []struct{ method, path, name string }{
	{http.MethodPost, "servers", "CreateServer"},
	{http.MethodGet, "servers", "ListServers"},
	{http.MethodGet, "servers/*", "GetServer"},
	{http.MethodDelete, "servers/*", "DeleteServer"},
	{http.MethodGet, "servers/*/nics", "ListServerNICs"},
	{http.MethodGet, "networks/*/nics", "ListNics"},
	{http.MethodPatch, "networks/*/nics/*", "UpdateNic"},
	{http.MethodDelete, "networks/*/nics/*", "DeleteNic"},
	{http.MethodGet, "nics", "ListProjectNICs"},
}

// operationOf returns the SDK's name of a request to the IaaS API, and the resource that it is about,
// for the manager's metrics. Neither contains an ID.
func operationOf(request *http.Request) (name, resource string) {
	_, rest, _ := strings.Cut(request.URL.Path, "/regions/")
	_, asked, _ := strings.Cut(rest, "/")
	for _, known := range operations {
		if matches, _ := path.Match(known.path, asked); matches && known.method == request.Method {
			return known.name, path.Base(strings.TrimSuffix(known.path, "/*"))
		}
	}
	return operationUnknown, "other"
}

// serviceToken is the resource of requests for access tokens.
const serviceToken = "token"

// statusLabel returns the metrics' label of a status code; 0 means no answer.
func statusLabel(code int) string {
	if code == 0 {
		return "network_error"
	}
	return strconv.Itoa(code)
}

// hostLabel returns the host, or "other" for one that only a service-account key names: writers of
// Secrets could create any number of series.
func (c Config) hostLabel(host string) string {
	for _, known := range []string{c.Endpoint, DefaultEndpoint, c.TokenURL, defaultTokenURL, c.IdentityURL,
		defaultIdentityURL} {
		if parsed, err := url.Parse(known); err == nil && parsed.Host == host {
			return host
		}
	}
	return "other"
}

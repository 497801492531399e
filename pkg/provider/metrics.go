// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// classLifetime is how long the series of a class live after the last driver call that names it. Orphan
// runs name each class at least twice an hour; the driver is not notified of deleted classes.
const classLifetime = time.Hour

// meters are the driver's own metrics, in addition to the manager's.
// kubernetes/monitoring/README.md explains each.
type meters struct {
	clock               clock.PassiveClock
	duplicates, orphans *prometheus.CounterVec
	creation, deletion  *prometheus.HistogramVec
	servers, keyExpiry  *prometheus.GaugeVec

	mu sync.Mutex
	// named is when a driver call last named each class.
	named map[string]time.Time
}

// Values of the label deletion.
const deletionAccepted, deletionFailed, deletionRefused = "accepted", "failed", "refused"

func newMeters(clock clock.PassiveClock) *meters {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"deletion"})
	}
	histogram := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"machine_class"})
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &meters{
		clock: clock,
		named: map[string]time.Time{},
		duplicates: counter("stackit_duplicate_servers_total",
			"Surplus servers of a Machine, by the outcome of the request to delete them: accepted, failed."),
		orphans: counter("stackit_orphan_servers_total",
			"Servers without a Machine that the manager asked to delete: accepted; refused, because they may be another's."),
		creation: histogram("stackit_machine_creation_duration_seconds",
			"Time from the accepted create request until the server runs and its NICs are complete.",
			15, 30, 45, 60, 90, 120, 180, 300, 600, 1200),
		deletion: histogram("stackit_machine_deletion_duration_seconds",
			"Time from the first accepted request to delete a server until it is proved gone, without orphans.",
			5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600),
		servers: gauge("stackit_servers",
			"Servers in the last ListMachines of a class, by machine type, zone and state.",
			"machine_class", "machine_type", "zone", "state"),
		keyExpiry: gauge("stackit_key_expiry_timestamp_seconds",
			"Expiry of the service-account key in a class's Secret, in Unix seconds. Absent if it does not expire.",
			"machine_class"),
	}
	m.startAtZero()
	return m
}

// startAtZero creates the series of counters that alerts read: Prometheus does not see the first event
// of a counter that starts at 1.
func (m *meters) startAtZero() {
	m.duplicates.WithLabelValues(deletionAccepted)
	m.duplicates.WithLabelValues(deletionFailed)
	m.orphans.WithLabelValues(deletionAccepted)
	m.orphans.WithLabelValues(deletionRefused)
	for _, operation := range []string{"CreateMachine", "InitializeMachine", "GetMachineStatus", "DeleteMachine",
		"ListMachines"} {
		for _, code := range []codes.Code{codes.Aborted, codes.DeadlineExceeded, codes.FailedPrecondition, codes.Internal,
			codes.InvalidArgument, codes.PermissionDenied, codes.ResourceExhausted, codes.Unauthenticated, codes.Unavailable} {
			metrics.DriverFailedAPIRequests.WithLabelValues(StackitProviderName, operation, code.String())
		}
	}
}

func (m *meters) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.duplicates, m.orphans, m.creation, m.deletion, m.servers, m.keyExpiry}
}

// name notes that a driver call names the class, and drops the series of classes that no call has named
// for classLifetime: the key of a deleted class may expire.
func (m *meters) name(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.named[class] = m.clock.Now()
	maps.DeleteFunc(m.named, func(other string, at time.Time) bool {
		old := m.clock.Since(at) > classLifetime
		if old {
			m.creation.DeleteLabelValues(other)
			m.deletion.DeleteLabelValues(other)
			m.keyExpiry.DeleteLabelValues(other)
			m.servers.DeletePartialMatch(prometheus.Labels{"machine_class": other})
		}
		return old
	})
}

// keyExpires notes the expiry of the key in a driver call about the class; zero if it has none.
func (m *meters) keyExpires(class string, at time.Time) {
	if at.IsZero() {
		m.keyExpiry.DeleteLabelValues(class)
		return
	}
	m.keyExpiry.WithLabelValues(class).Set(float64(at.Unix()))
}

// observe records the time since a request, unless that is zero or the call has no class.
func (m *meters) observe(durations *prometheus.HistogramVec, class string, since time.Time) {
	if class != "" && !since.IsZero() {
		durations.WithLabelValues(class).Observe(m.clock.Since(since).Seconds())
	}
}

// duplicate counts a second server of a Machine; err is the error of the request to delete it.
func (m *meters) duplicate(err error) {
	deletion := deletionAccepted
	if err != nil {
		deletion = deletionFailed
	}
	m.duplicates.WithLabelValues(deletion).Inc()
}

// listed replaces the counts of a class's servers.
func (m *meters) listed(class string, servers []Server) {
	m.servers.DeletePartialMatch(prometheus.Labels{"machine_class": class})
	for i := range servers {
		m.servers.WithLabelValues(class, servers[i].MachineType, servers[i].Zone, servers[i].Status).Inc()
	}
}

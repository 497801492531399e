// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// classLifetime is how long the metrics of a class are kept after the last driver call or list that
// names it. The driver is not notified of deleted classes; the manager lists the servers of each
// existing class at least twice an hour.
const classLifetime = time.Hour

// meters are the driver's own metrics, in addition to the manager's.
// kubernetes/monitoring/README.md explains each.
type meters struct {
	clock clock.PassiveClock
	// parts are the counters and histograms, gauges the metrics that Collect creates: newMeters adds
	// to both.
	parts  []prometheus.Collector
	gauges []*prometheus.Desc

	duplicates *prometheus.CounterVec
	orphans    prometheus.Counter
	// orphanRefusals counts refused deletions of orphans, whose servers would otherwise be billed
	// unnoticed.
	orphanRefusals prometheus.Counter
	fallbacks      *prometheus.CounterVec
	volumesLeft    prometheus.Counter
	creation       *prometheus.HistogramVec
	deletion       *prometheus.HistogramVec
	servers        *prometheus.Desc
	unknown        *prometheus.Desc
	maintained     *prometheus.Desc
	maintenance    *prometheus.Desc
	keyExpiry      *prometheus.Desc

	mu      sync.Mutex
	classes map[string]*classMeter
	// runsSince is the time since which no orphan run has ended early: the first driver call, or the
	// last failed ListMachines; zero before the first call.
	runsSince time.Time
	// unknowns are the servers of unknown classes in the last list of each cluster.
	unknowns map[scopeKey]unknownServers
}

// classMeter has the metrics of a class.
type classMeter struct {
	// named is when a driver call or a list last named the class, called when a driver call did; zero
	// if none has.
	named, called time.Time
	// servers are the counts of the last list of each scope.
	servers map[scopeKey]*serverCounts
	// keyExpiry is the expiry of the key in the last driver call.
	keyExpiry time.Time
	// fallbacks are the choices that are counted one by one.
	fallbacks map[apis.Choice]bool
}

// serverKind is the key by which servers are counted.
type serverKind struct{ machineType, zone, state string }

// serverCounts are a class's servers in one list.
type serverCounts struct {
	kinds map[serverKind]int
	// windows counts maintenance windows by status. next is the start of the first planned window;
	// zero without one.
	windows map[string]int
	next    time.Time
}

// unknownServers counts the servers of a list whose classes no driver call has named for classLifetime.
type unknownServers struct {
	count  int
	listed time.Time
}

// scopeKey identifies a set of servers that is listed as a whole.
type scopeKey struct{ projectID, region, cluster string }

func newMeters(clock clock.PassiveClock) *meters {
	m := &meters{clock: clock, classes: map[string]*classMeter{}, unknowns: map[scopeKey]unknownServers{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		made := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.parts = append(m.parts, made)
		return made
	}
	histogram := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		made := prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"machine_class"})
		m.parts = append(m.parts, made)
		return made
	}
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		made := prometheus.NewDesc(name, help, labels, nil)
		m.gauges = append(m.gauges, made)
		return made
	}
	m.duplicates = counter("stackit_duplicate_servers_total",
		"Surplus servers found for a Machine that already has one, by the outcome of the request to delete them: "+
			"accepted, failed.", "deletion")
	m.orphans = counter("stackit_orphan_servers_deleted_total",
		"Servers without a Machine whose deletion was requested because the manager found them.").WithLabelValues()
	m.orphanRefusals = counter("stackit_orphan_refusals_total",
		"Requests of the manager to delete a server without a Machine that the driver refused, because the "+
			"server's name, labels or OpenStack tag show that another Machine or cluster may own it. The server "+
			"is billed until its labels are fixed or it is deleted by hand.").WithLabelValues()
	m.volumesLeft = counter("stackit_openstack_volumes_left_total",
		"Volumes with the name of a deleted Machine from OpenStack that a deletion left alone because the "+
			"API does not show whether they are bootable. Each is billed until it is deleted.").WithLabelValues()
	m.creation = histogram("stackit_machine_creation_duration_seconds",
		"Time from the accepted create request until the server runs and has its addresses and "+
			"allowedAddresses, for servers that this process created.",
		15, 30, 45, 60, 90, 120, 180, 300, 600, 1200)
	m.deletion = histogram("stackit_machine_deletion_duration_seconds",
		"Time from the first accepted request to delete a server until it is proved gone. Excludes orphans: "+
			"the driver does not wait for their end.",
		5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)
	m.fallbacks = counter("stackit_fallbacks_total",
		"Create requests with a fallback of the class, by the fallback's machine type and zone: there was no "+
			"capacity for the choices before it, or the region lacks their machine type. More than 32 combinations "+
			"per class are reported as other.",
		"machine_class", "machine_type", "zone")
	m.servers = gauge("stackit_servers",
		"Servers in the driver's last list, by class, machine type, zone and state. The metric makes no API call "+
			"of its own. More than 32 combinations per class are reported as other.",
		"machine_class", "machine_type", "zone", "state")
	m.unknown = gauge("stackit_servers_of_unknown_classes",
		"Servers with the driver's labels, in the last list of the whole cluster, whose MachineClass no call of "+
			"the manager has named for an hour: the manager does not delete them as orphans. 0 if the cluster was "+
			"not listed for an hour, and within an hour of the first driver call or a failed ListMachines.")
	m.maintained = gauge("stackit_servers_with_maintenance",
		"Servers of the last list for which STACKIT has announced maintenance of their host, by class and "+
			"status of the maintenance window: PLANNED, ONGOING, other. The metric makes no API call of its own.",
		"machine_class", "status")
	m.maintenance = gauge("stackit_next_maintenance_timestamp_seconds",
		"Start of the first planned maintenance window of a class's servers, in Unix seconds. Absent if none is "+
			"planned.", "machine_class")
	m.keyExpiry = gauge("stackit_key_expiry_timestamp_seconds",
		"Expiry of the service-account key in a class's Secret (its validUntil), in Unix seconds. Absent for a "+
			"key that does not expire, and for workload identities.", "machine_class")
	m.beginWithZero()
	return m
}

// beginWithZero creates the series that are known from the start: Prometheus does not see the first
// event of a counter that starts at 1.
func (m *meters) beginWithZero() {
	for _, deletion := range []string{deletionAccepted, deletionFailed} {
		m.duplicates.WithLabelValues(deletion)
	}
}

// Values of labels.
const (
	deletionAccepted, deletionFailed = "accepted", "failed"

	maintenancePlanned, maintenanceOngoing = "PLANNED", "ONGOING"
)

// Describe implements prometheus.Collector.
func (m *meters) Describe(descs chan<- *prometheus.Desc) {
	for _, part := range m.parts {
		part.Describe(descs)
	}
	for _, desc := range m.gauges {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *meters) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	m.sweep()
	for class, meter := range m.classes {
		m.collectClass(metrics, class, meter)
	}
	unknown := 0
	for _, servers := range m.unknowns {
		unknown += servers.count
	}
	metrics <- prometheus.MustNewConstMetric(m.unknown, prometheus.GaugeValue, float64(unknown))
	m.mu.Unlock()
	for _, part := range m.parts {
		part.Collect(metrics)
	}
}

// collectClass collects a class's gauges, summed over all scopes.
func (m *meters) collectClass(metrics chan<- prometheus.Metric, class string, meter *classMeter) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{class}, labels...)...)
	}
	counts := newServerCounts()
	for _, listed := range meter.servers {
		counts.add(listed)
	}
	for kind, count := range counts.kinds {
		gauge(m.servers, float64(count), kind.machineType, kind.zone, kind.state)
	}
	for status, count := range counts.windows {
		gauge(m.maintained, float64(count), status)
	}
	if !counts.next.IsZero() {
		gauge(m.maintenance, float64(counts.next.Unix()))
	}
	if !meter.keyExpiry.IsZero() {
		gauge(m.keyExpiry, float64(meter.keyExpiry.Unix()))
	}
}

func newServerCounts() *serverCounts {
	return &serverCounts{kinds: map[serverKind]int{}, windows: map[string]int{}}
}

func (s *serverCounts) add(other *serverCounts) {
	for kind, count := range other.kinds {
		s.kinds[kind] += count
	}
	for status, count := range other.windows {
		s.windows[status] += count
	}
	s.noteStart(other.next)
}

// total returns the number of servers.
func (s *serverCounts) total() int {
	total := 0
	for _, count := range s.kinds {
		total += count
	}
	return total
}

// count adds one server.
func (s *serverCounts) count(server *Server) {
	kind := serverKind{server.MachineType, server.Zone, server.Status}
	if _, counted := s.kinds[kind]; !counted && len(s.kinds) >= maxKinds {
		kind = serverKind{otherKind, otherKind, otherKind}
	}
	s.kinds[kind]++
	if server.Maintenance == nil {
		return
	}
	switch status := server.Maintenance.Status; status {
	case maintenancePlanned:
		s.windows[status]++
		s.noteStart(server.Maintenance.StartsAt)
	case maintenanceOngoing:
		s.windows[status]++
	default:
		s.windows[otherKind]++
	}
}

// noteStart notes the start of a window; the zero time means none.
func (s *serverCounts) noteStart(start time.Time) {
	if !start.IsZero() && (s.next.IsZero() || start.Before(s.next)) {
		s.next = start
	}
}

// sweep drops the series of classes that were not named for classLifetime, and older lists; m.mu is held.
func (m *meters) sweep() {
	maps.DeleteFunc(m.classes, func(class string, meter *classMeter) bool {
		old := m.clock.Since(meter.named) > classLifetime
		if old {
			m.creation.DeleteLabelValues(class)
			m.deletion.DeleteLabelValues(class)
			m.fallbacks.DeletePartialMatch(prometheus.Labels{"machine_class": class})
		}
		return old
	})
	maps.DeleteFunc(m.unknowns, func(_ scopeKey, servers unknownServers) bool {
		return m.clock.Since(servers.listed) > classLifetime
	})
}

// called notes a driver call about the class, whatever its outcome.
func (m *meters) called(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	meter := m.class(class)
	meter.called = m.clock.Now()
	if m.runsSince.IsZero() {
		m.runsSince = meter.called
	}
}

// orphanRunEnded notes a failed ListMachines: the manager lists no later class in this orphan run
// (v0.62.1 machine_safety.go:224), so a class may exist that no call names.
func (m *meters) orphanRunEnded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runsSince = m.clock.Now()
}

// nameClass notes the expiry of the key in a driver call about the class.
func (m *meters) nameClass(class string, keyExpiry time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.class(class).keyExpiry = keyExpiry
}

// class returns the class's meter, and marks it as named now; m.mu is held.
func (m *meters) class(class string) *classMeter {
	meter, known := m.classes[class]
	if !known {
		meter = &classMeter{servers: map[scopeKey]*serverCounts{}, fallbacks: map[apis.Choice]bool{}}
		m.classes[class] = meter
	}
	meter.named = m.clock.Now()
	return meter
}

// observe records the duration since a request, unless that time is zero or the call has no class.
func (m *meters) observe(durations *prometheus.HistogramVec, class string, since time.Time) {
	if class == "" || since.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.class(class)
	durations.WithLabelValues(class).Observe(m.clock.Since(since).Seconds())
}

// duplicate counts a second server of a Machine; err is the error of the request to delete it.
func (m *meters) duplicate(err error) {
	deletion := deletionAccepted
	if err != nil {
		deletion = deletionFailed
	}
	m.duplicates.WithLabelValues(deletion).Inc()
}

// fellBack counts a request for a server with a fallback.
func (m *meters) fellBack(class string, choice apis.Choice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counted := m.class(class).fallbacks
	if !counted[choice] && len(counted) >= maxKinds {
		choice = apis.Choice{MachineType: otherKind, AvailabilityZone: otherKind}
	}
	counted[choice] = true
	m.fallbacks.WithLabelValues(class, choice.MachineType, choice.AvailabilityZone).Inc()
}

// maxKinds limits the combinations of machine type, zone and state per class; the rest are counted as
// otherKind. maxClasses limits the counted classes of a list. No cluster has so many: the API's
// answers must not determine the number of series.
const (
	maxKinds   = 32
	maxClasses = 1000
	otherKind  = "other"
)

// listed counts the servers of a list by its selector: all of a cluster's, or those of a class.
// Other lists are ignored.
func (m *meters) listed(projectID, region string, selector map[string]string, servers []Server) {
	if len(selector) == 0 || selector[StackitMachineLabel] != "" {
		return
	}
	cluster := maps.Clone(selector)
	delete(cluster, StackitMachineClassLabel)
	scope := scopeKey{projectID, region, labelSelector(cluster)}
	counts := countKinds(servers, selector)
	m.mu.Lock()
	defer m.mu.Unlock()
	only, ofClass := selector[StackitMachineClassLabel]
	for class, meter := range m.classes {
		if !ofClass || class == only {
			delete(meter.servers, scope)
		}
	}
	unknown := unknownServers{listed: m.clock.Now()}
	for class, listed := range counts {
		meter := m.class(class)
		meter.servers[scope] = listed
		if m.clock.Since(meter.called) > classLifetime {
			unknown.count += listed.total()
		}
	}
	if ofClass {
		return
	}
	if m.runsSince.IsZero() || m.clock.Since(m.runsSince) <= classLifetime {
		unknown.count = 0
	}
	m.unknowns[scope] = unknown
}

// countKinds counts the servers that match the selector by class.
func countKinds(servers []Server, selector map[string]string) map[string]*serverCounts {
	classes := map[string]*serverCounts{}
	for i := range servers {
		class := servers[i].Labels[StackitMachineClassLabel]
		if class == "" || servers[i].Labels[StackitMachineLabel] == "" || !matches(&servers[i], selector) {
			continue
		}
		if classes[class] == nil && len(classes) >= maxClasses {
			continue
		}
		if classes[class] == nil {
			classes[class] = newServerCounts()
		}
		classes[class].count(&servers[i])
	}
	return classes
}

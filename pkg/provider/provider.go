// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// minCreationWait and maxCreationWait limit the deadline of one CreateMachine or InitializeMachine
	// call. A slow cloud takes more than 5 minutes to boot a server, but a Machine that is deleted during
	// the call stays until the call ends (machine-controller-manager v0.62.1, machine.go:638).
	minCreationWait, maxCreationWait = time.Minute, 10 * time.Minute
	// defaultCreationTimeout is the default of the manager's flag --machine-creation-timeout.
	defaultCreationTimeout = 20 * time.Minute
	// deleteTimeout is the deadline of DeleteMachine, callTimeout that of calls that do not wait.
	deleteTimeout, callTimeout = 10 * time.Minute, 2 * time.Minute

	// clockSkew is the tolerated difference between the API server's clock, which dates Machines, and
	// this process's.
	clockSkew = 10 * time.Second
	// sessionLifetime is how long an unused session is kept, and a warning is not repeated.
	sessionLifetime = time.Hour
)

// Provider is machine-controller-manager's driver for STACKIT. Every call is logged in one line and
// counted in the manager's metrics; errors have the manager's form (package status).
type Provider struct {
	// SPI opens the sessions with the IaaS API.
	SPI spi.SessionProviderInterface

	clock            clock.Clock
	settle, creation time.Duration
	strictSpec       bool
	// withoutTarget reports whether the machines join no cluster.
	withoutTarget bool
	// actingSince returns when this process became the only writer; nil means unknown.
	actingSince func() time.Time
	// registerer registers the meters; nil for none.
	registerer prometheus.Registerer

	setup   sync.Once
	meters  *meters
	process *process
	// firstCall is when this process had its first driver call.
	firstCall time.Time
	// sessions has the newest session of each project.
	sessions *recent.Map[string, *spi.Session]
	readers  *recent.Map[readersKey, *readers]
	// warned has the classes and fields with a recent warning.
	warned *recent.Map[string, bool]
}

// process is the state that all calls share.
type process struct {
	clock  clock.Clock
	meters *meters
	// settle is the longest time until the result of a request shows in lists.
	settle  time.Duration
	records *records
	// exhausted has the classes that ran out of quota or capacity.
	exhausted *classErrors
	// failing has the classes whose servers all end in ERROR, with the time of the first.
	failing *recent.Map[classKey, time.Time]
}

// readersKey separates readers: a Secret must not wait for another Secret's reads, nor use its
// rights.
type readersKey struct {
	session *spi.Session
	region  string
}

// Option changes a default of the Provider.
type Option func(*Provider)

// WithSettle sets the settle time: the longest time until the result of a sent request appears in
// lists. The default is DefaultSettle.
func WithSettle(settle time.Duration) Option {
	return func(p *Provider) { p.settle = settle }
}

// WithStrictProviderSpec sets whether a providerSpec with unknown or duplicate fields is refused.
// By default such fields are only logged.
func WithStrictProviderSpec(strict bool) Option {
	return func(p *Provider) { p.strictSpec = strict }
}

// WithActingSince sets a function that returns when this process became the only one that acts on
// the machines: its start, or the start of its leadership; the zero time if unknown. Another
// process may have acted on Machines that are older. The default is the time of the first driver
// call, which delays the first machine of a new cluster unnecessarily.
func WithActingSince(since func() time.Time) Option {
	return func(p *Provider) { p.actingSince = since }
}

// WithCreationTimeout sets the manager's --machine-creation-timeout, the age at which it gives up a
// Machine; a Machine's spec.creationTimeout overrides it. The default is 20 minutes. CreateMachine and
// InitializeMachine wait for what remains of it, but at least one minute and at most ten.
func WithCreationTimeout(timeout time.Duration) Option {
	return func(p *Provider) { p.creation = timeout }
}

// WithTargetCluster sets whether the manager has a target cluster that machines join; the default
// is true. Without a target cluster a Machine that is older than its creation timeout still becomes
// Available once it has a server, so the driver creates the server.
func WithTargetCluster(has bool) Option {
	return func(p *Provider) { p.withoutTarget = !has }
}

// WithClock sets the clock, for tests; the default is the real clock.
func WithClock(clock clock.Clock) Option {
	return func(p *Provider) { p.clock = clock }
}

// WithMetrics registers the driver's own metrics with the registerer, which must not be shared with
// another Provider. The metrics of sessions are registered once per process, with
// spi.RegisterMetrics. kubernetes/monitoring/README.md explains all metrics.
func WithMetrics(registerer prometheus.Registerer) Option {
	return func(p *Provider) { p.registerer = registerer }
}

// NewProvider returns the driver, a *Provider that opens its sessions through i. It panics if the
// registerer of WithMetrics refuses the driver's metrics, because it already has them.
func NewProvider(i spi.SessionProviderInterface, options ...Option) driver.Driver {
	p := &Provider{SPI: i}
	p.setDefaults()
	for _, option := range options {
		option(p)
	}
	p.meters = newMeters(p.clock)
	if p.registerer != nil { // counters are visible before their first event
		p.registerer.MustRegister(p.meters.collectors()...)
	}
	return p
}

func (p *Provider) setDefaults() {
	p.clock, p.settle, p.creation = clock.RealClock{}, DefaultSettle, defaultCreationTimeout
}

// init initializes the provider on its first call. A Provider that NewProvider has not made has no meters.
func (p *Provider) init() {
	p.setup.Do(func() {
		if p.meters == nil {
			p.setDefaults()
			p.meters = newMeters(p.clock)
		}
		p.process = &process{
			clock: p.clock, meters: p.meters, settle: p.settle, records: newRecords(p.clock),
			exhausted: recent.New[classKey, classError](p.clock, skippedFor),
			failing:   recent.New[classKey, time.Time](p.clock, recordLifetime),
		}
		p.sessions = recent.New[string, *spi.Session](p.clock, sessionLifetime)
		p.readers = recent.New[readersKey, *readers](p.clock, sessionLifetime)
		p.warned = recent.New[string, bool](p.clock, sessionLifetime)
		p.firstCall = p.clock.Now()
	})
}

// expires returns when the Machine reaches its creation timeout; the zero time if its age is unknown.
func (p *Provider) expires(machine *v1alpha1.Machine) time.Time {
	if machine == nil || machine.CreationTimestamp.IsZero() {
		return time.Time{}
	}
	timeout := p.creation
	if own := machine.Spec.MachineConfiguration; own != nil && own.MachineCreationTimeout != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return machine.CreationTimestamp.Add(timeout)
}

// creationDeadline returns how long a call may wait for the Machine's server. If a call ends while the
// server boots, the user sees CrashLoopBackOff for a healthy server; a call longer than the Machine's
// timeout keeps the manager from giving up the Machine.
func (p *Provider) creationDeadline(machine *v1alpha1.Machine) time.Duration {
	p.init()
	expires := p.expires(machine)
	if expires.IsZero() {
		return maxCreationWait
	}
	return max(minCreationWait, min(expires.Sub(p.clock.Now()), maxCreationWait))
}

// readersOf returns the readers for the session's calls in the region.
func (p *Provider) readersOf(session *spi.Session, region string) *readers {
	return p.readers.Get(readersKey{session, region}, func() *readers {
		return newReaders(session, region, p.process)
	})
}

// certainOfPredecessor returns the earliest start of a list that shows a predecessor's servers of the
// Machine; the zero time if none can have worked on it. The orphan collector's Machines have no
// creation time, but name their server.
func (p *Provider) certainOfPredecessor(machine *v1alpha1.Machine) time.Time {
	created, leads := machine.CreationTimestamp.Time, p.leadsSince()
	if created.IsZero() || !created.Before(leads.Add(clockSkew)) {
		return time.Time{}
	}
	return leads.Add(p.settle)
}

func (p *Provider) leadsSince() time.Time {
	if p.actingSince != nil {
		if known := p.actingSince(); !known.IsZero() {
			return known
		}
	}
	return p.firstCall
}

// noteWarning notes a warning, and reports whether it is new within sessionLifetime.
func (p *Provider) noteWarning(warning string) bool {
	_, before := p.warned.Lookup(warning)
	p.warned.Set(warning, true)
	return !before
}

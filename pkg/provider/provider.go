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

// Default times of the driver.
const (
	// DefaultSettle is the default settle time: the longest time until the result of a sent request
	// appears in lists. A machine whose server appears later may get a second server.
	DefaultSettle = 30 * time.Second

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

	clock      clock.Clock
	settle     *time.Duration
	creation   *creationTimes
	strictSpec bool
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
	memory *memory
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
	return func(p *Provider) { p.settle = &settle }
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

// WithCreationTimeout sets the deadline of CreateMachine and InitializeMachine: what remains of the
// Machine's creation timeout, but at least MinCreationWait and at most wait. timeout is the
// manager's --machine-creation-timeout; a Machine's spec.creationTimeout overrides it. The defaults
// are 20 minutes and DefaultCreationWait.
func WithCreationTimeout(timeout, wait time.Duration) Option {
	return func(p *Provider) { p.creation = &creationTimes{timeout, wait} }
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
	for _, option := range options {
		option(p)
	}
	p.initMeters()
	if p.registerer != nil { // counters are visible before their first event
		p.registerer.MustRegister(p.meters)
	}
	return p
}

// initMeters sets the clock and the meters if they are unset.
func (p *Provider) initMeters() {
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	if p.meters == nil {
		p.meters = newMeters(p.clock)
	}
}

// init initializes the provider on its first call.
func (p *Provider) init() {
	p.setup.Do(func() {
		p.initMeters()
		if p.settle == nil {
			settle := DefaultSettle
			p.settle = &settle
		}
		if p.creation == nil {
			p.creation = &creationTimes{defaultCreationTimeout, DefaultCreationWait}
		}
		p.process = &process{
			clock: p.clock, meters: p.meters, memory: newMemory(p.clock, *p.settle),
			exhausted: recent.New[classKey, classError](p.clock, exhaustedFor),
			failing:   recent.New[classKey, time.Time](p.clock, recordLifetime),
		}
		p.sessions = recent.New[string, *spi.Session](p.clock, sessionLifetime)
		p.readers = recent.New[readersKey, *readers](p.clock, sessionLifetime)
		p.warned = recent.New[string, bool](p.clock, sessionLifetime)
		p.firstCall = p.clock.Now()
	})
}

// creationDeadline returns how long a call may wait for the Machine's server.
func (p *Provider) creationDeadline(machine *v1alpha1.Machine) time.Duration {
	p.init()
	return p.creation.deadline(machine, p.clock.Now())
}

// readersOf returns the readers for the session's calls in the region.
func (p *Provider) readersOf(session *spi.Session, region string) *readers {
	return p.readers.Get(readersKey{session, region}, func() *readers {
		return newReaders(session, region, p.process)
	})
}

// predecessors returns when a predecessor's last POST must show in lists, for a Machine created at
// the given time; the zero time if no predecessor can have worked on it. If it is also young, the
// memory has everything that was done for it. The orphan collector's Machines have no creation
// time, but name their server.
func (p *Provider) predecessors(created time.Time) (certain time.Time, young bool) {
	switch {
	case created.IsZero():
		return time.Time{}, false
	case !p.leadsSinceBefore(created):
		return p.leadsSince().Add(*p.settle), false
	default:
		return time.Time{}, p.clock.Since(created) < recordLifetime-clockSkew
	}
}

// leadsSinceBefore reports whether only this process has acted on a Machine created at the given
// time.
func (p *Provider) leadsSinceBefore(created time.Time) bool {
	return !created.Before(p.leadsSince().Add(clockSkew))
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

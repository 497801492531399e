// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Default times of the driver.
const (
	// DefaultSettle is how long the cloud may take until a request that was sent
	// shows in a list. The promise "never two servers for a machine" holds up to it.
	DefaultSettle = 30 * time.Second

	createTimeout = 5 * time.Minute
	deleteTimeout = 10 * time.Minute
	// callTimeout bounds the calls that wait for nothing: the retries of a handful
	// of requests.
	callTimeout = 2 * time.Minute
)

// Provider is the driver: machine-controller-manager's view of STACKIT. Every
// error of its methods has the manager's form (package status), one line in the
// log and its place in the manager's metrics.
type Provider struct {
	// SPI makes the sessions with the IaaS API.
	SPI spi.SessionProviderInterface

	clock      clock.Clock
	settle     *time.Duration
	strictSpec bool
	// actingSince tells since when this process alone acts; nil if nobody knows.
	actingSince func() time.Time

	setup     sync.Once
	ledger    *ledger
	exhausted *exhaustion
	boots     *boots
	// began is when this process was called first.
	began time.Time

	mu          sync.Mutex
	sessions    map[string]usedSession // the newest of each project
	inventories map[inventoryKey]*usedInventory
	warned      map[string]bool // classes and fields that were warned about
}

// usedSession is a session and when it was last asked for.
type usedSession struct {
	session *spi.Session
	at      time.Time
}

// inventoryKey tells inventories apart: one Secret must not wait for another's
// reads, nor see by its rights.
type inventoryKey struct {
	session *spi.Session
	region  string
}

// usedInventory is an inventory and when it was last asked for.
type usedInventory struct {
	*inventory
	at time.Time
}

// sessionLifetime is how long a session is remembered that nobody asks for.
const sessionLifetime = time.Hour

// Option changes a default of the Provider.
type Option func(*Provider)

// WithSettle sets how long the cloud may take until a request that was sent
// shows in a list; the default is DefaultSettle.
func WithSettle(settle time.Duration) Option {
	return func(p *Provider) { p.settle = &settle }
}

// WithStrictProviderSpec refuses a providerSpec with unknown fields, which are
// otherwise only logged.
func WithStrictProviderSpec(strict bool) Option {
	return func(p *Provider) { p.strictSpec = strict }
}

// WithActingSince tells the driver since when this process alone acts on the
// machines (its start, or when it became the leader; zero if it does not know). It
// is asked again and again: a process that was paused may have had a successor in
// the meantime.
// Without it that is the process's first driver call, which makes it wait without
// need for the first machine of a new cluster.
func WithActingSince(since func() time.Time) Option {
	return func(p *Provider) { p.actingSince = since }
}

// WithClock sets the clock; for tests.
func WithClock(clock clock.Clock) Option {
	return func(p *Provider) { p.clock = clock }
}

// NewProvider returns the driver, a *Provider, over the sessions of i.
func NewProvider(i spi.SessionProviderInterface, options ...Option) driver.Driver {
	p := &Provider{SPI: i}
	for _, option := range options {
		option(p)
	}
	return p
}

// begin readies the provider with its first call.
func (p *Provider) begin() {
	p.setup.Do(func() {
		if p.clock == nil {
			p.clock = clock.RealClock{}
		}
		if p.settle == nil {
			settle := DefaultSettle
			p.settle = &settle
		}
		p.ledger = newLedger(p.clock)
		p.exhausted = newExhaustion(p.clock)
		p.boots = newBoots(p.clock)
		p.sessions = map[string]usedSession{}
		p.inventories = map[inventoryKey]*usedInventory{}
		p.warned = map[string]bool{}
		p.began = p.clock.Now()
	})
}

// acting is since when this process alone acts: what was made before may be the
// work of a predecessor, of which nothing is known.
func (p *Provider) acting() time.Time {
	if p.actingSince != nil {
		if since := p.actingSince(); !since.IsZero() {
			return since
		}
	}
	return p.began
}

// session returns the session of the credentials, and remembers it as the
// project's newest.
func (p *Provider) session(credentials spi.Credentials) (*spi.Session, error) {
	session, err := p.SPI.Session(credentials)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.sessions[credentials.ProjectID] = usedSession{session, now}
	maps.DeleteFunc(p.sessions, func(_ string, other usedSession) bool { return now.Sub(other.at) > sessionLifetime })
	return session, nil
}

// inventoryOf is what all calls of the session read through.
func (p *Provider) inventoryOf(session *spi.Session, region string) *inventory {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, now := inventoryKey{session, region}, p.clock.Now()
	used, ok := p.inventories[key]
	if !ok {
		used = &usedInventory{inventory: newInventory(newStackitClient(session, region), p.clock)}
		p.inventories[key] = used
	}
	used.at = now
	maps.DeleteFunc(p.inventories, func(_ inventoryKey, other *usedInventory) bool { return now.Sub(other.at) > sessionLifetime })
	return used.inventory
}

// newestSession is the last one that was used for the project; nil if none was.
func (p *Provider) newestSession(projectID string) *spi.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[projectID].session
}

// predecessorsUntil is when everything shows that a predecessor may have asked for
// on behalf of the Machine; zero if none can have worked on it.
func (p *Provider) predecessorsUntil(machine *v1alpha1.Machine) time.Time {
	// A creationTimestamp has whole seconds, rounded down: a Machine of the second
	// in which this process began to act counts as older.
	since := p.acting()
	if created := machine.CreationTimestamp; created.IsZero() || !created.Time.Before(since) {
		return time.Time{}
	}
	return since.Add(*p.settle)
}

// maxWarned bounds how many warnings are remembered: classes come and go.
const maxWarned = 1000

// warnOnce says whether the warning was not given before, as far as is remembered.
func (p *Provider) warnOnce(warning string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned[warning] {
		return false
	}
	if len(p.warned) >= maxWarned {
		clear(p.warned)
	}
	p.warned[warning] = true
	return true
}

func newStackitClient(session *spi.Session, region string) StackitClient {
	return &sdkClient{api: session.API, projectID: session.ProjectID, region: region}
}

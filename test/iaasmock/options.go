// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// Option sets a property of the Cloud that New returns.
type Option func(*settings)

type settings struct {
	clock          clock.Clock
	bootDuration   time.Duration
	bootSpread     time.Duration
	deleteDuration time.Duration
	latencyMin     time.Duration
	latencyMax     time.Duration
	listLag        time.Duration
	// nicDelay hides the NIC of a new server for this time after its creation, in the server and in lists.
	nicDelay        time.Duration
	addressDelay    time.Duration
	releaseDuration time.Duration
	tokenLifetime   time.Duration
	keyForm         KeyForm
	catalogue       Catalogue
	authenticate    bool
	replaceLabels   bool
	// injected are the initial faults.
	injected []Fault
	random   *randomStream
}

func defaultSettings() settings {
	return settings{
		clock:          clock.RealClock{},
		bootDuration:   10 * time.Second,
		deleteDuration: 5 * time.Second,
		tokenLifetime:  10 * time.Minute,
		keyForm:        KeyForm2026,
		catalogue:      DefaultCatalogue(),
		authenticate:   true,
		random:         newRandomStream(rand.Uint64()),
	}
}

// WithClock sets the clock of the Cloud. Start a fake clock near the real time: clients sign
// assertions and check tokens with their own clock. Latencies and delays use this clock, too, so
// they end only when a fake clock is stepped. Default: the real clock.
func WithClock(c clock.Clock) Option {
	return func(s *settings) { s.clock = c }
}

// WithBootDuration sets how long a new server is CREATING until it is ACTIVE. Default: 10 s.
func WithBootDuration(d time.Duration) Option {
	return func(s *settings) { s.bootDuration = d }
}

// WithBootSpread adds a random time from 0 to d to each boot. Default: no additional time.
func WithBootSpread(d time.Duration) Option {
	return func(s *settings) { s.bootSpread = d }
}

// WithDeleteDuration sets how long a deleted server is DELETING until it is gone. Default: 5 s.
func WithDeleteDuration(d time.Duration) Option {
	return func(s *settings) { s.deleteDuration = d }
}

// WithAddressDelay hides the addresses of a new server's NIC for d after its creation, even if the
// server is ACTIVE. Addresses of NICs passed in nicIds are not hidden. Default: no delay.
func WithAddressDelay(d time.Duration) Option {
	return func(s *settings) { s.addressDelay = d }
}

// WithReleaseDuration keeps NICs and volumes that outlive their server attached for d after the
// server is gone. Default: no delay.
func WithReleaseDuration(d time.Duration) Option {
	return func(s *settings) { s.releaseDuration = d }
}

// WithLatency delays every call by a random time from min to max. Default: no latency.
func WithLatency(min, max time.Duration) Option {
	return func(s *settings) { s.latencyMin, s.latencyMax = min, max }
}

// WithListLag makes lists of servers show the servers and states of d ago: a new server is missing,
// a deleted server is still listed. GetServer and all other lists do not lag. Default: no lag.
func WithListLag(d time.Duration) Option {
	return func(s *settings) { s.listLag = d }
}

// WithCatalogue sets the initial resources of the Cloud. Default: DefaultCatalogue.
func WithCatalogue(catalogue Catalogue) Option {
	return func(s *settings) { s.catalogue = catalogue }
}

// WithoutAuthentication accepts calls without a token, and with any token.
func WithoutAuthentication() Option {
	return func(s *settings) { s.authenticate = false }
}

// WithTokenLifetime sets the lifetime of access tokens. Default: 10 min, as on STACKIT.
func WithTokenLifetime(d time.Duration) Option {
	return func(s *settings) { s.tokenLifetime = d }
}

// WithKeyForm sets the format of new service-account keys. Default: KeyForm2026.
func WithKeyForm(form KeyForm) Option {
	return func(s *settings) { s.keyForm = form }
}

// WithReplacedLabels makes the labels in a PATCH of a server replace all existing labels. By default they
// are merged; it is unknown which of the two the API does.
func WithReplacedLabels() Option {
	return func(s *settings) { s.replaceLabels = true }
}

// WithLive makes the mock as slow as STACKIT, and limits the calls. Options after WithLive override
// it. Test runs of cluster-api-provider-stackit (2026-08) saw a server ACTIVE after about two
// minutes, without a NIC for most of them, and gone within 16 or 32 s of its deletion. STACKIT does
// not publish its rate limit: the one here, 100 calls per second and source address, 200 at once,
// affects only clients that do not limit themselves.
func WithLive() Option {
	return func(s *settings) {
		s.bootDuration, s.nicDelay, s.deleteDuration = 2*time.Minute, 100*time.Second, 15*time.Second
		s.injected = append(s.injected, fault.SourceLimit(100, 200))
	}
}

// WithSeed makes a run repeatable: the same calls in the same order get the same
// latencies, boot times, faults, IDs and orders of NICs. Keys and tokens still differ. Default: random;
// see Seed.
func WithSeed(seed uint64) Option {
	return func(s *settings) { s.random = newRandomStream(seed) }
}

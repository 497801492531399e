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
	deleteSpread   time.Duration
	latencyMin     time.Duration
	latencyMax     time.Duration
	listLag        time.Duration
	replicaLags    []time.Duration
	nicDelay       time.Duration
	addressDelay   time.Duration
	// releaseDuration is set by WithReleaseDuration.
	releaseDuration time.Duration
	tokenLifetime   time.Duration
	keyForm         KeyForm
	catalogue       Catalogue
	authenticate    bool
	serverLabels    bool
	nullLists       bool
	replaceLabels   bool
	loadBalancer    bool
	// injected are the initial faults.
	injected []Fault
	quota    Quota
	random   randomSource
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
		quota:          DefaultQuota(),
		random:         randomSource{seed: rand.Uint64()},
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

// WithDeleteSpread adds a random time from 0 to d to each deletion. Default: no additional time.
func WithDeleteSpread(d time.Duration) Option {
	return func(s *settings) { s.deleteSpread = d }
}

// WithNICDelay hides the NIC of a new server for d after its creation, in the server and in all
// lists, even if the server is ACTIVE. NICs passed in nicIds are not hidden. Default: no delay.
func WithNICDelay(d time.Duration) Option {
	return func(s *settings) { s.nicDelay = d }
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

// WithListReplicas answers each list of servers from a random replica, with one replica for each of
// the lags. A replica lags as with WithListLag, so that a server may appear in a list, be missing
// in the next and appear again. The lag of WithListLag is the minimum for all replicas. Default: no
// replicas.
func WithListReplicas(lags ...time.Duration) Option {
	return func(s *settings) { s.replicaLags = lags }
}

// WithNullLists encodes empty lists as {"items":null}. Default: {"items":[]}.
func WithNullLists() Option {
	return func(s *settings) { s.nullLists = true }
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

// WithServerLabels adds STACKIT's own labels to new servers: stackit_project_id and
// provisionSTACKITServerAgent. Default: off.
func WithServerLabels() Option {
	return func(s *settings) { s.serverLabels = true }
}

// WithLoadBalancer adds the server of a load balancer to DefaultProjectID. Lists and quotas include
// it, because STACKIT runs such servers in the user's project. Default: off.
func WithLoadBalancer() Option {
	return func(s *settings) { s.loadBalancer = true }
}

// WithLive makes the mock as slow as STACKIT, adds a load balancer's server, and limits the calls.
// Options after WithLive override it. Test runs of cluster-api-provider-stackit (2026-08) saw a
// server ACTIVE after about two minutes, without a NIC for most of them, and gone within 16 or 32 s
// of its deletion, and a load balancer's server in the project. STACKIT does not publish its rate
// limit. The limit here, 100 calls per second and source address, 200 at once, affects only clients
// that do not limit themselves.
func WithLive() Option {
	return func(s *settings) {
		for _, option := range []Option{
			WithBootDuration(110 * time.Second), WithBootSpread(20 * time.Second), WithNICDelay(100 * time.Second),
			WithDeleteDuration(10 * time.Second), WithDeleteSpread(10 * time.Second), WithServerLabels(), WithLoadBalancer(),
		} {
			option(s)
		}
		limit := fault.SourceLimit(100, 200)
		limit.Name = "rate-limited-source"
		s.injected = append(s.injected, limit)
	}
}

// WithSeed makes a run repeatable: the same calls in the same order get the same
// latencies, boot times, faults, IDs and orders of NICs. Keys and tokens still differ. Default: random;
// see Seed.
func WithSeed(seed uint64) Option {
	return func(s *settings) { s.random = randomSource{seed: seed} }
}

// WithQuota sets the quota of each project in each region. Start from DefaultQuota: a limit of
// 0 allows nothing.
func WithQuota(quota Quota) Option {
	return func(s *settings) { s.quota = quota }
}

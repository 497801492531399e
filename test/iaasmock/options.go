// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// Option configures New.
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

// WithClock sets the clock of the Cloud. Set a fake clock to about the real time: clients
// sign assertions and check tokens by their own clock. Latencies and delays use it, too, so
// a fake clock must be stepped for them to end. Default: the real clock.
func WithClock(c clock.Clock) Option {
	return func(s *settings) { s.clock = c }
}

// WithBootDuration sets the time from CREATING to ACTIVE. Default: 10 s.
func WithBootDuration(d time.Duration) Option {
	return func(s *settings) { s.bootDuration = d }
}

// WithBootSpread adds a random time from 0 to d to each boot. Default: none.
func WithBootSpread(d time.Duration) Option {
	return func(s *settings) { s.bootSpread = d }
}

// WithDeleteDuration sets the time from DELETING to gone. Default: 5 s.
func WithDeleteDuration(d time.Duration) Option {
	return func(s *settings) { s.deleteDuration = d }
}

// WithDeleteSpread adds a random time from 0 to d to each deletion. Default: none.
func WithDeleteSpread(d time.Duration) Option {
	return func(s *settings) { s.deleteSpread = d }
}

// WithNICDelay hides a new server's NIC from the server and from all lists for d after its creation, even
// if the server is ACTIVE. NICs passed in nicIds are shown. Default: none.
func WithNICDelay(d time.Duration) Option {
	return func(s *settings) { s.nicDelay = d }
}

// WithAddressDelay hides the addresses of a new server's NIC for d after its creation,
// even if the server is ACTIVE. NICs passed in nicIds show theirs. Default: none.
func WithAddressDelay(d time.Duration) Option {
	return func(s *settings) { s.addressDelay = d }
}

// WithReleaseDuration makes NICs and volumes that outlive their server look attached to it for d after
// it is gone. Default: none.
func WithReleaseDuration(d time.Duration) Option {
	return func(s *settings) { s.releaseDuration = d }
}

// WithLatency delays every call by a random time from min to max. Default: none.
func WithLatency(min, max time.Duration) Option {
	return func(s *settings) { s.latencyMin, s.latencyMax = min, max }
}

// WithListLag makes lists show the servers and states of d ago: a new server is missing,
// a deleted server is still listed. GetServer does not lag. Default: none.
func WithListLag(d time.Duration) Option {
	return func(s *settings) { s.listLag = d }
}

// WithListReplicas answers each list of servers from a random replica; each of lags adds one.
// A replica lags as with WithListLag, so that a server may appear in a list, be missing
// in the next and appear again. With WithListLag as well, every replica lags by at least
// that. Default: none.
func WithListReplicas(lags ...time.Duration) Option {
	return func(s *settings) { s.replicaLags = lags }
}

// WithNullLists shows empty lists as {"items":null}. Default: as {"items":[]}.
func WithNullLists() Option {
	return func(s *settings) { s.nullLists = true }
}

// WithCatalogue replaces DefaultCatalogue.
func WithCatalogue(catalogue Catalogue) Option {
	return func(s *settings) { s.catalogue = catalogue }
}

// WithoutAuthentication accepts calls without a token, and any token.
func WithoutAuthentication() Option {
	return func(s *settings) { s.authenticate = false }
}

// WithTokenLifetime sets the lifetime of access tokens. Default: 10 min, as on STACKIT.
func WithTokenLifetime(d time.Duration) Option {
	return func(s *settings) { s.tokenLifetime = d }
}

// WithKeyForm sets the form of new service-account keys: KeyForm2026, the default, or KeyForm2025.
func WithKeyForm(form KeyForm) Option {
	return func(s *settings) { s.keyForm = form }
}

// WithReplacedLabels makes the labels of a server's PATCH replace the existing labels. By default
// they are merged: it is unknown which of the two the API does.
func WithReplacedLabels() Option {
	return func(s *settings) { s.replaceLabels = true }
}

// WithServerLabels adds STACKIT's own labels to new servers: stackit_project_id and
// provisionSTACKITServerAgent. Default: off.
func WithServerLabels() Option {
	return func(s *settings) { s.serverLabels = true }
}

// WithLoadBalancer adds a load balancer's server to DefaultProjectID, as STACKIT does in its
// user's project: lists and quotas include it. Default: off.
func WithLoadBalancer() Option {
	return func(s *settings) { s.loadBalancer = true }
}

// WithLive makes the mock as slow as STACKIT and its project as full, and limits the calls. Options after
// it win. Test runs of cluster-api-provider-stackit (2026-08) saw a server ACTIVE after about two minutes,
// without a NIC for most of them, and gone within 16 or 32 s of its deletion, and a load balancer's server
// in the project. STACKIT's rate limit is not published: a client reaches this limit of 100 a second, 200 at
// once, only if it does not limit itself.
func WithLive() Option {
	return func(s *settings) {
		for _, option := range []Option{
			WithBootDuration(110 * time.Second), WithBootSpread(20 * time.Second), WithNICDelay(100 * time.Second),
			WithDeleteDuration(10 * time.Second), WithDeleteSpread(10 * time.Second), WithServerLabels(), WithLoadBalancer(),
		} {
			option(s)
		}
		s.injected = append(s.injected, fault.SourceLimit(100, 200))
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

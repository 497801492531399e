// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Option changes a Cloud as New makes it.
type Option func(*settings)

type settings struct {
	clock          clock.Clock
	bootDuration   time.Duration
	bootSpread     time.Duration
	deleteDuration time.Duration
	networkDelay   time.Duration
	latencyMin     time.Duration
	latencyMax     time.Duration
	listLag        time.Duration
	replicaLags    []time.Duration
	actionDuration time.Duration
	addressDelay   time.Duration
	tokenLifetime  time.Duration
	catalogue      Catalogue
	authenticate   bool
	serverLabels   bool
	nullLists      bool
	limits         limitSettings
	random         randomSource
}

func defaultSettings() settings {
	return settings{
		clock:          clock.RealClock{},
		bootDuration:   10 * time.Second,
		deleteDuration: 5 * time.Second,
		actionDuration: 5 * time.Second,
		tokenLifetime:  time.Hour,
		catalogue:      DefaultCatalogue(),
		authenticate:   true,
		limits:         defaultLimits(),
		random:         randomSource{seed: rand.Uint64()},
	}
}

// WithClock makes the cloud live by this clock. Start a fake one at about the
// real time: clients sign assertions and judge tokens by their own clock.
// Latency and Fault.Delay wait on it, too, so a fake clock must be stepped for
// them to end.
func WithClock(c clock.Clock) Option {
	return func(s *settings) { s.clock = c }
}

// WithBootDuration sets the time from CREATING to ACTIVE. Default: 10 s.
func WithBootDuration(d time.Duration) Option {
	return func(s *settings) { s.bootDuration = d }
}

// WithBootSpread lets every server take up to that much longer to boot, at random.
// Default: none.
func WithBootSpread(d time.Duration) Option {
	return func(s *settings) { s.bootSpread = d }
}

// WithDeleteDuration sets the time from DELETING to gone. Default: 5 s.
func WithDeleteDuration(d time.Duration) Option {
	return func(s *settings) { s.deleteDuration = d }
}

// WithActionDuration sets how long it takes to start, stop, deallocate or reboot
// a server. Default: 5 s.
func WithActionDuration(d time.Duration) Option {
	return func(s *settings) { s.actionDuration = d }
}

// WithNetworkDuration sets how long it takes to create, change or delete a
// network, which is CREATING, UPDATING or DELETING meanwhile. Default: none.
func WithNetworkDuration(d time.Duration) Option {
	return func(s *settings) { s.networkDelay = d }
}

// WithAddressDelay lets a NIC that is made for a new server get its addresses
// only that long after the server was created, ACTIVE or not. Until then it has
// a MAC only. NICs handed in keep theirs. Default: none.
func WithAddressDelay(d time.Duration) Option {
	return func(s *settings) { s.addressDelay = d }
}

// WithLatency makes every call take a random time between min and max.
// Default: none.
func WithLatency(min, max time.Duration) Option {
	return func(s *settings) { s.latencyMin, s.latencyMax = min, max }
}

// WithListLag makes lists of servers show which servers there were, and in
// which state, that long ago: a new server is missing, a gone one still there.
// Reading a server by its ID is never late. Default: none.
func WithListLag(d time.Duration) Option {
	return func(s *settings) { s.listLag = d }
}

// WithListReplicas lets each list of servers be answered by one of several
// replicas, at random. Each replica lags behind as WithListLag has it, by its own
// lag, so that a server may appear in a list, be missing in the next one and
// appear again. With WithListLag as well, no replica lags by less than that.
// Default: none.
func WithListReplicas(lags ...time.Duration) Option {
	return func(s *settings) { s.replicaLags = lags }
}

// WithNullLists shows lists in which there is nothing as {"items":null}. Default:
// as {"items":[]}.
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

// WithTokenLifetime sets how long an access token is valid. Default: 1 h.
func WithTokenLifetime(d time.Duration) Option {
	return func(s *settings) { s.tokenLifetime = d }
}

// WithServerLabels adds the labels to new servers that STACKIT puts on its own
// there: stackit_project_id and provisionSTACKITServerAgent. Default: off.
func WithServerLabels() Option {
	return func(s *settings) { s.serverLabels = true }
}

// WithSeed makes the same sequence of calls meet the same latencies, the same
// faults and the same IDs again. Keys and tokens differ all the same. Default: a
// random seed, see Seed.
func WithSeed(seed uint64) Option {
	return func(s *settings) { s.random = randomSource{seed: seed} }
}

// limitSettings are the options that make the cloud refuse, or run out of things.
type limitSettings struct {
	strictLabels  bool
	unconfirmed   bool
	wholePrefixes bool
	quota         Quota
	quotaCode     int
	quotaText     string
	// capacity is replaced, never written to.
	capacity map[capacityKey]int
}

func defaultLimits() limitSettings {
	return limitSettings{quota: DefaultQuota(), quotaCode: http.StatusForbidden, quotaText: defaultQuotaText}
}

// WithStrictLabels makes requests fail whose labels break the rules that the
// API document states in prose: keys and values of letters, digits, dashes,
// underscores and dots, so no slash in a key. In practice the API takes slashes,
// on servers at least. Default: off.
func WithStrictLabels() Option {
	return func(s *settings) { s.limits.strictLabels = true }
}

// WithUnconfirmedRefusals refuses what the real API may refuse, too, but is not known to:
// such as a server in a network that does not exist. README.md lists these refusals.
// Default: off, such calls are accepted; a server that cannot be built as it was ordered
// ends in ERROR.
func WithUnconfirmedRefusals() Option {
	return func(s *settings) { s.limits.unconfirmed = true }
}

// WithNormalisedPrefixes makes NICs show allowedAddresses as whole prefixes:
// 10.0.0.5/8 as 10.0.0.0/8, a bare address with its full length. Whether the
// real API does that is not known. Default: off, they are shown as sent.
func WithNormalisedPrefixes() Option {
	return func(s *settings) { s.limits.wholePrefixes = true }
}

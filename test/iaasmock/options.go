// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Option configures New.
type Option func(*settings)

type settings struct {
	clock          clock.Clock
	bootDuration   time.Duration
	bootSpread     time.Duration
	deleteDuration time.Duration
	latencyMin     time.Duration
	latencyMax     time.Duration
	listLag        time.Duration
	replicaLags    []time.Duration
	actionDuration time.Duration
	addressDelay   time.Duration
	// releaseDuration is WithReleaseDuration's.
	releaseDuration time.Duration
	tokenLifetime   time.Duration
	catalogue       Catalogue
	authenticate    bool
	serverLabels    bool
	nullLists       bool
	replaceLabels   bool
	limits          limitSettings
	random          randomSource
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

// WithClock sets the clock of the Cloud. Start a fake one at about the real time: clients
// sign assertions and check tokens by their own clock. Latencies and delays wait on it,
// too, so a fake clock must be stepped for them to end. Default: the real clock.
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

// WithActionDuration sets the time to start or stop a server. Default: 5 s.
func WithActionDuration(d time.Duration) Option {
	return func(s *settings) { s.actionDuration = d }
}

// WithAddressDelay hides the addresses of a new server's NIC for d after its creation,
// also if the server is ACTIVE. NICs passed in nicIds show theirs. Default: none.
func WithAddressDelay(d time.Duration) Option {
	return func(s *settings) { s.addressDelay = d }
}

// WithReleaseDuration lets NICs and volumes that outlive their server look attached to it for d
// after it is gone. Default: none.
func WithReleaseDuration(d time.Duration) Option {
	return func(s *settings) { s.releaseDuration = d }
}

// WithLatency makes every call take a random time from min to max. Default: none.
func WithLatency(min, max time.Duration) Option {
	return func(s *settings) { s.latencyMin, s.latencyMax = min, max }
}

// WithListLag makes lists show the servers and states of d ago: a new server is missing,
// a deleted one is still there. GetServer does not lag. Default: none.
func WithListLag(d time.Duration) Option {
	return func(s *settings) { s.listLag = d }
}

// WithListReplicas answers each list of servers from a random replica, one for each lag.
// A replica lags as with WithListLag, so that a server may appear in a list, be missing
// in the next one and appear again. With WithListLag as well, no replica lags by less
// than that. Default: none.
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

// WithTokenLifetime sets how long an access token is valid. Default: 1 h.
func WithTokenLifetime(d time.Duration) Option {
	return func(s *settings) { s.tokenLifetime = d }
}

// WithReplacedLabels makes the labels of a PATCH of a server replace those that it has. By default
// they are merged into them: which of the two the API does is not known.
func WithReplacedLabels() Option {
	return func(s *settings) { s.replaceLabels = true }
}

// WithServerLabels adds STACKIT's own labels to new servers: stackit_project_id and
// provisionSTACKITServerAgent. Default: off.
func WithServerLabels() Option {
	return func(s *settings) { s.serverLabels = true }
}

// WithSeed makes a run repeatable: the same calls in the same order get the same
// latencies, boot times, faults and IDs. Keys and tokens still differ. Default: random,
// see Seed.
func WithSeed(seed uint64) Option {
	return func(s *settings) { s.random = randomSource{seed: seed} }
}

// limitSettings are the options for quotas, capacity, refusals and the form of labels and
// prefixes.
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

// WithStrictLabels refuses labels that break the rules in the descriptions of the API
// document, with 400: keys and values consist of letters, digits, dashes, underscores and
// dots, so a key has no slash. In practice the API accepts slashes, at least on servers.
// Default: off.
func WithStrictLabels() Option {
	return func(s *settings) { s.limits.strictLabels = true }
}

// WithUnconfirmedRefusals also refuses what STACKIT may refuse, but is not known to: for
// example a server in a network that does not exist. README.md lists these refusals.
// Default: off, such calls are accepted; a server that cannot be built as requested ends
// in ERROR.
func WithUnconfirmedRefusals() Option {
	return func(s *settings) { s.limits.unconfirmed = true }
}

// WithNormalisedPrefixes makes NICs show allowedAddresses as masked prefixes: 10.0.0.5/8
// as 10.0.0.0/8, an address without a length with the full length. Whether STACKIT does
// that is not known. Default: off, they are shown as sent.
func WithNormalisedPrefixes() Option {
	return func(s *settings) { s.limits.wholePrefixes = true }
}

// unconfirmed returns a refusal without a source only WithUnconfirmedRefusals. Otherwise
// it returns nil and the call goes on.
func (s *settings) unconfirmed(err *apiError) *apiError {
	if s.limits.unconfirmed {
		return err
	}
	return nil
}

// WithQuota sets the quota of all projects that have none of their own. Start from
// DefaultQuota: a limit of 0 allows nothing.
func WithQuota(quota Quota) Option {
	return func(s *settings) { s.limits.quota = quota }
}

// WithQuotaRefusal sets the answer of CreateServer when a quota would be
// exceeded. {resources}, {requested}, {used} and {limit} in the text are replaced; if
// several quotas are exceeded, each lists all of them. What STACKIT answers is not known.
// Default: 403 and "Quota exceeded for cores: Requested 4, but already used 20 of 20
// cores".
func WithQuotaRefusal(code int, text string) Option {
	return func(s *settings) { s.limits.quotaCode, s.limits.quotaText = code, text }
}

// WithCapacity limits how many servers of a machine type fit into a zone, over all
// projects. "" matches any. A server has to fit under every limit that matches it;
// otherwise CreateServer still succeeds and the server ends in ERROR, as on STACKIT.
// Default: no limits.
func WithCapacity(machineType, zone string, n int) Option {
	return func(s *settings) {
		s.limits.capacity = maps.Clone(s.limits.capacity)
		if s.limits.capacity == nil {
			s.limits.capacity = map[capacityKey]int{}
		}
		s.limits.capacity[capacityKey{machineType, zone}] = n
	}
}

// capacityKey selects the servers that a limit counts; "" matches any.
type capacityKey struct {
	machineType, zone string
}

// covers reports whether a limit for k counts servers of this type and zone.
func (k capacityKey) covers(machineType, zone string) bool {
	return (k.machineType == "" || k.machineType == machineType) && (k.zone == "" || k.zone == zone)
}

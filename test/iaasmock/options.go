// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
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
	latencyMin     time.Duration
	latencyMax     time.Duration
	listLag        time.Duration
	actionDuration time.Duration
	addressDelay   time.Duration
	tokenLifetime  time.Duration
	catalogue      Catalogue
	authenticate   bool
	serverLabels   bool
	strictLabels   bool
	wholePrefixes  bool
	quota          Quota
	quotaCode      int
	quotaText      string
	// capacity is replaced, never written to.
	capacity map[place]int
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
		quota:          DefaultQuota(),
		quotaCode:      http.StatusForbidden,
		quotaText:      defaultQuotaText,
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

// WithStrictLabels makes requests fail whose labels break the rules that the
// API document states in prose: keys and values of letters, digits, dashes,
// underscores and dots, so no slash in a key. In practice the API takes slashes,
// on servers at least. Default: off.
func WithStrictLabels() Option {
	return func(s *settings) { s.strictLabels = true }
}

// WithNormalisedPrefixes makes NICs show allowedAddresses as whole prefixes:
// 10.0.0.5/8 as 10.0.0.0/8, a bare address with its full length. Whether the
// real API does that is not known. Default: off, they are shown as sent.
func WithNormalisedPrefixes() Option {
	return func(s *settings) { s.wholePrefixes = true }
}

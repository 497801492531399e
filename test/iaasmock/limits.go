// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "net/http"

// limitSettings are the options that make the cloud refuse, or run out of things.
type limitSettings struct {
	strictLabels  bool
	oneBootDevice bool
	wholePrefixes bool
	quota         Quota
	quotaCode     int
	quotaText     string
	// capacity is replaced, never written to.
	capacity map[place]int
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

// WithOneBootDevice refuses a server with an imageId and a bootVolume, with 400. Default:
// off, the imageId is the boot volume's source unless that has one of its own. Whether the
// real API refuses any of it is not known; a driver in production sends an imageId and a
// bootVolume without a source.
func WithOneBootDevice() Option {
	return func(s *settings) { s.limits.oneBootDevice = true }
}

// WithNormalisedPrefixes makes NICs show allowedAddresses as whole prefixes:
// 10.0.0.5/8 as 10.0.0.0/8, a bare address with its full length. Whether the
// real API does that is not known. Default: off, they are shown as sent.
func WithNormalisedPrefixes() Option {
	return func(s *settings) { s.limits.wholePrefixes = true }
}

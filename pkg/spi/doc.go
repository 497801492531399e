// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package spi turns the credentials of a MachineClass's Secret into sessions:
// authenticated, well-behaved clients of the STACKIT IaaS API.
//
// A request of a session passes this chain, from the outside in:
//
//	retry      repeats what may be repeated, and honours Retry-After (retry.go)
//	auth       adds the access token, and renews it once on a 401 (auth.go)
//	rate limit one bucket for all sessions of the process; reads go before
//	           writes (transport.go)
//	deadline   an attempt ends after 30 s, to the end of its body (transport.go)
//	metrics    counts and times every attempt (metrics.go)
//
// The order matters: every attempt takes a token from the bucket and has a
// deadline of its own, and a renewed access token is used by the very next one.
package spi

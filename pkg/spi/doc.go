// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package spi turns the credentials of a MachineClass's Secret into sessions:
// authenticated, well-behaved clients of the STACKIT IaaS API.
//
// A request of a session passes this chain, from the outside in; each link is the
// file of its name, the deadline is in transport.go:
//
//	retry     repeats what may be repeated, after a backoff
//	auth      adds the access token, and renews it once on a 401
//	pace      limits how many writes of a kind are in flight, to fewer while the API fails for
//	          them, honours Retry-After, and lets repeated reads wait for their turn
//	limits    one bucket for all sessions of the process; reads go before writes
//	fence     holds API calls back after a pause in which another sidecar may have led
//	deadline  an attempt at a read ends after 20 s, at a write after 30 s, to the end of its body;
//	          notes whether anything was written
//	metrics   counts, times and logs every attempt
//	transport sends it, and reads the whole answer
//
// The order matters: every attempt passes the pace, takes a token from the bucket and has its
// own deadline, and the next attempt uses a renewed access token. The fence comes after the
// links that may wait long, and before the deadline starts. Requests for access tokens pass only
// the last three links.
//
// A request that ends while it waits in a link, or of which nothing was written, has a NotSentError.
//
// PluginSPIImpl.newChain builds the chain; spi.go has the sessions, config.go the
// environment variables and which token endpoints a key may name, key.go the rules for
// service-account keys, identity.go those for workload identities. README.md lists the threats that this is about.
package spi

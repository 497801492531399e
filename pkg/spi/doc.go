// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package spi turns the credentials in a MachineClass's Secret into sessions: authenticated clients
// of the STACKIT IaaS API with retries, rate limits and metrics.
//
// Each request of a session passes this chain, from the outside in. Each link is in the file of its
// name; the deadline is in transport.go:
//
//	retry     repeats failed reads, after a backoff
//	auth      adds the access token, and renews it once on a 401
//	pace      pauses a kind of writes while it fails; sends a write that was answered 429 again
//	limits    waits for the rate limit of the process, which all sessions share
//	fence     holds API calls back after a pause of the process in which another sidecar may
//	          have led
//	deadline  limits an attempt, including its body, to 20 s for a read and 30 s for a write;
//	          notes whether anything was written
//	metrics   counts, times and logs every attempt
//	transport sends the request, and reads the whole answer
//
// The order matters: every attempt uses the current access token, passes the pace and the rate
// limit, and has its own deadline. The fence comes after the links that may wait long, and before
// the deadline starts. Requests for access tokens pass only the last three links.
//
// A request that ends while it waits in a link, or before any of it is written, fails with a
// NotSentError.
//
// PluginSPIImpl.newChain builds the chain. The sessions are in spi.go; the environment variables
// and the allowed token endpoints in config.go; the rules for service-account keys in key.go, for
// workload identities in identity.go. README.md lists the threats that these rules address.
package spi

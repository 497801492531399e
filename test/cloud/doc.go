// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package cloud is the suite for a real project: a driver's life on a local control plane
// with the real API, guarded, measured and swept. `make test-cloud` runs it; the page beside
// this file says what it needs, what it costs and how to read its report.
//
// The specs are no tests of the go command: they are linked into cmd/test-cloud, so that
// nothing ever runs them but somebody who wants servers. Nothing here knows the mock; package
// selftest runs the suite against it.
//
// Each run makes a network of its own. All requests pass one door (package guard), which counts
// servers, notes what the run has made, and lets package witness look at every answer. Package
// sweep deletes what is in the network and has the run's name (package mark), or is noted.
package cloud

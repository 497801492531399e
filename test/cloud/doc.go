// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package cloud is the suite for a real project: it runs the driver on a local control plane against
// the real API, guards what is created, measures the API, and sweeps. `make test-cloud` runs it; the
// README beside this file says what it needs, what it costs and how to read its report.
//
// The specs are not tests of the go command but part of cmd/test-cloud, so that they run only for
// somebody who wants servers. Nothing here knows the mock; package selftest runs the suite against it.
//
// Each run creates a network of its own. All requests pass one proxy (package guard), which counts
// servers, notes what the run has created, and shows package witness every answer. Package sweep
// deletes what is in the network and has the run's name (package mark), or is noted.
package cloud

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what users see: Machines that are applied to a real API server
// become servers of the mock cloud and Nodes, by the real machine-controller-manager and
// our sidecar, and leave nothing behind. Each spec ends with a check of what the cloud
// still has.
//
// One spec is chaos: Machines are created and deleted at random while the cloud
// misbehaves and processes are killed. E2E_CHAOS_DURATION sets for how long, by default
// 1m. E2E_CHAOS_SEED repeats the random choices of an earlier run, which has printed its
// seed:
//
//	E2E_CHAOS_DURATION=15m make test-e2e FOCUS=killed
package e2e

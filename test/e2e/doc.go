// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what users see: Machines applied to a real API server, handled
// by the real machine-controller-manager and our sidecar, become servers of the
// mock cloud and Nodes, and leave nothing behind. Each spec ends with a look at
// what the cloud still holds.
package e2e

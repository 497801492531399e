// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package load holds a test that keeps the driver busy over real HTTP and in real
// time, and sees that nothing in its process grows.
package load

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package load has two tests. One keeps the driver busy over real HTTP and in real time, and
// checks that nothing in its process grows. The other lets up to a thousand sidecars share an API
// that takes fewer POSTs than they want, in virtual time. README.md has its figures.
package load

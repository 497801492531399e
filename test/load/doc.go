// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package load has two tests in virtual time. One keeps the driver busy for half a day, and checks
// that nothing in its process grows. The other lets up to a thousand sidecars share an API that takes
// fewer POSTs than they want. README.md has its figures.
package load

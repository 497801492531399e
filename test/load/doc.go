// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package load has two tests in virtual time. One keeps the driver busy for half a day, and checks
// that nothing in its process grows. In the other, up to a thousand sidecars share an API that accepts
// fewer POSTs than they need. README.md has the results.
package load

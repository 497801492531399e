// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes embeds the page from which mcm-stackit takes causes and remedies.
package kubernetes

import _ "embed"

// Runbooks is the content of runbooks.md.
//
//go:embed runbooks.md
var Runbooks string

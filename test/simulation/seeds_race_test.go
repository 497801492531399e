// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// The race detector makes everything ten times as slow.
const (
	defaultSeeds = 150
	defaultNth   = 10
)

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

const (
	defaultSeeds = 2000
	// defaultNth life of those in which one thing goes wrong is run: all of them.
	defaultNth = 1
)

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

const (
	defaultSeeds = 2000
	// everyNth life of those with every disturbance at every point is run.
	everyNth = 1
)

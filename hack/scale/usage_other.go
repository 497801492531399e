// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// readUsage knows nothing without /proc: figures of it are left out.
func readUsage(int) (usage, error) { return usage{}, nil }

func readBusy() (seconds, error) { return 0, nil }

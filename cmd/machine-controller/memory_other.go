// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// trimProgram does nothing: only Linux shows a process its mappings.
func trimProgram(int) error { return nil }

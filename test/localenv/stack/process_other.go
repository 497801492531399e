// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package stack

import "syscall"

// childAttributes gives a child a process group of its own, so that Ctrl-C in a
// terminal reaches us alone and everything stops in order. These systems cannot
// kill a child when its parent dies: what a process of ours that is killed has
// started goes on running.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

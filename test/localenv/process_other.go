// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package localenv

import "syscall"

// childAttributes gives a child its own process group, so that Ctrl-C in a terminal reaches only this process, which
// then stops everything in order. If this process is killed, its children keep running: only Linux can kill them.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

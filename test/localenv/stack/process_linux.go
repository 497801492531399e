// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import "syscall"

// childAttributes gives a child a process group of its own, so that Ctrl-C in a
// terminal reaches us alone and everything stops in order; and has the kernel
// kill it should we die without stopping it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import "syscall"

// childAttributes gives a child its own process group, so that Ctrl-C in a terminal reaches only this process, which
// then stops everything in order. The kernel kills the child if this process dies without stopping it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"os"
	"os/exec"
	"syscall"
)

// asUser lets a command run as the image's user, if this one may do that.
func asUser(command *exec.Cmd) {
	if os.Getuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
}

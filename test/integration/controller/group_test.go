// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"io"
	"os/exec"
	"syscall"
)

// processGroup is a process group that ends with this process. Its first member does
// nothing but wait for that: for the end of its input.
type processGroup struct {
	guard *exec.Cmd
	input io.WriteCloser
}

func newProcessGroup() (*processGroup, error) {
	guard := exec.Command("/bin/sh", "-c", "read -r nothing; kill -KILL 0")
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &processGroup{guard: guard, input: input}, guard.Start()
}

func (g *processGroup) id() int { return g.guard.Process.Pid }

// end kills all members.
func (g *processGroup) end() {
	_ = g.input.Close()
	// It kills itself as well: that error says nothing.
	_ = g.guard.Wait()
}

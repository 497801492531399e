// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
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

// join makes a command a member when it starts.
func (g *processGroup) join(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id()}
}

func (g *processGroup) id() int { return g.guard.Process.Pid }

// end kills all members.
func (g *processGroup) end() {
	_ = g.input.Close()
	// It kills itself as well: that error says nothing.
	_ = g.guard.Wait()
}

// TestGroup is what keeps the suite from ending controllers of others, and its own
// from staying: it finds processes with the workspace's ps.
func TestGroup(t *testing.T) {
	g := NewWithT(t)
	start := func() (*processGroup, *exec.Cmd) {
		group, err := newProcessGroup()
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(group.end)
		member := exec.Command("sleep", "60")
		group.join(member)
		g.Expect(member.Start()).To(Succeed())
		return group, member
	}
	ours, own := start()
	_, foreign := start()

	realPS, err := exec.LookPath("ps")
	g.Expect(err).NotTo(HaveOccurred())
	ps := exec.Command("testdata/workspace/path/ps", "-e", "-o", "pid,args")
	ps.Env = []string{"PS=" + realPS}
	ours.join(ps)
	seen, err := ps.Output()
	g.Expect(err).NotTo(HaveOccurred())
	line := func(process *exec.Cmd) string { return fmt.Sprintf("%d sleep 60\n", process.Process.Pid) }
	g.Expect(string(seen)).To(ContainSubstring(line(own)))
	g.Expect(string(seen)).NotTo(ContainSubstring(line(foreign)))

	ours.end()
	g.Expect(own.Wait()).To(MatchError("signal: killed"))
	g.Expect(foreign.Process.Signal(syscall.Signal(0))).To(Succeed(), "the other group goes on")
	t.Cleanup(func() { _ = foreign.Process.Kill(); _ = foreign.Wait() })
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func shell(script string) command {
	return command{path: "/bin/sh", args: []string{"-c", script}, env: minimalEnvironment()}
}

func spawnShell(t *testing.T, script string) *process {
	t.Helper()
	p, err := spawn(PartEtcd, shell(script), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(0) })
	return p
}

// hasLogged is ready once the process has printed text.
func hasLogged(p *process, text string) func(context.Context) error {
	return func(context.Context) error {
		if strings.Contains(p.output(), text) {
			return nil
		}
		return errors.New("not yet")
	}
}

func TestProcessThatExitsBeforeItIsReady(t *testing.T) {
	g := NewWithT(t)
	p := spawnShell(t, `for i in $(seq 1 30); do echo "line $i"; done; echo "it broke" >&2; exit 3`)
	err := p.awaitReady(t.Context(), time.Minute, hasLogged(p, "never"))
	g.Expect(err).To(MatchError(And(
		HavePrefix("etcd: exited: exit status 3; the end of its log:\n    line 12\n"),
		HaveSuffix("    it broke"),
		Not(ContainSubstring("line 11")),
	)))
}

func TestLogTailBeginsWhereTheProgramSaysWhyItEnds(t *testing.T) {
	stack := strings.Repeat("goroutine 1 [running]:\n", 40)
	head := strings.Repeat("I0102 15:04:05.000000 1 x.go:1] busy\n", 5)
	for name, row := range map[string]struct{ log, first string }{
		"a panic": {head + "panic: it broke\n\n" + stack, "panic: it broke"},
		"a fatal error of Go": {head + "fatal error: all goroutines are asleep\n" + stack,
			"fatal error: all goroutines are asleep"},
		"a fatal line of klog": {head + "F0102 15:04:05.000000 1 x.go:1] it broke\n" + stack,
			"F0102 15:04:05.000000 1 x.go:1] it broke"},
		"the last one counts":    {"panic: earlier\n" + head + "panic: later\n", "panic: later"},
		"none, the end is shown": {head + stack + "Failed\n", "goroutine 1 [running]:"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "log")
			g.Expect(os.WriteFile(path, []byte(row.log), 0o600)).To(Succeed())
			lines := strings.Split((&process{logPath: path}).tail(), "\n")
			g.Expect(lines[0]).To(Equal(row.first))
			g.Expect(len(lines)).To(BeNumerically("<=", tailLines))
		})
	}
}

func TestProcessThatNeverGetsReady(t *testing.T) {
	g := NewWithT(t)
	p := spawnShell(t, `echo started; exec sleep 60`)
	g.Expect(p.awaitReady(t.Context(), time.Minute, hasLogged(p, "started"))).To(Succeed())
	err := p.awaitReady(t.Context(), 100*time.Millisecond, hasLogged(p, "never"))
	g.Expect(err).To(MatchError(And(ContainSubstring("not ready after 100ms: not yet"), ContainSubstring("started"))))
}

func TestProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	g := NewWithT(t)
	p := spawnShell(t, `trap '' TERM; echo deaf; while :; do sleep 0.1; done`)
	g.Expect(p.awaitReady(t.Context(), time.Minute, hasLogged(p, "deaf"))).To(Succeed())
	p.end(100 * time.Millisecond)
	g.Expect(p.exited).To(BeClosed())
	g.Expect(p.err).To(MatchError("signal: killed"))
}

func newTestEnv(t *testing.T) *Env {
	t.Helper()
	e := newEnv(newSettings(nil))
	e.logDir = t.TempDir()
	t.Cleanup(e.Stop)
	return e
}

func TestLaunchTakesAnotherPortWhenOneIsTaken(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		// Another process answers on the port, from before ours was spawned or after that.
		before, after bool
	}{
		"ours says so":                           {script: "echo 'bind: " + portTaken + "' >&2; exit 1"},
		"somebody answers before ours was there": {script: "exec sleep 60", before: true},
		"somebody answers when ours has exited":  {script: "exit 1", after: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := newTestEnv(t)
			listen := func(port int) {
				listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				g.Expect(err).NotTo(HaveOccurred())
				t.Cleanup(func() { _ = listener.Close() })
			}
			var offered []int
			port, err := e.launch(t.Context(), service{
				part: PartEtcd,
				command: func(port int) command {
					offered = append(offered, port)
					if len(offered) > 1 {
						return shell("exec sleep 60")
					}
					if row.before {
						listen(port)
					}
					return shell(row.script)
				},
				ready: func(_ context.Context, port int) error {
					if len(offered) > 1 || row.before {
						return nil
					}
					if row.after {
						row.after = false
						listen(port)
					}
					return errors.New("not yet")
				},
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(offered).To(HaveLen(2))
			g.Expect(port).To(Equal(offered[1]))
		})
	}
}

func TestNothingOfOursLeaksIntoTheSidecar(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("STACKIT_NO_AUTH", "true")
	t.Setenv("STACKIT_IAAS_ENDPOINT", "https://iaas.example.com")
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	e := newEnv(newSettings(nil))
	e.settings.cloud.Environment = []string{"STACKIT_IAAS_ENDPOINT=http://127.0.0.1:1"}
	g.Expect(e.sidecarEnvironment()).To(ConsistOf(
		HavePrefix("PATH="),
		HavePrefix("HOME="),
		"STACKIT_IAAS_ENDPOINT=http://127.0.0.1:1",
	))
}

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
		"a panic":                {head + "panic: it broke\n\n" + stack, "panic: it broke"},
		"a fatal error of Go":    {head + "fatal error: all goroutines are asleep\n" + stack, "fatal error: all goroutines are asleep"},
		"a fatal line of klog":   {head + "F0102 15:04:05.000000 1 x.go:1] it broke\n" + stack, "F0102 15:04:05.000000 1 x.go:1] it broke"},
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

func TestLaunchTakesOtherPortsWhenOneIsTaken(t *testing.T) {
	g := NewWithT(t)
	e := newTestEnv(t)
	var offered [][]int
	ports, err := e.launch(t.Context(), service{
		part:  PartEtcd,
		ports: 2,
		command: func(ports []int) command {
			offered = append(offered, ports)
			if len(offered) == 1 {
				return shell("echo 'bind: " + portTaken + "' >&2; exit 1")
			}
			return shell("echo listening; exec sleep 60")
		},
		ready: func(context.Context, []int) error {
			if log, _ := e.Logs(PartEtcd); !strings.Contains(log, "listening") {
				return errors.New("not yet")
			}
			return nil
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(offered).To(HaveLen(2))
	g.Expect(ports).To(Equal(offered[1]))
	g.Expect(ports[0]).NotTo(Equal(ports[1]))
}

func TestAnswerOfAnotherProcessIsNotOurs(t *testing.T) {
	listenOn := func(t *testing.T, port int) {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	for name, row := range map[string]struct{ beforeSpawn, afterSpawn bool }{
		"there before ours was spawned": {beforeSpawn: true},
		"there when ours has exited":    {afterSpawn: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := newTestEnv(t)
			var first, second []int
			ports, err := e.launch(t.Context(), service{
				part:  PartEtcd,
				ports: 1,
				command: func(ports []int) command {
					if first != nil {
						second = ports
						return shell("exec sleep 60")
					}
					first = ports
					if row.beforeSpawn {
						listenOn(t, ports[0])
						return shell("exec sleep 60")
					}
					return shell("exit 1")
				},
				ready: func(_ context.Context, ports []int) error {
					if second != nil || row.beforeSpawn {
						return nil
					}
					if row.afterSpawn {
						row.afterSpawn = false
						listenOn(t, ports[0])
					}
					return errors.New("not yet")
				},
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ports).To(And(Equal(second), Not(Equal(first))))
		})
	}
}

func TestNothingOfOursLeaksIntoTheSidecar(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("STACKIT_NO_AUTH", "true")
	t.Setenv("STACKIT_IAAS_ENDPOINT", "https://iaas.example.com")
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	e := newEnv(newSettings(nil))
	e.api.Environment = []string{"STACKIT_IAAS_ENDPOINT=http://127.0.0.1:1"}
	g.Expect(e.sidecarEnvironment()).To(ConsistOf(
		HavePrefix("PATH="),
		HavePrefix("HOME="),
		"STACKIT_IAAS_ENDPOINT=http://127.0.0.1:1",
	))
}

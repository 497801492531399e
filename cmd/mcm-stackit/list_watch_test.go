// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// log is what was written since it was last taken.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// watching is list --watch in this process, whose clock the test turns.
type watching struct {
	*WithT
	clock    *clocktesting.FakeClock
	out, err log
}

// watch runs list --watch; the function ends it and returns its exit code.
func watch(t *testing.T, env []string, kind string) (w *watching, stop func() int) {
	t.Helper()
	w = &watching{WithT: NewWithT(t), clock: clocktesting.NewFakeClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))}
	o := newOptions(genericiooptions.IOStreams{Out: &w.out, ErrOut: &w.err}, func(name string) (string, bool) {
		at := slices.IndexFunc(env, func(variable string) bool { return strings.HasPrefix(variable, name+"=") })
		if at < 0 {
			return "", false
		}
		return env[at][len(name)+1:], true
	})
	o.clock = w.clock
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- o.execute(ctx, []string{"mcm-stackit", "list", kind, noControl, "--watch"}) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { stop() })
	w.await()
	return w, stop
}

// await waits for the end of a round.
func (w *watching) await() {
	w.Eventually(w.clock.HasWaiters).WithTimeout(30 * time.Second).Should(BeTrue())
}

// round lets the interval pass, and returns what the next round writes.
func (w *watching) round() (stdout, stderr string) {
	w.clock.Step(defaultInterval - time.Second)
	w.Expect(w.clock.HasWaiters()).To(BeTrue(), "the interval is not over")
	w.clock.Step(time.Second)
	w.await()
	return w.out.take(), w.err.take()
}

func TestWatchShowsChanges(t *testing.T) {
	cloud, env := startProject(t)
	id := addServer(t, env, "worker-1", workerLabels("worker-1"))
	w, stop := watch(t, env, "servers")
	w.Expect(w.out.take()).To(And(ContainSubstring("CLUSTER"), ContainSubstring(id), HaveSuffix("orphans unknown\n")))
	w.Expect(w.err.take()).To(ContainSubstring("Machines unknown: "))

	stdout, stderr := w.round()
	w.Expect(stdout+stderr).To(BeEmpty(), "nothing has changed, and what is unknown was said")

	w.Expect(cloud.SetServerStatus(id, iaasmock.StatusError, "No valid host was found")).To(Succeed())
	second := addServer(t, env, "worker-2", workerLabels("worker-2"))
	stdout, _ = w.round()
	w.Expect(strings.Split(stdout, "\n")).To(ConsistOf(
		"2026-05-04T03:02:21Z server "+id+" (worker-1) STATE: ACTIVE -> ERROR",
		"2026-05-04T03:02:21Z server "+id+" (worker-1) NOTE: unknown -> unknown, fault",
		"2026-05-04T03:02:21Z server "+second+" (worker-2) STATE: - -> ACTIVE",
		"2026-05-04T03:02:21Z server "+second+" (worker-2) NOTE: - -> unknown",
		"",
	))

	restore := cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
	stdout, stderr = w.round()
	w.Expect(stdout).To(BeEmpty(), "what was not read did not go")
	w.Expect(stderr).To(ContainSubstring("servers unknown: "))
	_, stderr = w.round()
	w.Expect(stderr).To(BeEmpty(), "it was said")

	restore()
	w.Expect(cloud.RemoveServer(id)).To(Succeed())
	stdout, _ = w.round()
	w.Expect(stdout).To(Equal("2026-05-04T03:02:51Z server " + id + " (worker-1) STATE: ERROR -> -\n"))
	w.Expect(stop()).To(Equal(finding.ExitFine))
}

func TestWatchClusters(t *testing.T) {
	_, env := startProject(t)
	w, _ := watch(t, env, "clusters")
	w.Expect(w.out.take()).To(HavePrefix("0 servers"))
	addServer(t, env, "worker-1", workerLabels("worker-1"))
	stdout, _ := w.round()
	w.Expect(stdout).To(Equal("2026-05-04T03:02:11Z cluster kubernetes.io/cluster=shoot--demo--laptop SERVERS: - -> 1\n"))
	addServer(t, env, "worker-2", workerLabels("worker-2"))
	stdout, _ = w.round()
	w.Expect(stdout).To(ContainSubstring("SERVERS: 1 -> 2\n"))
	w.Expect(stdout).To(ContainSubstring("ACTIVE: 1 -> 2\n"))
}

func TestWatchEndsWithCtrlC(t *testing.T) {
	_, env := startProject(t)
	id := addServer(t, env, "worker-1", workerLabels("worker-1"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "list", "servers", "--watch", noControl)
	command.Env = append([]string{asCommand + "=1", "HOME=" + t.TempDir()}, env...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), id) {
		continue
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		continue
	}
	if err := command.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

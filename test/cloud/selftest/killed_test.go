// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var (
	kills = flag.Int("kills", 1, "at how many random moments the suite is killed")
	// Most of a run's requests for servers are in this time.
	killWithin = flag.Duration("kill-within", 60*time.Second, "the latest of them")
)

var printedRun = regexp.MustCompile(`Run (\S+) begins`)

// TestKilled kills the suite at random moments. The sweep of the run leaves nothing of it, and keeps the
// network while somebody's NIC is in it.
func TestKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for i := range *kills {
		moment := rand.N(*killWithin)
		t.Run(fmt.Sprintf("%d after %s", i+1, moment.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			m := startMock(t, "--boot=3s", "--delete=2s", "--list-lag=1s")
			before := m.ids(t)
			s := newSuite(t, m)
			s.begin(t)
			var network string
			await(t, "a network", func() bool {
				network = newNetwork(t, m, before)
				return network != ""
			})
			run := printedRun.FindStringSubmatch(s.output.String())[1]
			time.Sleep(moment) //nolint:forbidigo // what is wanted is a moment
			if err := s.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait() // it was killed
			t.Logf("killed with %d servers in all", len(m.state(t).Servers))
			nic := makes(t, m, api.PathNICs(network), map[string]any{"name": "database-of-somebody"})
			stays := maps.Clone(before)
			stays["NIC "+nic], stays["network "+network] = true, true

			sweep(t, m, run, 1, "since NIC "+nic, "LEFT: network "+network, "Try again: make test-cloud-sweep RUN="+run)
			expectOnly(t, m, stays)

			if _, err := m.client(t).Do(t.Context(), http.MethodDelete, api.PathNICs(network)+"/"+nic, nil); err != nil {
				t.Fatal(err)
			}
			sweep(t, m, run, 0)
			expectOnly(t, m, before)
		})
	}
}

// sweep runs the sweep of a run.
func sweep(t *testing.T, m mock, run string, code int, wanted ...string) {
	t.Helper()
	s := newSuite(t, m, "sweep")
	s.Env = append(s.Env, "RUN="+run)
	s.run(t, code)
	expectSaid(t, s, wanted...)
}

func expectSaid(t *testing.T, s suite, wanted ...string) {
	t.Helper()
	for _, text := range wanted {
		if !strings.Contains(s.output.String(), text) {
			t.Errorf("%q is not in:\n%s", text, s.output)
		}
	}
}

func expectOnly(t *testing.T, m mock, wanted map[string]bool) {
	t.Helper()
	if seen := m.ids(t); !maps.Equal(wanted, seen) {
		t.Errorf("there is to be\n%v\nthere is\n%v", slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(seen)))
	}
}

// newNetwork returns the ID of a network that was not there before, empty for none.
func newNetwork(t *testing.T, m mock, before map[string]bool) string {
	t.Helper()
	for id := range m.ids(t) {
		if network, is := strings.CutPrefix(id, "network "); is && !before[id] {
			return network
		}
	}
	return ""
}

// TestClosedTerminal ends what reads the output, as Ctrl-C does with tee, and hangs up: what
// was made goes.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	skipShort(t)
	m := startMock(t, "--boot=1m", "--delete=1s")
	before := m.ids(t)
	s := newSuite(t, m)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.Stdout, s.Stderr = writer, writer
	s.begin(t)
	_ = writer.Close()
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	await(t, "a server", func() bool { return len(m.state(t).Servers) > 0 })
	_ = reader.Close()
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.expectEnd(t, 1)
	expectOnly(t, m, before)
}

// TestInterruptedSweep has an API that is down while it sweeps: it says so, and a second Ctrl-C
// ends it long before the sweep would give up, with the IDs of what is left.
func TestInterruptedSweep(t *testing.T) {
	t.Parallel()
	skipShort(t)
	m := startMock(t, "--boot=1m", "--delete=1s")
	before := m.ids(t)
	s := newSuite(t, m)
	s.begin(t)
	await(t, "a server", func() bool { return len(m.state(t).Servers) > 0 })
	network := newNetwork(t, m, before)
	m.inject(t, `{"preset":"unavailable"}`)
	interrupt := func() {
		if err := s.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	await(t, "a sweep that fails", func() bool { return strings.Contains(s.output.String(), "not all could be read") })
	began := time.Now()
	interrupt()
	s.expectEnd(t, 1)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it ended after %s", took)
	}
	server := m.state(t).Servers[0]
	run, _ := api.RunOf(server.Name)
	expectSaid(t, s, "LEFT: server "+server.ID, "LEFT: network "+network, "Try again: make test-cloud-sweep RUN="+run)
	m.inject(t, "")
	sweep(t, m, run, 0)
	expectOnly(t, m, before)
}

// TestGuard has a server of somebody that looks like an orphan of the run to the sidecar: its
// deletion is not sent, and the run is red.
func TestGuard(t *testing.T) {
	t.Parallel()
	skipShort(t)
	m := startMock(t, "--boot=1s", "--delete=1s")
	s := newSuite(t, m)
	s.begin(t)
	await(t, "a server of the driver", func() bool {
		ofTheDriver := func(server iaasmock.Server) bool { return strings.Contains(server.Name, "-roll-") }
		return slices.ContainsFunc(m.state(t).Servers, ofTheDriver)
	})
	run := printedRun.FindStringSubmatch(s.output.String())[1]
	const name = "database-of-somebody"
	id := makesServer(t, m, iaasmock.DefaultNetworkID, name, api.ServerLabels(run, name, api.Name(run, "class")))
	s.expectEnd(t, 1)
	expectSaid(t, s, "guard: DELETE /servers/"+id+" was asked for, which this run has not made")
	servers := m.state(t).Servers
	if len(servers) != 1 || servers[0].ID != id || servers[0].Status == iaasmock.StatusDeleting {
		t.Errorf("there are %v", servers)
	}
}

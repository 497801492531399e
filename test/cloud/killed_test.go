// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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
	// Of a run's 950 or so requests, all POSTs are among these.
	killWithin = flag.Int("kill-within", 550, "the latest of them, in requests")
)

// TestKilled kills the suite at random moments: the sweep of the run leaves nothing of it.
func TestKilled(t *testing.T) {
	t.Parallel()
	for i := range *kills {
		moment := rand.N(*killWithin)
		t.Run(fmt.Sprintf("%d after %d requests", i+1, moment), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, mockOptions(3*time.Second, iaasmock.WithListLag(time.Second)))
			before := p.ids()
			r := newProgram(t, p)
			r.begin(t)
			await(t, "a network", func() bool { return len(p.ids()) > len(before) })
			await(t, "the moment", func() bool { return len(p.Calls()) >= moment })
			r.signal(t, syscall.SIGKILL)
			_ = r.Wait() // it was killed
			t.Logf("killed with %d servers", len(p.Servers()))
			sweepRun(t, p, r.name(t))
			p.expectOnly(t, before)
		})
	}
}

// TestClosedTerminal ends what reads the output, as Ctrl-C does with tee, and hangs up: what
// was made goes.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(time.Minute))
	before := p.ids()
	r := newProgram(t, p)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Stdout, r.Stderr = writer, writer
	r.begin(t)
	_ = writer.Close()
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	await(t, "a server", func() bool { return len(p.Servers()) > 0 })
	_ = reader.Close()
	r.signal(t, syscall.SIGHUP)
	r.expectEnd(t, exitRed)
	p.expectOnly(t, before)
}

// TestInterruptedSweep has an API that is down while it sweeps: it says so, and a second Ctrl-C
// ends it long before the sweep would give up, with the IDs of what is left.
func TestInterruptedSweep(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(time.Minute))
	before := p.ids()
	r := newProgram(t, p)
	r.begin(t)
	await(t, "a server", func() bool { return len(p.Servers()) > 0 })
	p.fault(t, "unavailable")
	r.signal(t, syscall.SIGINT)
	await(t, "a sweep that fails", func() bool { return strings.Contains(r.said(t), "not all could be read") })
	began := time.Now()
	r.signal(t, syscall.SIGINT)
	r.expectEnd(t, exitRed)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it ended after %s", took)
	}
	for id := range p.ids() {
		if kind, _, _ := strings.Cut(id, " "); !before[id] && (kind == api.KindServer || kind == api.KindNetwork) {
			r.expectSaid(t, "LEFT: "+id)
		}
	}
	r.expectSaid(t, "Try again: make test-cloud-sweep RUN="+r.name(t))
	p.ClearFaults()
	sweepRun(t, p, r.name(t))
	p.expectOnly(t, before)
}

// TestGuard has a server of somebody that looks like an orphan of the run to the sidecar: its
// deletion is not sent, and the run is red.
func TestGuard(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(time.Second))
	r := newProgram(t, p)
	r.begin(t)
	await(t, "a server of the driver", func() bool {
		ofTheDriver := func(server iaasmock.Server) bool { return strings.Contains(server.Name, "-first") }
		return slices.ContainsFunc(p.Servers(), ofTheDriver)
	})
	const name = "database-of-somebody"
	labels := api.ServerLabels(r.name(t), name, api.Name(r.name(t), "first"))
	id := p.makeServer(t, name, map[string]any{"labels": labels})
	r.expectEnd(t, exitRed)
	r.expectSaid(t, "guard: DELETE /servers/"+id+" was asked for, which this run has not made")
	servers := p.Servers()
	if len(servers) != 1 || servers[0].ID != id || servers[0].Status == iaasmock.StatusDeleting {
		t.Errorf("there are %v", servers)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// sweptProject is a project with a network of a run, a server of its name elsewhere, and its sweep.
type sweptProject struct {
	project
	*sweep

	t       *testing.T
	network string
}

func (p *sweptProject) server() string {
	return p.makeServer(p.t, oldServer, map[string]any{"networking": inNetwork(p.network)})
}

func (p *sweptProject) makeNetwork() {
	p.network = p.make(p.t, api.PathNetworks, map[string]any{"name": api.NetworkName(oldRun)})
}

func (p *sweptProject) makeNIC(name string) string {
	return p.make(p.t, api.PathNICs(p.network), map[string]any{"name": name})
}

func TestSweep(t *testing.T) {
	for name, row := range map[string]struct {
		do func(p *sweptProject)
		// found and hidden are kinds. left are those of what is left if the sweep fails.
		found, hidden, left string
	}{
		"a server with its parts": {func(p *sweptProject) { p.server() }, "server", "", ""},
		"a NIC of the run's name": {func(p *sweptProject) { p.makeNIC(api.Name(oldRun, "nic")) }, "NIC", "", ""},
		"two networks of the name": {func(p *sweptProject) {
			p.server()
			p.makeNetwork()
			p.server()
		}, "server server", "", ""},
		"a volume that the API keeps, and a random 404 to its GET": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 404, Count: 1})
			p.server()
		}, "server volume", "", ""},
		"a volume that may not be read, and is gone": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.server()
		}, "server", "", ""},
		"a volume that the API keeps, and does not show at first": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 404, Count: 3})
			p.server()
		}, "server volume", "", ""},
		"a volume that may not be read, and an API that is down once": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.Inject(iaasmock.Fault{Operation: "DeleteVolume", Status: 503, Count: 1})
			p.server()
		}, "server", "", ""},
		"a volume that may not be read, and is kept": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.server()
		}, "server volume", "", ""},
		"a volume that may be neither read nor deleted": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.Inject(iaasmock.Fault{Operation: "DeleteVolume", Status: 403})
			p.server()
		}, "server", "volume", ""},
		"a lost answer to DELETE, and 403 afterwards": {func(p *sweptProject) {
			p.server()
			p.Inject(iaasmock.Fault{Operation: "DeleteServer", DropAfter: true, Count: 1})
			p.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: 403})
			p.Inject(iaasmock.Fault{Operation: "GetServer", ForbiddenAfterDelete: true})
		}, "server", "", ""},
		"a random 404 to DELETE": {func(p *sweptProject) {
			p.server()
			p.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: 404, Count: 1})
		}, "server", "", ""},
		"two 404s to GETs of the network": {func(p *sweptProject) {
			p.server()
			p.Inject(iaasmock.Fault{Operation: "GetNetwork", Status: 404, Count: 2})
		}, "server", "", ""},
		"a server whose lists and GETs are refused": {func(p *sweptProject) {
			p.note(api.Thing{Kind: api.KindServer, ID: p.server(), Name: oldServer, Deleting: true})
			p.Inject(iaasmock.Fault{Operation: "ListServers", Status: 403})
			p.Inject(iaasmock.Fault{Operation: "GetServer", Status: 403})
		}, "server", "", "server"},
		"somebody's NIC": {func(p *sweptProject) {
			p.server()
			p.makeNIC("database")
		}, "server", "", "network"},
		"a NIC of the run's on somebody's server": {func(p *sweptProject) {
			p.Inject(iaasmock.Fault{Operation: "GetNic", Status: 403})
			nic := p.makeNIC(api.Name(oldRun, "nic"))
			p.note(api.Thing{Kind: api.KindNIC, ID: nic, Network: p.network})
			p.makeServer(p.t, "database", map[string]any{"networking": map[string]any{"nicIds": []any{nic}}})
		}, "", "", "NIC network"},
		"a NIC of the run's on somebody's server, once lists fail": {func(p *sweptProject) {
			nic := p.makeNIC(api.Name(oldRun, "nic"))
			p.note(api.Thing{Kind: api.KindNIC, ID: nic, Network: p.network})
			p.makeServer(p.t, "database", map[string]any{"networking": map[string]any{"nicIds": []any{nic}}})
			p.Inject(iaasmock.Fault{Operation: "ListNics", Status: 503, Count: 1})
			p.Inject(iaasmock.Fault{Operation: "ListServers", Status: 503, Count: 1})
		}, "", "", "NIC network"},
		"what cannot be deleted": {func(p *sweptProject) {
			p.server()
			p.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: 409})
		}, "", "", "NIC server volume network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &options{out: io.Discard, settle: 50 * time.Millisecond, poll: 5 * time.Millisecond}
			p := &sweptProject{t: t, project: newProject(t, mockOptions(0, iaasmock.WithDeleteDuration(50*time.Millisecond)))}
			p.sweep = o.newSweep(p.client, oldRun)
			p.makeServer(t, oldServer, nil)
			before := p.ids()
			p.makeNetwork()
			row.do(p)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			go func() {
				// Without a server that goes the sweep does not end.
				for strings.Contains(row.left, "server") && api.Pause(ctx, 10*time.Millisecond) == nil {
					if p.CallCounts()["DeleteServer"] > 1 {
						cancel()
					}
				}
			}()
			found, err := p.delete(ctx)
			if got := kinds(found); got != row.found || (err != nil) != (row.left != "") {
				t.Errorf("found %q, %v", got, err)
			}
			if name == "somebody's NIC" && !strings.Contains(fmt.Sprint(err), "(of database) in it is not the run's") {
				t.Error(err)
			}
			if got := kinds(p.unreadable()); got != row.hidden {
				t.Errorf("may not read %q", got)
			}
			if row.left != "" {
				for _, kind := range strings.Fields(row.left) {
					if !strings.Contains(kinds(p.left(api.Kinds...)), kind) {
						t.Errorf("does not name the %s that is left: %v", kind, p.left(api.Kinds...))
					}
				}
				return
			}
			p.expectOnly(t, before)
			if left := p.left(api.Kinds...); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func kinds(things []api.Thing) string {
	var all []string
	for _, t := range things {
		all = append(all, t.Kind)
	}
	return strings.Join(all, " ")
}

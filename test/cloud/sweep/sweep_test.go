// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const run = "20261123-071100-abcd"

// project is one in the mock, with a network of the run, a server of its name elsewhere, and its sweep.
type project struct {
	*Sweep

	t       *testing.T
	cloud   *iaasmock.Cloud
	network string
}

func (p *project) make(path string, body map[string]any) string {
	p.t.Helper()
	answer, err := p.API.Do(p.t.Context(), http.MethodPost, path, body)
	id := api.Item[api.Server](answer).ID
	if err != nil || id == "" {
		p.t.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Text(), err)
	}
	return id
}

func (p *project) fault(f iaasmock.Fault) { p.cloud.Inject(f) }

func (p *project) makeServer() string { return p.makeServerIn(p.network) }

func (p *project) makeServerIn(network string) string {
	return p.makeServerWith(api.Name(run, "a"), map[string]any{"networkId": network})
}

func (p *project) makeServerWith(name string, networking map[string]any) string {
	return p.make(api.PathServers, map[string]any{
		"name": name, "machineType": iaasmock.DefaultMachineType, "networking": networking,
		"bootVolume": map[string]any{
			"size": 10, "deleteOnTermination": true, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID},
		},
	})
}

// count is of all things in the project; the mock has some of its own.
func (p *project) count() int {
	return len(p.cloud.Servers()) + len(p.cloud.NICs()) + len(p.cloud.Volumes()) + len(p.cloud.Networks())
}

func newProject(t *testing.T) *project {
	t.Helper()
	cloud := iaasmock.New(iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(50*time.Millisecond))
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(api.Account{
		ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Key: key, TokenURL: server.URL + "/token",
	}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{API: client, Out: io.Discard, Settle: 100 * time.Millisecond, Poll: 5 * time.Millisecond}
	p := &project{Sweep: New(o, run), t: t, cloud: cloud}
	p.network = p.make(api.PathNetworks, map[string]any{"name": api.NetworkName(run)})
	p.makeServerIn(iaasmock.DefaultNetworkID)
	return p
}

func TestSweep(t *testing.T) {
	for name, row := range map[string]struct {
		do func(p *project)
		// found and hidden are kinds. left are those of the Rest if the sweep fails.
		found, hidden, left string
	}{
		"a server with its parts": {func(p *project) { p.makeServer() }, "server", "", ""},
		"a NIC of the run's name": {func(p *project) {
			p.make(api.PathNICs(p.network), map[string]any{"name": api.Name(run, "nic")})
		}, "NIC", "", ""},
		"two networks of the name": {func(p *project) {
			p.makeServer()
			p.network = p.make(api.PathNetworks, map[string]any{"name": api.NetworkName(run)})
			p.makeServer()
		}, "server server", "", ""},
		"a volume that the API keeps, and a random 404 to its GET": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 404, Count: 1})
			p.makeServer()
		}, "server volume", "", ""},
		"a volume that may not be read, and is gone": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.makeServer()
		}, "server", "", ""},
		"a volume that the API keeps, and does not show at first": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 404, Count: 3})
			p.makeServer()
		}, "server volume", "", ""},
		"a volume that may not be read, and an API that is down once": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.fault(iaasmock.Fault{Operation: "DeleteVolume", Status: 503, Count: 1})
			p.makeServer()
		}, "server", "", ""},
		"a volume that may not be read, and is kept": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.makeServer()
		}, "server volume", "", ""},
		"a volume that may be neither read nor deleted": {func(p *project) {
			p.fault(iaasmock.Fault{Operation: "GetVolume", Status: 403})
			p.fault(iaasmock.Fault{Operation: "DeleteVolume", Status: 403})
			p.makeServer()
		}, "server", "volume", ""},
		"a lost answer to DELETE, and 403 afterwards": {func(p *project) {
			p.makeServer()
			p.fault(iaasmock.Fault{Operation: "DeleteServer", DropAfter: true, Count: 1})
			p.fault(iaasmock.Fault{Operation: "DeleteServer", Status: 403})
			p.fault(iaasmock.Fault{Operation: "GetServer", ForbiddenAfterDelete: true})
		}, "server", "", ""},
		"a random 404 to DELETE": {func(p *project) {
			p.makeServer()
			p.fault(iaasmock.Fault{Operation: "DeleteServer", Status: 404, Count: 1})
		}, "server", "", ""},
		"two 404s to GETs of the network": {func(p *project) {
			p.makeServer()
			p.fault(iaasmock.Fault{Operation: "GetNetwork", Status: 404, Count: 2})
		}, "server", "", ""},
		"a server whose lists and GETs are refused": {func(p *project) {
			p.Note(api.Thing{Kind: api.KindServer, ID: p.makeServer(), Name: api.Name(run, "a"), Deleting: true})
			p.fault(iaasmock.Fault{Operation: "ListServers", Status: 403})
			p.fault(iaasmock.Fault{Operation: "GetServer", Status: 403})
		}, "server", "", "server"},
		"somebody's NIC": {func(p *project) {
			p.makeServer()
			p.make(api.PathNICs(p.network), map[string]any{"name": "database"})
		}, "server", "", "network"},
		"a NIC of the run's on somebody's server": {func(p *project) {
			nic := p.make(api.PathNICs(p.network), map[string]any{"name": api.Name(run, "nic")})
			p.Note(api.Thing{Kind: api.KindNIC, ID: nic, Network: p.network})
			p.makeServerWith("database", map[string]any{"nicIds": []any{nic}})
		}, "", "", "NIC network"},
		"what cannot be deleted": {func(p *project) {
			p.makeServer()
			p.fault(iaasmock.Fault{Operation: "DeleteServer", Status: 409})
		}, "", "", "NIC server volume network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			before := p.count() - 1
			row.do(p)
			limit := time.Minute
			if row.left != "" {
				limit = 5 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			found, err := p.Delete(ctx)
			if got := kinds(found); got != row.found || (err != nil) != (row.left != "") {
				t.Errorf("found %q, %v", got, err)
			}
			if name == "somebody's NIC" && !strings.Contains(fmt.Sprint(err), "(of database) in it is not the run's") {
				t.Error(err)
			}
			if got := kinds(p.Hidden()); got != row.hidden {
				t.Errorf("may not read %q", got)
			}
			if row.left != "" {
				for _, kind := range strings.Fields(row.left) {
					if !strings.Contains(kinds(p.Left(api.Kinds...)), kind) {
						t.Errorf("does not name the %s that is left: %v", kind, p.Left(api.Kinds...))
					}
				}
				return
			}
			if after := p.count(); after != before || len(p.Left(api.Kinds...)) > 0 {
				t.Errorf("%d things were there before, %d are after; left are %v", before, after, p.Left(api.Kinds...))
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

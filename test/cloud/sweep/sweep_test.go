// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// project is a mock whose clock began two hours ago.
type project struct {
	*testing.T

	clock *clocktesting.FakeClock
	cloud *iaasmock.Cloud
	Sweeper

	said *strings.Builder
}

func newProject(t *testing.T) *project {
	t.Helper()
	return newProjectBehind(t, nil)
}

// answers is a part of an API that is wrong: it says whether it has answered.
type answers func(w http.ResponseWriter, r *http.Request) bool

// newProjectBehind returns a project whose API answers otherwise, where wrong does.
func newProjectBehind(t *testing.T, wrong answers) *project {
	t.Helper()
	p := &project{T: t, clock: clocktesting.NewFakeClock(time.Now().Add(-2 * time.Hour)), said: &strings.Builder{}}
	p.cloud = iaasmock.New(iaasmock.WithClock(p.clock), iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(0), iaasmock.WithTokenLifetime(24*time.Hour))
	right := conformance.Watch(t, p.cloud)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong == nil || !wrong(w, r) {
			right.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	key, err := p.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(settings.Settings{
		ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, NetworkID: iaasmock.DefaultNetworkID,
		Key: key, TokenURL: server.URL + "/token",
	}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.Sweeper = Sweeper{API: client, Known: mark.NewKnown(), Out: p.said, Patience: time.Minute, Poll: 10 * time.Millisecond}
	return p
}

// fields are what the API wants of a server, beside its name.
var fields = map[string]any{
	"machineType": iaasmock.DefaultMachineType, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID},
	"bootVolume": map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
}

// makes makes a server, a NIC and a volume with this name.
func (p *project) makes(name string, labels map[string]string) {
	p.Helper()
	p.post(p.API.PathNICs(), name, labels, nil)
	p.post(api.PathVolumes, name, labels, map[string]any{"availabilityZone": iaasmock.DefaultAvailabilityZone, "size": 10})
	p.post(api.PathServers, name, labels, fields)
}

// post makes a thing and returns its ID.
func (p *project) post(path, name string, labels map[string]string, fields map[string]any) string {
	p.Helper()
	body := map[string]any{"name": name}
	maps.Copy(body, fields)
	if labels != nil {
		body["labels"] = labels
	}
	var made struct{ ID string }
	answer, err := p.API.Do(p.Context(), http.MethodPost, path, body)
	if err != nil || answer.Status != http.StatusCreated || json.Unmarshal(answer.Body, &made) != nil {
		p.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
	}
	return made.ID
}

// names are those of the servers, NICs and volumes. A boot volume or NIC that came with a
// server has none.
func (p *project) names() []string {
	var names []string
	for _, server := range p.cloud.Servers() {
		names = append(names, "server "+server.Name)
	}
	for _, nic := range p.cloud.NICs() {
		if nic.ID != iaasmock.DefaultNICID && nic.ServerID == "" {
			names = append(names, "NIC "+nic.Name)
		}
	}
	for _, volume := range p.cloud.Volumes() {
		if volume.ID != iaasmock.DefaultVolumeID && volume.ID != iaasmock.DefaultBootVolumeID && volume.ServerID == "" {
			names = append(names, "volume "+volume.Name)
		}
	}
	slices.Sort(names)
	return names
}

func all(things ...string) []string {
	var names []string
	for _, thing := range things {
		names = append(names, "NIC "+thing, "server "+thing, "volume "+thing)
	}
	slices.Sort(names)
	return names
}

func TestSweep(t *testing.T) {
	p := newProject(t)
	old, young, other := mark.NewRun(p.clock.Now()), mark.NewRun(time.Now()), mark.NewRun(time.Now().Add(time.Second))
	p.makes(mark.Name("prod", "worker"), mark.Labels("prod", "worker", "c")) // a cluster of somebody
	p.makes(mark.Name(old, "a"), mark.Labels(old, "a", "c"))
	p.makes(mark.Name(old, "by-hand"), nil)
	p.makes("shoot--prod--a", mark.Labels(old, "a", "c"))
	p.clock.SetTime(time.Now())
	p.makes(mark.Name(young, "b"), mark.Labels(young, "b", "c"))
	p.makes(mark.Name(other, "b"), mark.Labels(other, "b", "c"))

	found, err := p.Old(t.Context())
	left := all(mark.Name("prod", "worker"), mark.Name(old, "by-hand"), "shoot--prod--a", mark.Name(young, "b"), mark.Name(other, "b"))
	// With the server comes its boot volume, which the API keeps without deleteOnTermination.
	if err != nil || found != 4 || !slices.Equal(p.names(), left) {
		t.Errorf("%d things, %v; left:\n%q\nwant:\n%q", found, err, p.names(), left)
	}
	if !strings.Contains(p.said.String(), "("+mark.Name(old, "a")+"), 2h0m") {
		t.Errorf("said %q", p.said.String())
	}
	others, err := p.Others(t.Context())
	if err != nil || len(others) != 2 || others[young] == "" {
		t.Errorf("%v %v", others, err)
	}
	similar, err := p.Similar(t.Context())
	if err != nil || len(similar) != 9 {
		t.Errorf("%v %v", similar, err)
	}

	found, err = p.Sweeper.Run(t.Context(), young)
	left = all(mark.Name("prod", "worker"), mark.Name(old, "by-hand"), "shoot--prod--a", mark.Name(other, "b"))
	if err != nil || found != 4 || !slices.Equal(p.names(), left) {
		t.Errorf("%d things, %v; left:\n%q\nwant:\n%q", found, err, p.names(), left)
	}
}

func TestSweepThatCannotEnd(t *testing.T) {
	p := newProject(t)
	run := mark.NewRun(time.Now())
	p.makes(mark.Name(run, "a"), mark.Labels(run, "a", "c"))
	p.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusConflict})
	p.Patience = time.Second
	if _, err := p.Sweeper.Run(t.Context(), run); err == nil || !strings.Contains(err.Error(), "not everything was gone") {
		t.Error(err)
	}
}

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
	p := &project{T: t, clock: clocktesting.NewFakeClock(time.Now().Add(-2 * time.Hour)), said: &strings.Builder{}}
	p.cloud = iaasmock.New(iaasmock.WithClock(p.clock), iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(0), iaasmock.WithTokenLifetime(24*time.Hour))
	server := httptest.NewServer(conformance.Watch(t, p.cloud))
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
	p.Sweeper = Sweeper{API: client, Out: p.said, Settle: 0, Patience: time.Minute}
	return p
}

// makes makes a server, a NIC and a volume with this name.
func (p *project) makes(name string, labels map[string]string) {
	p.Helper()
	for path, fields := range map[string]map[string]any{
		p.API.PathNICs(): {},
		api.PathVolumes:  {"availabilityZone": iaasmock.DefaultAvailabilityZone, "size": 10},
		api.PathServers: {
			"machineType": iaasmock.DefaultMachineType, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID},
			"bootVolume": map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
		},
	} {
		body := map[string]any{"name": name}
		maps.Copy(body, fields)
		if labels != nil {
			body["labels"] = labels
		}
		if answer, err := p.API.Do(p.Context(), http.MethodPost, path, body); err != nil || answer.Status != http.StatusCreated {
			p.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
		}
	}
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
	old, young := mark.NewRun(p.clock.Now()), mark.NewRun(time.Now())
	p.makes(mark.Name(old, "a"), mark.Labels(old, "a", "c"))
	p.makes(mark.Name(old, "by-hand"), nil)
	p.makes("shoot--prod--a", mark.Labels(old, "a", "c"))
	p.clock.SetTime(time.Now())
	p.makes(mark.Name(young, "b"), mark.Labels(young, "b", "c"))
	p.makes(mark.Name(young+"x", "b"), mark.Labels(young+"x", "b", "c"))

	found, err := p.Old(t.Context())
	left := all(mark.Name(old, "by-hand"), "shoot--prod--a", mark.Name(young, "b"), mark.Name(young+"x", "b"))
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
	if err != nil || len(similar) != 2 {
		t.Errorf("%v %v", similar, err)
	}

	found, err = p.Sweeper.Run(t.Context(), young)
	left = all(mark.Name(old, "by-hand"), "shoot--prod--a", mark.Name(young+"x", "b"))
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

// Where the API takes no slashes in the labels of NICs and volumes, they are marked without.
func TestTagWithoutSlashes(t *testing.T) {
	var patched []map[string]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Labels map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/token":
			_, _ = w.Write([]byte(`{"access_token":"eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."}`))
		case r.Method != http.MethodPatch:
			_, _ = w.Write([]byte(`{"id":"x"}`))
		default:
			if body.Labels[mark.ClusterLabel] != "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			patched = append(patched, body.Labels)
		}
	}))
	defer server.Close()
	key, err := iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(settings.Settings{ProjectID: "p", Region: "eu01", NetworkID: "n", Key: key, TokenURL: server.URL + "/token"}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	marked := &api.Server{Name: mark.Name("r", "a"), Labels: api.Labels{}}
	for label, value := range mark.Labels("r", "a", "c") {
		marked.Labels[label] = &value
	}
	marked.BootVolume.ID = "x"
	took, err := Tag(t.Context(), client, marked)
	if err != nil || took["volume"] != "keys with dots and a slash: 400, without: 200" || len(patched) != 2 || patched[1]["kubernetes-io-cluster"] != mark.Cluster("r") {
		t.Errorf("%v %v %v", took, err, patched)
	}
}

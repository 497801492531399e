// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

const serverA, serverB = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"

func shownServer(run, id, status string) map[string]any {
	return map[string]any{
		"id": id, "name": mark.Name(run, "a"), "labels": mark.Labels(run, "a", "c"), "status": status,
		"nics": []any{map[string]any{"nicId": "nic-of-" + id}}, "bootVolume": map[string]any{"id": "volume-of-" + id},
	}
}

// What a server has is known before it is ACTIVE, and when it is deleted before anybody looked.
func TestPartsOfServersThatAreNeverActive(t *testing.T) {
	f := newFakeAPI(t)
	o := Options{Settings: someSettings(t, f.url), Limits: guard.DefaultLimits, Out: io.Discard}
	s, err := newSuite(t.Context(), o, mark.NewRun(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.door.Close()
	f.servers[serverA] = shownServer(s.name, serverA, "ERROR")
	s.inspect(t.Context(), map[string]bool{})
	f.servers[serverB] = shownServer(s.name, serverB, "CREATING")
	if _, err := s.api.Do(t.Context(), http.MethodDelete, api.PathServers+"/"+serverB, nil); err != nil {
		t.Fatal(err)
	}
	f.servers[nobody] = map[string]any{"id": nobody, "name": "database-of-somebody", "status": api.StatusActive}
	if err := s.tag(t.Context(), nobody); err == nil {
		t.Error("somebody's server is taken for the run's, and will be deleted")
	}
	for _, id := range []string{serverA, serverB} {
		if known := s.sweeper.Known; known.PartOf("nic-of-"+id) != id || known.PartOf("volume-of-"+id) != id {
			t.Errorf("the parts of server %s are not known", id)
		}
	}
}

// The named run goes first, and what does not go keeps nothing else.
func TestSweepOfANamedRun(t *testing.T) {
	f := newFakeAPI(t)
	const old = "20200101-000000-abcd"
	run := mark.NewRun(time.Now())
	f.servers[serverA], f.servers[serverB] = shownServer(old, serverA, api.StatusActive), shownServer(run, serverB, api.StatusActive)
	f.stuck[serverA] = true
	var said strings.Builder
	o := Options{Settings: someSettings(t, f.url), Out: &said, Patience: 2 * time.Second, Poll: 10 * time.Millisecond}
	o.Settings.SweepRun = run
	err := Sweep(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "not everything was gone") || f.deleted[0] != serverB || !slices.Contains(f.deleted, serverA) {
		t.Errorf("%v; deleted %q, said %s", err, f.deleted, said.String())
	}
	o.Settings.SweepRun, f.stuck[serverA] = run[:len(run)-4]+"zzzz", false
	if err := Sweep(t.Context(), o); err != nil || !strings.Contains(said.String(), "nothing of run "+o.Settings.SweepRun) {
		t.Errorf("%v; said %s", err, said.String())
	}
}

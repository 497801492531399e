// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestServersOfPresets(t *testing.T) {
	m := openMock(t)
	m.inject("no-capacity", object{"count": 1})
	m.inject("boot-error", object{"server": "broken"})
	m.inject("stuck-creating", object{"server": "stuck"})
	m.inject("delete-error", object{"server": "bad"})
	full, broken := m.create(nil), m.create(object{"name": "broken"})
	stuck, good := m.create(object{"name": "stuck"}), m.create(object{"name": "bad"})
	m.clock.Step(time.Hour)
	for id, want := range map[string]string{full: "No valid host was found. There are", broken: "Build of instance aborted"} {
		if message, _ := m.wantStatus(id, "ERROR")["errorMessage"].(string); !strings.HasPrefix(message, want) {
			t.Errorf("errorMessage %v", message)
		}
	}
	m.wantStatus(stuck, "CREATING")
	m.wantStatus(good, "ACTIVE")

	m.want(204, "DELETE", inRegion+"/servers/"+good, nil)
	m.inject("stuck-deleting", object{"count": 1})
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(time.Hour)
	if message := m.wantStatus(good, "ERROR")["errorMessage"]; message != "Failed to detach the volume." {
		t.Errorf("errorMessage %v", message)
	}
	m.wantStatus(full, "DELETING")
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(remove)
	m.wantStatus(full, "")
}

func TestOneRequestMakesTwoServers(t *testing.T) {
	m := openMock(t)
	m.inject("duplicate-servers", object{"count": 2})
	id := m.create(object{"name": "twin", "labels": object{"a": "b"}})
	servers := m.cloud.Servers()
	if len(servers) != 2 || servers[0].ID != id || servers[1].ID == id {
		t.Fatalf("there are %+v", servers)
	}
	if twin := servers[1]; twin.Name != "twin" || twin.Labels["a"] != "b" {
		t.Errorf("the second is %+v", twin)
	}
	if a, b := servers[0], servers[1]; a.NICIDs[0] == b.NICIDs[0] || a.BootVolume.ID == b.BootVolume.ID {
		t.Errorf("they share what they are made of: %+v", servers)
	}
	m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	if got := len(m.cloud.Servers()); got != 3 {
		t.Errorf("%d servers, want 3: a NIC cannot be in two", got)
	}
}

func TestStaleReads(t *testing.T) {
	m := openMock(t)
	old := m.create(object{"name": "old"})
	m.clock.Step(time.Minute)
	m.inject("stale-lists", nil)
	m.inject("stale-reads", nil)
	young := m.create(object{"name": "young"})
	m.want(204, "DELETE", inRegion+"/servers/"+old, nil)
	m.clock.Step(9 * time.Second) // old is gone since 4 s
	m.wantStatus(old, "ACTIVE")
	m.wantStatus(young, "")
	if diff := cmp.Diff([]string{"old"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	m.clock.Step(20 * time.Second)
	m.wantStatus(old, "")
	m.wantStatus(young, "ACTIVE")
	if diff := cmp.Diff([]string{"old"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	m.cloud.ClearFaults()
	if diff := cmp.Diff([]string{"young"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed afterwards (-want +got):\n%s", diff)
	}
}

// A creation that loses its labels keeps those of the cloud.
func TestACreationWithoutItsLabels(t *testing.T) {
	m := openMock(t, iaasmock.WithServerLabels())
	m.inject("dropped-labels", object{"count": 1})
	want := map[string]string{
		"stackit_project_id": iaasmock.DefaultProjectID, "provisionSTACKITServerAgent": "false",
	}
	for range 2 {
		id := m.create(object{"labels": object{"a": "b"}})
		if diff := cmp.Diff(want, m.server(id).Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		want["a"] = "b" // the next server has it
	}
}

func TestAnAnswerThatShowsAnotherServer(t *testing.T) {
	m := openMock(t)
	m.inject("wrong-server", object{"count": 1})
	first := m.create(object{"name": "first"}) // there is no other
	if got := m.server(first).Name; got != "first" {
		t.Errorf("the answer shows %s", got)
	}
	m.cloud.ClearFaults()
	second := m.create(object{"name": "second"})
	for _, row := range []struct {
		name  string
		fault object
		want  []string
		made  bool
	}{
		{"made, any", object{"preset": "wrong-server"}, []string{first, second}, true},
		{"made, by name", object{"preset": "wrong-server", "otherServer": "first"}, []string{first}, true},
		{"not made, by ID", object{"operation": "CreateServer", "otherServer": second}, []string{second}, false},
	} {
		before := len(m.cloud.Servers())
		row.fault["count"] = 1
		m.want(201, "POST", "/admin/faults", row.fault)
		if shown := m.create(object{"name": "new"}); !slices.Contains(row.want, shown) {
			t.Errorf("%s: the answer shows %s", row.name, shown)
		}
		if made := len(m.cloud.Servers()) > before; made != row.made {
			t.Errorf("%s: made is %v", row.name, made)
		}
		if row.made {
			if err := m.cloud.RemoveServer(m.cloud.Servers()[before].ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAProjectThatLooksEmpty(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	server := m.server(id)
	nic, volume := server.NICIDs[0], server.BootVolume.ID
	nics := "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	m.inject("empty-project", nil)
	for _, list := range []string{"/servers", nics, "/nics", "/volumes"} {
		if listed := m.list(list); len(listed) != 0 {
			t.Errorf("%s lists %v", list, listed)
		}
	}
	for path, body := range map[string]string{
		"/servers/" + id: "server not found", "/servers/" + id + "/nics": "server not found",
		nics + "/" + nic: "network interface not found", "/volumes/" + volume: "volume not found",
	} {
		response, raw, err := m.try("GET", inRegion+path, nil)
		if err != nil || response.StatusCode != 404 || string(raw) != `{"code":404,"msg":"`+body+`"}`+"\n" {
			t.Errorf("%s answers %v %s %v", path, response, raw, err)
		}
	}
	m.want(404, "DELETE", inRegion+"/servers/"+id, nil)
	m.want(400, "GET", inRegion+"/servers?label_selector=!", nil)
	if networks := m.list("/networks"); len(networks) == 0 {
		t.Error("there are no networks")
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: 503, Count: 1})
	m.want(503, "POST", inRegion+"/servers", serverBody(nil)) // not hidden by the other fault
	m.create(object{"name": "made-meanwhile"})
	m.clock.Step(8 * time.Second)
	m.wantStatus(id, "CREATING")
	if got := len(m.list("/servers")); got != 2 {
		t.Errorf("%d servers are listed afterwards, want 2", got)
	}
	if got := m.cloud.Faults(); len(got) != 0 {
		t.Errorf("faults are left: %+v", got)
	}
}

// What the suite for a real project has to find: a boot volume that the API names and keeps, and
// lists that ignore their selectors.
func TestWhatAnAPIMayDo(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
	id := m.create(object{"name": "a", "labels": object{"a": "b"}})
	volume := m.server(id).BootVolume.ID
	if listed := m.list("/volumes?label_selector=a"); len(listed) != 0 {
		t.Errorf("volumes with the label: %v", listed)
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", IgnoreSelector: true})
	if listed := m.list("/volumes?label_selector=a"); len(listed) != 3 {
		t.Errorf("volumes without regard to the label: %v", listed)
	}
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	if left, ok := m.volume(volume); !ok || left.Name == "" || left.Status != iaasmock.VolumeAvailable {
		t.Errorf("left is %+v", left)
	}
}

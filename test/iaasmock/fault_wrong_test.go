// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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

func TestACreationWithoutItsLabels(t *testing.T) {
	for name, row := range map[string]struct {
		opts []iaasmock.Option
		want map[string]string
	}{
		"none":                 {nil, map[string]string{}},
		"those of the cloud's": {[]iaasmock.Option{iaasmock.WithServerLabels()}, map[string]string{"stackit_project_id": iaasmock.DefaultProjectID, "provisionSTACKITServerAgent": "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMock(t, row.opts...)
			m.inject("dropped-labels", object{"count": 1})
			id := m.create(object{"labels": object{"a": "b"}})
			if diff := cmp.Diff(row.want, m.server(id).Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			m.want(400, "POST", inRegion+"/servers", serverBody(object{"labels": object{"a": 1}}))
			if got := m.server(m.create(object{"labels": object{"a": "b"}})).Labels["a"]; got != "b" {
				t.Errorf("the next server's label is %q", got)
			}
		})
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

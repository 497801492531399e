// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestStateIsShownWithoutUserData(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"userData": []byte("token: abcdef.0123456789abcdef")})
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 500, Count: 3})
	m.want(500, "GET", inRegion+"/servers?details=true", nil)

	state := m.want(200, "GET", "/admin/state", nil)
	server := state["servers"].([]any)[0].(object)
	if server["id"] != id || server["status"] != "CREATING" || server["userData"] != nil {
		t.Errorf("server %v", server)
	}
	if nics, volumes := state["nics"].([]any), state["volumes"].([]any); len(nics) != 2 || len(volumes) != 3 {
		t.Errorf("NICs %v, volumes %v", nics, volumes)
	}
	if fault := state["faults"].([]any)[0].(object); fault["hits"] != 1.0 {
		t.Errorf("fault %v", fault)
	}
	calls := state["lastCalls"].([]any)
	if last := calls[1].(object); len(calls) != 2 || last["operation"] != "ListServers" || last["status"] != 500.0 {
		t.Errorf("calls %v", calls)
	}
}

func TestAServerIsRemovedByHand(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.want(204, "DELETE", "/admin/servers/"+id, nil)
	m.wantStatus(id, "")
	if nics, volumes := m.cloud.NICs(), m.cloud.Volumes(); len(nics) != 1 || len(volumes) != 2 {
		t.Errorf("left are %v and %v, want the catalogue's", nics, volumes)
	}
	m.want(404, "DELETE", "/admin/servers/"+id, nil)
	if counts := m.cloud.CallCounts(); counts["DeleteServer"] > 0 {
		t.Errorf("removed by hand, counted as calls: %v", counts)
	}
}

func TestFaultsAreInjectedAndClearedOverHTTP(t *testing.T) {
	m := openMock(t)
	added := m.want(201, "POST", "/admin/faults", object{"preset": "no-capacity", "count": 2, "duration": "1m"})
	if added["finalStatus"] != "ERROR" || added["count"] != 2.0 || added["duration"] != "1m0s" || added["hits"] != 0.0 {
		t.Errorf("answered %v", added)
	}
	m.create(nil)
	if faults := m.want(200, "GET", "/admin/faults", nil)["items"].([]any); faults[0].(object)["hits"] != 1.0 {
		t.Errorf("listed %v", faults)
	}
	m.want(204, "DELETE", "/admin/faults", nil)
	if left := m.cloud.Faults(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	answer := m.want(400, "POST", "/admin/faults", object{"operation": "CreateServer", "count": 3})
	if message, _ := answer["msg"].(string); !strings.Contains(message, "the fault does nothing") {
		t.Errorf("answered %v", answer)
	}
}

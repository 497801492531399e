// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestRescue(t *testing.T) {
	m := strictMock(t)
	id, server := m.running(nil)
	image := object{"image": iaasmock.DefaultImageID}
	m.want(409, "POST", server+"/unrescue", nil)
	m.want(404, "POST", server+"/rescue", object{"image": nothing})
	m.want(404, "POST", inRegion+"/servers/"+nothing+"/rescue", image)
	m.want(202, "POST", server+"/rescue", image)
	m.wantStatus(id, "RESCUING")
	m.want(409, "POST", server+"/rescue", image)
	m.clock.Step(action)
	if got := m.wantStatus(id, "RESCUE")["powerStatus"]; got != "RUNNING" {
		t.Errorf("powerStatus is %v", got)
	}
	m.want(202, "POST", server+"/unrescue", nil)
	m.wantStatus(id, "UNRESCUING")
	m.clock.Step(action)
	m.wantStatus(id, "ACTIVE")

	m.set(id, "INACTIVE")
	m.cloud.Inject(iaasmock.Fault{Operation: "RescueServer", Count: 1, FinalStatus: "ERROR", ErrorMessage: "no disk"})
	m.want(202, "POST", server+"/rescue", image)
	m.clock.Step(action)
	if got := m.wantStatus(id, "ERROR")["errorMessage"]; got != "no disk" {
		t.Errorf("errorMessage is %v", got)
	}
	m.want(409, "POST", server+"/rescue", image)
}

func TestConsole(t *testing.T) {
	m := strictMock(t)
	id, server := m.running(nil)
	first := m.want(200, "GET", server+"/console", nil)["url"].(string)
	second := m.want(200, "GET", server+"/console", nil)["url"].(string)
	if !strings.HasPrefix(first, "https://console.invalid/") || first == second {
		t.Errorf("the console is at %s, then at %s", first, second)
	}
	m.set(id, "INACTIVE")
	m.want(400, "GET", server+"/console", nil)
	m.want(404, "GET", inRegion+"/servers/"+nothing+"/console", nil)
}

func TestLog(t *testing.T) {
	m := openMock(t)
	id, server := m.running(object{"name": "logging"})
	m.want(202, "POST", server+"/reboot", nil)
	m.cloud.Inject(iaasmock.Fault{Operation: "StopServer", FinalStatus: "ERROR", ErrorMessage: "no answer"})
	m.clock.Step(action)
	m.want(202, "POST", server+"/stop", nil)
	m.clock.Step(action)
	m.wantStatus(id, "ERROR")
	for _, row := range []struct{ query, want string }{
		{"", "[    0.000000] logging: CREATING\n[   10.000000] logging: ACTIVE\n[   10.000000] logging: REBOOTING\n" +
			"[   15.000000] logging: ACTIVE\n[   15.000000] logging: STOPPING\n[   20.000000] logging: ERROR: no answer"},
		{"?length=1", "[   20.000000] logging: ERROR: no answer"},
	} {
		if got := m.want(200, "GET", server+"/log"+row.query, nil)["output"]; got != row.want {
			t.Errorf("%s:\n%s", row.query, got)
		}
	}
	if all := m.want(200, "GET", server+"/log?length=0", nil)["output"].(string); strings.Count(all, "\n") != 5 {
		t.Errorf("everything is\n%s", all)
	}
	m.want(404, "GET", inRegion+"/servers/"+nothing+"/log", nil)
}

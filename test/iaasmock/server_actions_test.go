// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const action = 7 * time.Second

func TestActions(t *testing.T) {
	for _, row := range []struct {
		path, from               string
		during, powerDuring      string
		end, powerAfter, refused string
	}{
		{"stop", "ACTIVE", "STOPPING", "RUNNING", "INACTIVE", "STOPPED", "start"},
		{"start", "INACTIVE", "STARTING", "STOPPED", "ACTIVE", "RUNNING", "start"},
		{"start", "DEALLOCATED", "STARTING", "STOPPED", "ACTIVE", "RUNNING", "stop"},
	} {
		t.Run(row.path+" from "+row.from, func(t *testing.T) {
			m := openMock(t, iaasmock.WithActionDuration(action))
			id := m.create(nil)
			m.clock.Step(boot)
			launched := m.server(id).LaunchedAt
			m.set(id, row.from)
			path := inRegion + "/servers/" + id + "/"
			if answer := m.want(202, "POST", path+row.path, nil); answer != nil {
				t.Errorf("answered with a body: %v", answer)
			}
			m.want(409, "POST", path+row.refused, nil)
			m.clock.Step(action - time.Nanosecond)
			if got := m.wantStatus(id, row.during)["powerStatus"]; got != row.powerDuring {
				t.Errorf("on the way powerStatus is %v", got)
			}
			m.clock.Step(time.Nanosecond)
			if got := m.wantStatus(id, row.end)["powerStatus"]; got != row.powerAfter {
				t.Errorf("at the end powerStatus is %v", got)
			}
			if got := m.server(id).LaunchedAt; !got.Equal(launched) {
				t.Errorf("launched at %s, then at %s", launched, got)
			}
		})
	}
}

func TestActionsThatAreRefused(t *testing.T) {
	every := []string{"start", "stop"}
	for status, refused := range map[string][]string{
		"CREATING": every, "DELETING": every, "ERROR": every, "ACTIVE": {"start"},
		"INACTIVE": {"stop"}, "DEALLOCATED": {"stop"},
	} {
		m := openMock(t)
		id := m.create(nil)
		m.set(id, status)
		for _, name := range refused {
			m.want(409, "POST", inRegion+"/servers/"+id+"/"+name, nil)
		}
		m.wantStatus(id, status)
	}
	m := openMock(t)
	m.want(404, "POST", inRegion+"/servers/"+iaasmock.DefaultNICID+"/stop", nil)
}

func TestActionsThatFailOrAreOvertaken(t *testing.T) {
	m := openMock(t)
	failing, overtaken := m.create(nil), m.create(nil)
	m.clock.Step(boot)
	m.cloud.Inject(iaasmock.Fault{Operation: "StopServer", Count: 1, FinalStatus: "ERROR", ErrorMessage: "no answer"})
	m.want(202, "POST", inRegion+"/servers/"+failing+"/stop", nil)
	m.want(202, "POST", inRegion+"/servers/"+overtaken+"/stop", nil)
	m.want(204, "DELETE", inRegion+"/servers/"+overtaken, nil)
	m.wantStatus(overtaken, "DELETING")
	m.clock.Step(action)
	if got := m.wantStatus(failing, "ERROR")["errorMessage"]; got != "no answer" {
		t.Errorf("errorMessage is %v", got)
	}
	m.wantStatus(overtaken, "")
}

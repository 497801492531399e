// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestInspectionGivesCopies(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"labels": object{"a": "b"}, "userData": "YWJj"})
	changed := m.server(id)
	changed.Labels["a"], changed.UserData[0], changed.BootVolume.Size, changed.NICIDs[0] = "x", 'x', 1, "x"
	fresh := m.server(id)
	if fresh.Labels["a"] != "b" || string(fresh.UserData) != "abc" || fresh.BootVolume.Size != 20 || fresh.NICIDs[0] == "x" {
		t.Errorf("changing a copy changed the cloud: %+v", fresh)
	}
}

func TestNewRefusesABrokenCatalogue(t *testing.T) {
	for name, change := range map[string]func(*iaasmock.Catalogue){
		"NIC without its network": func(c *iaasmock.Catalogue) { c.Networks = nil },
		"no prefix":               func(c *iaasmock.Catalogue) { c.Networks[0].IPv4Prefix = "10.0.0.0" },
		"no room":                 func(c *iaasmock.Catalogue) { c.Networks[0].IPv4Prefix = "10.0.0.0/32" },
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := iaasmock.DefaultCatalogue()
			change(&catalogue)
			defer func() {
				if recover() == nil {
					t.Error("New took it")
				}
			}()
			iaasmock.New(iaasmock.WithCatalogue(catalogue))
		})
	}
}

func TestAConsoleLogShowsAfterItsDelay(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	path := m.made(201, inRegion+"/servers", bodies[0].body)
	id := path[strings.LastIndex(path, "/")+1:]
	if err := m.cloud.SetConsoleLog(id, "one\ntwo\nthree\n", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "two\nthree\n"} {
		if got := m.want(200, "GET", path+"/log?length=2", nil)["output"]; got != want {
			t.Errorf("the log is %q, want %q", got, want)
		}
		m.clock.Step(time.Minute)
	}
	if got := m.want(200, "GET", path+"/log?length=0", nil)["output"]; got != "one\ntwo\nthree\n" {
		t.Errorf("the whole log is %q", got)
	}
	m.want(400, "GET", path+"/log?length=-1", nil)
}

func TestAMaintenanceWindowIsShown(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	path := m.made(201, inRegion+"/servers", bodies[0].body)
	id := path[strings.LastIndex(path, "/")+1:]
	window := iaasmock.MaintenanceWindow{StartsAt: m.clock.Now().UTC(), EndsAt: m.clock.Now().Add(time.Hour).UTC(), Status: "PLANNED"}
	if err := m.cloud.SetMaintenanceWindow(id, &window); err != nil {
		t.Fatal(err)
	}
	if shown, _ := m.want(200, "GET", path, nil)["maintenanceWindow"].(map[string]any); shown["status"] != "PLANNED" {
		t.Errorf("got %v", shown)
	}
}

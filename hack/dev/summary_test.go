// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestInventorySince(t *testing.T) {
	cloud := iaasmock.New()
	before := takeInventory(cloud)
	if len(before) == 0 {
		t.Fatal("the catalogue's NICs and volumes are missing")
	}
	if left := takeInventory(cloud).since(before); left != nil {
		t.Errorf("nothing has changed, but there is %v", left)
	}
	now := inventory{"a": "server a", "b": "NIC b", "c": "volume c", "e": "NIC e (, attached to a)"}
	earlier := inventory{"c": "volume c", "d": "volume d", "e": "NIC e ()"}
	if diff := cmp.Diff([]string{"NIC b", "NIC e (, attached to a)", "server a"}, now.since(earlier)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"volume d"}, now.lostSince(earlier)); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryTexts(t *testing.T) {
	const wantTimes = `    4.2 s  start
   61.0 s  up (limit 60 s)
   65.2 s  in all
`
	times := []stepTime{{title: "start", took: 4200 * time.Millisecond}, {title: "up", took: 61 * time.Second, limit: time.Minute}}
	if diff := cmp.Diff(wantTimes, timesTable(times)); diff != "" {
		t.Error(diff)
	}
	const wantTotals = `Machines: 10
Servers:  11 created, 10 deleted
Left:     servers: 1, NICs: 2, volumes: 0
`
	got := totals(10, iaasmock.Totals{ServersCreated: 11, ServersDeleted: 10}, []string{"NIC x (10.0.0.1)", "NIC y ()", "server z (w, ACTIVE)"})
	if diff := cmp.Diff(wantTotals, got); diff != "" {
		t.Error(diff)
	}
	const wantCalls = `API calls: 8
       4 GetServer
       2 CreateServer
       2 DeleteServer
`
	if diff := cmp.Diff(wantCalls, apiCalls(map[string]int{"DeleteServer": 2, "CreateServer": 2, "GetServer": 4})); diff != "" {
		t.Error(diff)
	}
}

func TestWithMachineType(t *testing.T) {
	got, err := withMachineType([]byte(`{"machineType":"c2i.2","imageId":"x"}`), "g2i.4")
	if err != nil || string(got) != `{"imageId":"x","machineType":"g2i.4"}` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := withMachineType([]byte(`[]`), "g2i.4"); err == nil {
		t.Error("a providerSpec that is no object is accepted")
	}
}

func TestCalledWrongly(t *testing.T) {
	for name, args := range map[string][]string{
		"without a command":  nil,
		"an unknown command": {"up"},
		"an unknown flag":    {"dev", "--fast"},
		"no duration":        {"demo", "--boot", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(args, nil, &stderr); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), "Usage:") {
				t.Errorf("no usage shown, but %q", stderr.String())
			}
		})
	}
}

func TestFailedStartIsReported(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	var stderr bytes.Buffer
	if code := run([]string{"demo"}, out, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if want := "Failed: programs: stat " + assets; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want it to say %q", stderr.String(), want)
	}
}

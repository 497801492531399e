// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
)

// stock has healthy Machines, one that is stuck, and an orphan.
func stock() *list.Result {
	machine := func(name string, notes ...list.Note) *list.Machine {
		return &list.Machine{TypeMeta: metav1.TypeMeta{Kind: "Machine"}, Class: "worker", Phase: "Running", State: "ACTIVE",
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Ready: list.Ready, Notes: notes}
	}
	note := list.Note{Kind: list.NoteStuck, About: "NoCapacity", Reason: "full", Cause: "no room", Remedy: "wait"}
	second := note
	second.Reason = "full, too"
	orphan := &list.Server{TypeMeta: metav1.TypeMeta{Kind: "Server"}, ObjectMeta: metav1.ObjectMeta{Name: aServer},
		Class: "worker", State: "ERROR", Notes: []list.Note{{Kind: list.NoteOrphan, Reason: "no Machine names it"}}}
	return &list.Result{
		Machines: []*list.Machine{machine("m1"), machine("m2", note), machine("m3"), machine("m4", second)},
		Servers:  []*list.Server{orphan}, Facts: []string{"1 server read"}, Unknown: []string{"b unknown: c"},
	}
}

func printed(t *testing.T, l *listing, found *list.Result) string {
	t.Helper()
	var stdout bytes.Buffer
	l.options = newOptions(genericiooptions.IOStreams{Out: &stdout, ErrOut: &bytes.Buffer{}})
	if err := l.print(found); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

func TestTables(t *testing.T) {
	for name, row := range map[string]struct {
		listing listing
		want    string
	}{
		"Machines": {listing{}, `
MACHINE   CLASS    PHASE     SERVER                                 STATE    READY   AGE   NOTE
m2        worker   Running   -                                      ACTIVE   yes     -     stuck: NoCapacity
m4        worker   Running   -                                      ACTIVE   yes     -     stuck: NoCapacity
-         worker   -         20000000-0000-4000-8000-000000000001   ERROR    -       -     orphan
2 Machines ready of MachineClass a/worker, not shown without --all
stuck: NoCapacity (m2, m4): full; no room; wait
orphan (20000000-0000-4000-8000-000000000001): no Machine names it
1 server read
b unknown: c
`},
		"servers": {listing{servers: true}, `
SERVER                                 MACHINE   STATE   AGE   TYPE   ZONE   NOTE
20000000-0000-4000-8000-000000000001   -         ERROR   -     -      -      orphan
orphan (20000000-0000-4000-8000-000000000001): no Machine names it
1 server read
b unknown: c
`},
		"names":            {listing{format: formatName}, "\nmachine/m1\nmachine/m2\nmachine/m3\nmachine/m4\n"},
		"names of servers": {listing{servers: true, format: formatName}, "\nserver/" + aServer + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printed(t, &row.listing, stock()); got != row.want[1:] {
				t.Errorf("got\n%s\nwant%s", got, row.want)
			}
		})
	}
	if got := printed(t, &listing{all: true}, stock()); strings.Count(got, "\nm") != 4 || strings.Contains(got, "--all") {
		t.Errorf("with --all, got\n%s", got)
	}
}

// What a tenant writes into a status, and an API into an ID, forges no line and moves no cursor.
func TestNothingOfOthersCommandsATerminal(t *testing.T) {
	const hostile = "a\x1b]0;owned\x07\u009b31m\u202e\nserver/20000000-0000-4000-8000-000000000001 gone"
	found := stock()
	found.Servers[0].Name, found.Machines[1].Phase, found.Unknown = hostile, hostile, []string{hostile}
	found.Machines[1].Notes[0] = list.Note{Kind: list.NoteStuck, About: hostile, Reason: hostile, Remedy: hostile}
	for _, format := range []string{"", formatWide, formatName, formatJSON, "yaml"} {
		for _, servers := range []bool{false, true} {
			for _, line := range strings.Split(printed(t, &listing{servers: servers, format: format}, found), "\n") {
				if strings.HasPrefix(line, "server/2") ||
					strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }) {
					t.Errorf("-o %s has the line %q", format, line)
				}
			}
		}
	}
}

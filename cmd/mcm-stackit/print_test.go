// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

func TestJSONPath(t *testing.T) {
	found := &list.Inventory{
		Time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		Servers: []list.ServerEntry{
			{ID: "a", Project: "p", State: "ACTIVE"},
			{ID: "b", Project: "p", State: "ERROR", Notes: []list.Note{{Kind: list.NoteFault, Reason: "no host"}}},
		},
		Clusters: []list.ClusterEntry{{Cluster: "x"}, {Cluster: "y", Totals: list.Totals{Servers: new(2), Orphans: new(1)}}},
		Totals:   list.Totals{Servers: new(2), Active: new(1)},
	}
	findings := report.Findings{{Verdict: report.Fine, Subject: "a"}, {Verdict: report.Wrong, Subject: "b"}}
	for name, row := range map[string]struct {
		template string
		data     any
		want     string
	}{
		"a field":              {"{.time}", found, "2026-05-04T03:02:01Z"},
		"of all":               {"{.clusters[*].cluster}", found, "x y"},
		"the first":            {"{.servers[0].id}", found, "a"},
		"the last":             {"{.servers[-1].state}", found, "ERROR"},
		"two by a range":       {`{range .servers[0:2]}{.state}{"\n"}{end}`, found, "ACTIVE\nERROR\n"},
		"a filter of texts":    {`{.servers[?(@.state=="ERROR")].id}`, found, "b"},
		"a filter of numbers":  {`{.clusters[?(@.servers>1)].orphans}`, found, "1"},
		"a name of its JSON":   {"{.servers[0].projectId}", found, "p"},
		"a name of Go's":       {"{.Servers[*].Project}", found, ""},
		"a key that is not":    {"{.nobody.has.this}", found, ""},
		"null":                 {"{.servers[0].addresses}", found, "null"},
		"as JSON":              {"{.totals}", found, `{"active":1,"servers":2}`},
		"below all":            {"{..reason}", found, "no host"},
		"a list at the top":    {"{[*].verdict}", findings, "fine wrong"},
		"the first of a list":  {"{[0].subject}", findings, "a"},
		"a filter of a list":   {`{[?(@.verdict=="wrong")].subject}`, findings, "b"},
		"text":                 {"text", found, "text"},
		"lines of a template":  {"{.totals.servers}\n{.totals.active}\n", found, "2\n1\n"},
		"a range of a missing": {"{range .none[*]}{.x}{end}", found, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := newOptions(genericiooptions.IOStreams{Out: &out}, func(string) (string, bool) { return "", false })
			f := &format{allowed: []string{formatJSON}}
			if err := f.Set(formatJSONPath + row.template); err != nil {
				t.Fatal(err)
			}
			if done, err := o.printAs(*f, row.data); !done || err != nil || out.String() != row.want {
				t.Errorf("got %t, %v and %q, want %q", done, err, out.String(), row.want)
			}
		})
	}
}

// What is no mistake of the template does not end as one.
func TestJSONPathThatDoesNotFit(t *testing.T) {
	f := &format{}
	if err := f.Set(formatJSONPath + "{.servers[7].id}"); err != nil {
		t.Fatal(err)
	}
	if text, err := f.fill(&list.Inventory{Servers: []list.ServerEntry{{}}}); err == nil || !strings.Contains(err.Error(), "array index out of bounds") {
		t.Errorf("got %q and %v", text, err)
	}
}

// A wrong template is wrong usage, before anything is read or deleted.
func TestWrongJSONPath(t *testing.T) {
	commands := [][]string{{"list", "servers"}, {"list", "machines"}, {"list", "clusters"}, {"doctor"}, {"validate"}, {"describe", "machine", "a"}}
	for name, row := range map[string]struct{ value, says string }{
		"no template":            {"jsonpath", "must be one of: "},
		"an empty one":           {"jsonpath=", "jsonpath=TEMPLATE"},
		"not closed":             {"jsonpath={.servers", "the jsonpath template is wrong: unclosed action"},
		"no number":              {"jsonpath={.servers[x]}", "the jsonpath template is wrong: invalid array index x"},
		"a field without a dot":  {"jsonpath={servers}", "unrecognized identifier servers"},
		"an end without a range": {"jsonpath={end}", "not in range, nothing to end"},
		"a filter not closed":    {"jsonpath={.servers[?(@.id]}", "unterminated filter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, command := range commands {
				got := invocation{args: append(command[:len(command):len(command)], "-o", row.value)}.run(t)
				if got.code != report.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, row.says) {
					t.Errorf("%v: got %+v, want exit code 64 and %q", command, got, row.says)
				}
			}
		})
	}
}

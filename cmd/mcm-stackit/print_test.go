// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
)

func TestJSONPath(t *testing.T) {
	found := shoot()
	findings := finding.Findings{{Verdict: finding.Fine, Subject: "a"}, {Verdict: finding.Wrong, Subject: "b"}}
	for name, row := range map[string]struct {
		template string
		data     any
		want     string
	}{
		"a field":              {"{.time}", found, "2026-05-04T03:02:01Z"},
		"of all":               {"{.clusters[*].cluster}", found, " kubernetes.io/cluster=shoot--demo--laptop"},
		"the first":            {"{.machines[0].server}", found, "d61a8564-c8dd-4ffb-bc15-143e7d0c85e0"},
		"the last":             {"{.servers[-1].state}", found, "ERROR"},
		"two by a range":       {`{range .servers[0:2]}{.state}{"\n"}{end}`, found, "ACTIVE\nACTIVE\n"},
		"a filter of texts":    {`{.servers[?(@.state=="ERROR")].fault}`, found, "No valid host was found"},
		"a filter of numbers":  {`{.clusters[?(@.servers>3)].orphans}`, found, "1"},
		"a name of its JSON":   {"{.servers[0].projectId}", found, "10000000-0000-4000-8000-000000000001"},
		"a name of Go's":       {"{.Servers[*].Project}", found, ""},
		"a key that is not":    {"{.nobody.has.this}", found, ""},
		"null":                 {"{.servers[3].addresses}", found, "null"},
		"as JSON":              {"{.totals}", found, `{"active":3,"machines":11,"orphans":1,"ready":4,"servers":4}`},
		"below all":            {"{..cause}", found, strings.TrimSpace(strings.Repeat("the project's quota is used up ", 7))},
		"a list at the top":    {"{[*].verdict}", findings, "fine wrong"},
		"the first of a list":  {"{[0].subject}", findings, "a"},
		"a filter of a list":   {`{[?(@.verdict=="wrong")].subject}`, findings, "b"},
		"text":                 {"text", found, "text"},
		"lines of a template":  {"{.totals.servers}\n{.totals.ready}\n", found, "4\n4\n"},
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
	if text, err := f.fill(shoot()); err == nil || !strings.Contains(err.Error(), "array index out of bounds") {
		t.Errorf("got %q and %v", text, err)
	}
}

// A wrong template is wrong usage, before anything is read or deleted.
func TestWrongJSONPath(t *testing.T) {
	commands := [][]string{{"list", "servers"}, {"list", "machines"}, {"list", "clusters"}, {"doctor"}, {"validate"}, {"clean", "--cluster=a/cluster=b"}}
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
				if got.code != finding.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, row.says) {
					t.Errorf("%v: got %+v, want exit code 64 and %q", command, got, row.says)
				}
			}
		})
	}
}

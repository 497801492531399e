// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package reference generates the tables of pages from the code, such as that of the flags. Tests compare a page with
// its table, or write the table into the page.
package reference

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Flags returns a Markdown table of the flags that are not hidden.
func Flags(flags *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		initial := ""
		if flag.DefValue != "" && flag.DefValue != "[]" {
			initial = "`" + flag.DefValue + "`"
		}
		_, usage := pflag.UnquoteUsage(flag)
		fmt.Fprintf(&rows, "| %s | %s | %s |\n",
			name, initial, strings.ReplaceAll(strings.Join(strings.Fields(usage), " "), "|", `\|`))
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| Flag | Default | Meaning |\n|---|---|---|\n" + rows.String()
}

// Current fails the test unless the generated part of the page at path is want: the text between
// the comment with the mark and the next end comment. With write it replaces this text instead.
func Current(t testing.TB, path, mark, want string, write bool) {
	t.Helper()
	begin, end := "<!-- "+mark+": make generated -->\n", "<!-- end -->"
	content, err := os.ReadFile(path) //nolint:gosec // a page of the repository
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(content), begin)
	written, after, ended := strings.Cut(rest, end)
	switch {
	case !begun || !ended:
		t.Fatalf("%s must have the mark %s and an end mark after it", path, begin)
	case write:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case written != want:
		t.Errorf("%s is outdated, run make generated: got\n%s\nwant\n%s", path, written, want)
	}
}

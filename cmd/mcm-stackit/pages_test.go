// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// inCode finds the command in a page's code, and what follows it.
var inCode = regexp.MustCompile("(?m)(?:`|^ *(?:\\$ )?|\\()mcm-stackit ([a-z][^`\\n|()]*)")

// Every command in a page is one that there is, with flags that it has.
func TestCommandsOfPagesExist(t *testing.T) {
	pages, err := filepath.Glob("../../kubernetes/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	found := 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range inCode.FindAllStringSubmatch(string(text), -1) {
			found++
			root := newOptions(genericiooptions.IOStreams{}, func(string) (string, bool) { return "", false }).newRootCommand()
			root.InitDefaultCompletionCmd()
			root.InitDefaultHelpCmd()
			words := strings.Fields(match[1])
			command, rest, err := root.Find(words)
			if err != nil || command == root || command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("%s: mcm-stackit %s: %v", page, match[1], err)
				continue
			}
			command.InitDefaultHelpFlag()
			for _, word := range words {
				name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
				isKnown := true
				switch {
				case strings.HasPrefix(word, "--"):
					isKnown = command.Flag(name) != nil
				case strings.HasPrefix(word, "-"):
					own, inherited := command.Flags(), command.InheritedFlags()
					isKnown = own.ShorthandLookup(name[:1]) != nil || inherited.ShorthandLookup(name[:1]) != nil
				}
				if !isKnown {
					t.Errorf("%s: mcm-stackit %s has no flag %s", page, match[1], word)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d commands are found", found)
	}
}

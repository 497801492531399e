// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/reference"
)

// inCode finds the command in a page's code, and what follows it.
var inCode = regexp.MustCompile("(?m)(?:`|^ *(?:\\$ )?|\\()mcm-stackit ([a-z][^`\\n|()]*)")

// addExamples adds the examples of help.
func addExamples(command *cobra.Command, to map[string]string) {
	to[command.CommandPath()+" --help"] = command.Example
	for _, below := range command.Commands() {
		addExamples(below, to)
	}
}

// Every command in a page, and in help, is one that there is, with flags that it has.
func TestCommandsOfPagesExist(t *testing.T) {
	pages, err := filepath.Glob("../../kubernetes/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	texts := map[string]string{}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	newRoot := newOptions(genericiooptions.IOStreams{}).newRootCommand
	addExamples(newRoot(), texts)
	found := 0
	for page, text := range texts {
		for _, match := range inCode.FindAllStringSubmatch(text, -1) {
			found++
			root := newRoot()
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
				case strings.HasPrefix(word, "-") && word != "-":
					own, inherited := command.Flags(), command.InheritedFlags()
					isKnown = own.ShorthandLookup(name[:1]) != nil || inherited.ShorthandLookup(name[:1]) != nil
				}
				if !isKnown {
					t.Errorf("%s: mcm-stackit %s has no flag %s", page, match[1], word)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d commands are found", found)
	}
}

func TestFlagsAreCurrent(t *testing.T) {
	root := newOptions(genericiooptions.IOStreams{}).newRootCommand()
	var page strings.Builder
	fmt.Fprintf(&page, "## Of every command\n\n%s\n", reference.Flags(root.PersistentFlags()))
	var write func(*cobra.Command)
	write = func(command *cobra.Command) {
		if table := reference.Flags(command.LocalNonPersistentFlags()); table != "" {
			fmt.Fprintf(&page, "## %s\n\n%s.\n\n%s\n", command.CommandPath(), strings.TrimSuffix(command.Short, "."), table)
		}
		for _, below := range command.Commands() {
			write(below)
		}
	}
	write(root)
	reference.Current(t, "flags.md", "flags", page.String(), *update)
}

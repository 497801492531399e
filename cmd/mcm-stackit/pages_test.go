// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/reference"
)

// inCode finds the command in a page's code, and what follows it.
var inCode = regexp.MustCompile("(?m)(?:`|^ *(?:\\$ )?|\\()mcm-stackit ([a-z][^`\\n|()]*)")

// Every command in a page, and in help, is one that there is, with flags that it has.
func TestCommandsOfPagesExist(t *testing.T) {
	pages, err := filepath.Glob("../../kubernetes/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	texts := ""
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts += string(text)
	}
	newRoot := newOptions(genericiooptions.IOStreams{}).newRootCommand
	visit(newRoot(), func(command *cobra.Command) { texts += command.Example + "\n" })
	for _, match := range inCode.FindAllStringSubmatch(texts, -1) {
		root, words := newRoot(), strings.Fields(match[1])
		root.InitDefaultCompletionCmd()
		root.InitDefaultHelpCmd()
		command, rest, err := root.Find(words)
		if err != nil || command == root || command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			t.Errorf("mcm-stackit %s: %v", match[1], err)
			continue
		}
		command.InitDefaultHelpFlag()
		for _, word := range words {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			switch {
			case strings.HasPrefix(word, "--"):
				if command.Flag(name) == nil {
					t.Errorf("mcm-stackit %s has no flag %s", match[1], word)
				}
			case strings.HasPrefix(word, "-") && word != "-":
				if command.Flags().ShorthandLookup(name[:1]) == nil && command.InheritedFlags().ShorthandLookup(name[:1]) == nil {
					t.Errorf("mcm-stackit %s has no flag %s", match[1], word)
				}
			}
		}
	}
}

func visit(command *cobra.Command, do func(*cobra.Command)) {
	do(command)
	for _, below := range command.Commands() {
		visit(below, do)
	}
}

// The page lists the command's own flags, each once; kubectl's are kubectl's.
func TestFlagsAreCurrent(t *testing.T) {
	o := newOptions(genericiooptions.IOStreams{})
	root, kubectls := o.newRootCommand(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o.control.AddFlags(kubectls)
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	visit(root, func(command *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{command.PersistentFlags(), command.LocalFlags()} {
			flags.VisitAll(func(flag *pflag.Flag) {
				isOwn := kubectls.Lookup(flag.Name) == nil || flag.Name == flagRequestTimeout
				if isOwn && own.Lookup(flag.Name) == nil && flag.Name != "recursive" {
					own.AddFlag(flag)
				}
			})
		}
	})
	reference.Current(t, "README.md", "flags", reference.Flags(own), *update)
}

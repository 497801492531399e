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

// ofOthers finds commands of kubectl and the stackit CLI in a page's code, with the lines that they go on for.
var ofOthers = regexp.MustCompile("(?m)(?:`|^ *|\\(|\\| )(kubectl|stackit) ([a-z\"-](?:\\\\\n|[^`\\n])*)")

// A shell may still be in another cluster or project: whoever pastes a command must not find out by its effect.
func TestCommandsOfPagesNameTheirPlace(t *testing.T) {
	ofCluster := regexp.MustCompile(` (-n "\$NAMESPACE"|-A|-k|--context|--kubeconfig) `)
	ofProject := regexp.MustCompile(` --project-id "\$PROJECT" --region "\$\w+"`)
	found := 0
	for _, page := range []string{"runbooks.md", "upgrade.md", "migration.md"} {
		for _, match := range ofOthers.FindAllStringSubmatch(read(t, "kubernetes/"+page), -1) {
			place := ofProject
			if match[1] == "kubectl" {
				place = ofCluster
			}
			// Words such as "kubectl describe pod" act on nothing, and a login is nowhere.
			if isMention := len(strings.Fields(match[2])) < 3; isMention {
				continue
			}
			found++
			if !place.MatchString(" " + match[2] + " ") {
				t.Errorf("%s: %s %s: it does not say where", page, match[1], match[2])
			}
		}
	}
	if found < 60 {
		t.Errorf("%d commands are found", found)
	}
}

// Pages name the versions that the build pins, and with which tests run.
func TestPagesNameTheVersionsInUse(t *testing.T) {
	for pattern, pages := range map[string]map[string]string{
		`go.mod gardener/machine-controller-manager (v\S+)`: {
			"README.md":                          "Built from machine-controller-manager %s with",
			"kubernetes/upgrade.md":              "the one in [go.mod](../go.mod), %s |",
			"kubernetes/control/deployment.yaml": "/machine-controller-manager:%s\n"},
		`Makefile \nENVTEST_VERSION := (\d+\.\d+)`: {
			"README.md": "against Kubernetes %s.", "kubernetes/upgrade.md": "| tested with %s |"},
	} {
		file, pattern, _ := strings.Cut(pattern, " ")
		pinned := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if pinned == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		for page, text := range pages {
			if want := fmt.Sprintf(text, pinned[1]); !strings.Contains(read(t, page), want) {
				t.Errorf("%s: %q is not there", page, want)
			}
		}
	}
}

// Whoever upgrades finds each section about a change by the version that they have.
func TestTheUpgradePageLinksEachChange(t *testing.T) {
	page := read(t, "kubernetes/upgrade.md")
	_, changes, found := strings.Cut(page, "\n## What happens meanwhile\n")
	changes, _, ends := strings.Cut(changes, "\n## Back\n")
	if !found || !ends {
		t.Fatal("the page has other sections")
	}
	for _, section := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(changes, -1) {
		if !strings.Contains(page, "["+section[1]+"](#") {
			t.Errorf("%s is not in the table of versions", section[1])
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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

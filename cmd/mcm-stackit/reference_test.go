// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/reference"
)

func TestFlagsAreCurrent(t *testing.T) {
	root := newOptions(genericiooptions.IOStreams{}, func(string) (string, bool) { return "", false }).newRootCommand()
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

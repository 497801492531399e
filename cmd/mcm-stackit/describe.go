// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// The kinds of objects that describe shows.
const (
	kindMachine = "machine"
	kindServer  = "server"
)

func (o *options) newDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe machine NAME | server ID|NAME",
		Short: "Show all about a Machine with its servers, or about a server",
		Long: `Shows a Machine with its servers and their addresses, what is wrong with it, why, and what to do. Or shows
a server, even if no Machine names it, with the last 50 lines of its console log, which may contain secrets.
The output is YAML. Values that could not be read are "unknown"; standard error says why.

Exit codes: 0 everything is known, 2 something is unknown, or there is no such Machine or server, 64 wrong
usage.`,
		Example: `  mcm-stackit describe machine worker-1 -n default
  mcm-stackit describe server 20000000-0000-4000-8000-000000000001`,
		RunE: func(command *cobra.Command, words []string) error {
			if len(words) == 1 { // as list -o name prints it
				words = strings.SplitN(words[0], "/", 2)
			}
			if len(words) != 2 || words[1] == "" || words[0] != kindMachine && words[0] != kindServer {
				return wrongUsage("describe needs one Machine or server, as machine NAME, server ID or server NAME")
			}
			if words[0] == kindMachine {
				return o.describe(command.Context(), list.Query{Machine: words[1]})
			}
			return o.describe(command.Context(), list.Query{Server: words[1]})
		},
		ValidArgsFunction: func(command *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(words) == 0 {
				return []string{kindMachine, kindServer}, cobra.ShellCompDirectiveNoFileComp
			}
			return o.completeObjects(command, func(found *list.Result) (names []string) {
				if words[0] == kindServer {
					return serverIDs(found.Servers)
				}
				for _, machine := range found.Machines {
					names = append(names, machine.Name)
				}
				return names
			})
		},
	}
}

// serverIDs returns completions with the servers' IDs, and their names as descriptions.
func serverIDs(servers []*list.Server) (ids []string) {
	for _, server := range servers {
		if validation.IsUUID(server.Name) {
			ids = append(ids, cobra.CompletionWithDesc(server.Name, report.OneLine(server.ServerName)))
		}
	}
	return ids
}

func (o *options) describe(ctx context.Context, query list.Query) error {
	access, err := o.operator()
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, query)
	for _, line := range append(found.Facts, found.Unknown...) {
		o.say("%s", line)
	}
	what, number := "Machine "+access.Namespace+"/"+query.Machine, len(found.Machines)
	if query.Server != "" {
		what, number = "server "+query.Server, len(found.Servers)
	}
	if number == 0 && len(found.Unknown) == 0 {
		return fmt.Errorf("%s was not found: check the namespace (-n) and the context", what)
	}
	for _, machine := range found.Machines {
		err = printObject(o, "yaml", machine)
	}
	for _, server := range found.Servers {
		if query.Server != "" && err == nil {
			err = printObject(o, "yaml", server)
		}
	}
	if err != nil {
		return err
	}
	return exitWith(unknownExitCode(found))
}

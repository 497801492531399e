// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command mcm-stackit checks MachineClasses and credentials for STACKIT, shows a project's servers beside the Machines
// of a cluster, and deletes orphaned servers. As kubectl-mcm_stackit it is a kubectl plugin. Its README shows examples.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/redact"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Names of the command: its own, and those as a kubectl plugin, which kubectl finds by its file name.
const (
	programName = "mcm-stackit"
	pluginFile  = "kubectl-mcm_stackit"
	pluginName  = "kubectl mcm-stackit"
)

func main() { os.Exit(run()) }

func run() int {
	o := newOptions(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	return o.execute(context.Background(), os.Args)
}

// execute runs the command line and returns its exit code.
func (o *options) execute(ctx context.Context, args []string) int {
	if strings.HasPrefix(filepath.Base(args[0]), pluginFile) {
		o.program = pluginName
	}
	root := o.newRootCommand()
	root.SetArgs(args[1:])
	root.SetIn(o.streams.In)
	root.SetOut(o.streams.Out)
	root.SetErr(o.streams.ErrOut)
	command, err := root, redact.CheckArguments(args[1:])
	if err == nil {
		command, err = root.ExecuteContextC(ctx)
	}
	end := &exit{}
	if err != nil && !errors.As(err, &end) {
		end = &exit{report.ExitUnknown, err.Error()}
	}
	if err != nil && !o.started { // cobra's errors, too
		end.code = report.ExitUsage
	}
	if end.text != "" {
		o.say("%s", end.text)
	}
	if end.code == report.ExitUsage {
		o.say("See '%s --help'.", command.CommandPath())
	}
	return end.code
}

func (o *options) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:         programName,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: o.program},
		Short:       "Check and watch the servers of machine-controller-manager on STACKIT, and delete orphans",
		Long: `Checks MachineClasses and credentials for STACKIT, shows a project's servers beside the
Machines of a cluster, and deletes orphaned servers.

Exit codes: 0 fine, 1 something is wrong or a server was not deleted, 2 something is unknown, 64 wrong usage.`,
		Version:       buildinfo.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			redact.KeepSecrets(command.Root().PersistentFlags())
			if !klog.V(2).Enabled() {
				// The libraries log from level 1, the driver a line for each of its calls.
				klog.SetLogger(logr.Discard())
			}
			if err := o.complete(); err != nil {
				return err
			}
			o.started = true
			return nil
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	o.addFlags(root)
	all := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(all)
	root.PersistentFlags().AddGoFlag(all.Lookup("v")) // the one that users of kubectl know
	root.AddCommand(o.newValidateCommand(), o.newDoctorCommand(), o.newListCommand(), o.newDescribeCommand(),
		o.newDeleteCommand())
	return root
}

// exit ends the command with a code. text is printed last, unless it is "".
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

// exitWith ends the command with a code and no further output.
func exitWith(code int) error { return &exit{code: code} }

// wrongUsage returns an error for a wrong command line.
func wrongUsage(format string, args ...any) error {
	return &exit{report.ExitUsage, fmt.Sprintf(format, args...)}
}

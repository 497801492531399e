// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command mcm-stackit checks MachineClasses and credentials for STACKIT, shows a project's servers beside the Machines
// of a cluster, and deletes orphaned servers. As kubectl-mcm_stackit it is a kubectl plugin. Its README shows examples.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	adapt(root, o.program)
	root.SetArgs(args[1:])
	root.SetIn(o.streams.In)
	root.SetOut(o.streams.Out)
	root.SetErr(o.streams.ErrOut)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.RunE = showHelp // cobra's own RunE ignores the name of an unknown shell
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, helpFor // cobra's own Run shows help for an unknown command
	}
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
	if end.text != "" && (o.out.err == nil || !errors.Is(err, o.out.err)) {
		o.say("%s", end.text)
	}
	if o.out.err != nil {
		o.say("writing to standard output failed: %v", o.out.err)
		return report.ExitUnknown
	}
	if end.code == report.ExitUsage {
		o.say("See '%s --help'.", command.CommandPath())
	}
	return end.code
}

// adapt replaces the command's name in all examples by the name it was called by, and turns off file completion, which
// no command needs.
func adapt(command *cobra.Command, program string) {
	command.Example = strings.ReplaceAll(command.Example, programName+" ", program+" ")
	if command.ValidArgsFunction == nil {
		command.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, below := range command.Commands() {
		adapt(below, program)
	}
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
		Args:          noArguments,
		RunE:          showHelp,
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
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if !command.HasSubCommands() {
			return err
		}
		// A flag of a mistyped subcommand is unknown only because of the typo.
		return cmp.Or(noArguments(command, command.Flags().Args()), err)
	})
	root.SetVersionTemplate("{{.Version}}\n")
	o.addFlags(root)
	addLogFlags(root.PersistentFlags())
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.AddCommand(o.newValidateCommand(), o.newDoctorCommand(), o.newListCommand(), o.newDescribeCommand(),
		o.newDeleteCommand(), newOptionsCommand())
	return root
}

// newOptionsCommand returns a command that shows the flags of all commands, which each command's help leaves out.
func newOptionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "Show the flags that all commands have",
		Example: "  mcm-stackit options",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), command.InheritedFlags().FlagUsages())
			return err
		},
	}
}

// usageTemplate replaces the global flags in cobra's template by a pointer to the command options.
func usageTemplate(template string) string {
	before, rest, found := strings.Cut(template, "Global Flags:\n")
	_, after, ends := strings.Cut(rest, "{{end}}")
	if !found || !ends {
		return template
	}
	return before + `Use "{{.Root.CommandPath}} options" for the flags that all commands have.{{end}}` + after
}

// noArguments refuses arguments, such as an unknown subcommand, and suggests similar subcommands.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	command.SuggestionsMinimumDistance = 2 // in letters; cobra's own default
	text := fmt.Sprintf("unknown command %q for %q", args[0], command.CommandPath())
	if near := command.SuggestionsFor(args[0]); len(near) > 0 {
		text += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(text)
}

// helpFor shows the help of the command that the arguments name.
func helpFor(help *cobra.Command, args []string) error {
	command, rest, _ := help.Root().Find(args)
	if command.HasSubCommands() {
		if err := noArguments(command, rest); err != nil {
			return wrongUsage("%v", err)
		}
	}
	command.InitDefaultHelpFlag()
	return command.Help()
}

func showHelp(command *cobra.Command, _ []string) error { return command.Help() }

// addLogFlags adds the one log flag that users of kubectl know.
func addLogFlags(flags *pflag.FlagSet) {
	all := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(all)
	verbosity := pflag.PFlagFromGoFlag(all.Lookup("v"))
	verbosity.Usage = "log level of the driver and the libraries, on stderr; 4 logs each API call"
	flags.AddFlag(verbosity)
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

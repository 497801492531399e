// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/validate"
)

func (o *options) newValidateCommand() *cobra.Command {
	options := validate.Options{Stdin: o.streams.In}
	files := &genericclioptions.FileNameFlags{
		Usage:     "file, folder or URL; - is standard input",
		Filenames: &[]string{}, Recursive: new(bool),
	}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Check MachineClasses, their Secrets, Machines and MachineDeployments",
		Long: `Checks MachineClasses, their Secrets, Machines and MachineDeployments in manifests by the rules of the
driver and of machine-controller-manager. kubectl's own library reads them. Each line begins with
wrong, unknown (it could not be checked) or hint (worth knowing), then file, line, object and field.
No cluster is read, except for a Secret that --secret names and no file has.

--online also checks with the API, with the credentials of each class's Secret, that everything the
classes name exists and fits. Nothing is changed. What may not be read is named as not checked.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 something could not be checked (for
instance because a Secret is not in the files) and nothing is wrong, 64 wrong usage.`,
		Example: `  mcm-stackit validate -f samples -R --allow-missing-secret
  kubectl get machineclasses,machinedeployments,machines,secrets -o yaml | mcm-stackit validate --online -f -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrongUsage("argument %q: pass each file or folder with -f", args[0])
			}
			return nil
		},
	}
	files.AddFlags(command.Flags())
	format, checkFormat := addOutputFlag(command, formatJSON)
	command.Flags().BoolVar(&options.Online, "online", false,
		"also check with the API that the resources named in the classes exist")
	command.Flags().BoolVar(&options.AllowMissingSecret, "allow-missing-secret", false,
		"a Secret that is in no file, or has the text replace-me, is only a hint")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if options.Files = files.ToOptions(); len(options.Files.Filenames) == 0 {
			return wrongUsage("no manifests given: pass files with -f; "+
				"for a cluster's objects, kubectl get -o yaml | %s validate -f -", o.program)
		}
		if err := checkFormat(); err != nil {
			return err
		}
		return o.validate(command.Context(), options, *format)
	}
	return command
}

func (o *options) validate(ctx context.Context, options validate.Options, format string) error {
	if options.Online && o.configError != nil {
		return o.configError
	}
	access := o.access()
	if o.secret != "" { // the cluster is not used if a file has the Secret
		o.connect(access)
	}
	result, err := validate.Run(ctx, access, options)
	if err != nil {
		return err
	}
	if err := printFindings(o, format, result, result.Findings); err != nil {
		return err
	}
	if len(result.NotChecked) > 0 {
		o.say("Not checked: %s", counted(result.NotChecked))
	}
	o.say("Checked %s: %s", counted(result.Checked), summary(result.Findings))
	return exitWith(result.Findings.ExitCode())
}

// printFindings prints a result in a format, or its findings, one a line.
func printFindings(o *options, format string, result any, findings report.Findings) error {
	if format != "" {
		return printObject(o, format, result)
	}
	for _, found := range findings {
		if _, err := fmt.Fprintln(o.streams.Out, found); err != nil {
			return err
		}
	}
	return nil
}

// summary formats counts of findings.
func summary(findings report.Findings) string {
	count := findings.Count()
	return fmt.Sprintf("%d wrong, %d unknown, %s.", count[report.Wrong], count[report.Unknown],
		report.Count(count[report.Hint], "hint"))
}

// counted formats counts of objects: 2 MachineClasses, 1 Secret.
func counted(kinds map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, report.Count(kinds[kind], kind))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/validate"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	*options
	validate.Options
}

func (o *options) newValidateCommand() *cobra.Command {
	v := &validateOptions{options: o, Options: validate.Options{Stdin: o.streams.In}}
	files := &genericclioptions.FileNameFlags{
		Usage:     "file, folder or URL with manifests; - is standard input",
		Filenames: &[]string{}, Kustomize: new(string), Recursive: new(bool),
	}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Check MachineClasses, their Secrets, Machines and MachineDeployments",
		Long: `Checks MachineClasses, their Secrets, Machines and MachineDeployments by the rules of the
driver and of machine-controller-manager, and says what is wrong with file, line, object and
field. No cluster is asked but for a Secret that --secret names and no file has; what is in one is
piped in from kubectl get -o yaml. Secrets that no class names are passed over.

A class is checked with its own Secrets; --secret takes their place. Where they cannot be had,
--online asks with the credentials of --project-id, --region and --service-account-key-path.

With --online, the API is asked whether what the classes name is there and fits: region, zone,
machine type, image, snapshot, volumes, volume class, network, NICs, security groups, affinity
group, key pair, and the quota for one more machine of each class. So is the nodeTemplate, by
which cluster-autoscaler scales up from zero. What the service account may not read, and what the API
does not tell, is named as not checked. Nothing is changed.

For CI, where Secrets are in no file: --allow-missing-secret. It also takes a value with the text
replace-me, which the samples have, for one that is not known.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 something could not be checked (for
instance because a Secret is not given) and nothing is wrong, 64 wrong usage.`,
		Example: `  # Files, folders with their folders, standard input, what kustomize makes of a folder
  mcm-stackit validate -f samples -R
  mcm-stackit validate -f samples/secret.yaml -f - < samples/machine-class.yaml
  mcm-stackit validate -k overlays/production

  # In CI: files without the Secret, or one with placeholders
  mcm-stackit validate -f samples --allow-missing-secret

  # Ask the API as well
  mcm-stackit validate -f samples --online

  # What is in a namespace
  kubectl get machineclasses,machinedeployments,machines,secrets -o yaml | mcm-stackit validate -f -`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			v.Files = files.ToOptions()
			if err := v.check(); err != nil {
				return err
			}
			return v.run(command.Context())
		},
	}
	flags := command.Flags()
	files.AddFlags(flags)
	flags.BoolVar(&v.Online, "online", false, "ask the API, too; nothing is changed there")
	flags.BoolVar(&v.AllowMissingSecret, "allow-missing-secret", false,
		"exit with 0 if nothing is wrong, but something could not be checked "+
			"because a Secret is in no file or has a placeholder")
	return command
}

// check refuses flags that do not go together.
func (v *validateOptions) check() error {
	named := len(v.Files.Filenames) > 0
	switch {
	case !named && v.Files.Kustomize == "":
		return wrongUsage("nothing is named: give files with -f or -k; "+
			"of a cluster, kubectl get -o yaml | %s validate -f -", v.program)
	case v.Files.Kustomize != "" && (named || v.Files.Recursive):
		return wrongUsage("-k goes without -f and -R")
	}
	return nil
}

func (v *validateOptions) run(ctx context.Context) error {
	if v.Online && v.configError != nil {
		return v.configError
	}
	access := v.access()
	if v.secret != "" { // which may be in a file
		v.connect(ctx, access)
	}
	result, err := validate.Run(ctx, access, v.Options)
	if err != nil {
		return err
	}
	if len(result.NotChecked) > 0 {
		v.say("Not checked, because of other kinds: %s", strings.Join(slices.Sorted(maps.Keys(result.NotChecked)), ", "))
	}
	v.print(v.streams.Out, result)
	return exitWith(result.Findings.ExitCode())
}

func (v *validateOptions) print(to io.Writer, result *validate.Result) {
	for _, found := range result.Findings {
		_, _ = fmt.Fprintln(to, found)
	}
	count := result.Findings.Count()
	summary := "Checked " + counted(result.Checked)
	if hints := count[report.Hint]; hints > 0 {
		summary += ", with " + report.Count(hints, "hint")
	}
	switch wrong, unknown := count[report.Wrong], count[report.Unknown]; {
	case wrong > 0:
		v.say("%s: %d wrong, %d could not be checked.", summary, wrong, unknown)
	case unknown > 0:
		v.say("%s: nothing is wrong, %d could not be checked.", summary, unknown)
	default:
		_, _ = fmt.Fprintf(to, "%s: nothing is wrong.\n", summary)
	}
}

// counted writes numbers of objects: 2 MachineClasses, 1 Secret.
func counted(kinds map[string]int) string {
	if len(kinds) == 0 {
		return "nothing"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, report.Count(kinds[kind], kind))
	}
	return strings.Join(parts, ", ")
}

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
driver and of machine-controller-manager, and reports errors with file, line, object and
field. No cluster is read, except for a Secret that --secret names and no file has; pipe in a cluster's
objects from kubectl get -o yaml. Secrets that no class names are skipped.

A class is checked with its own Secrets; --secret replaces them. --online uses their credentials, unless
--project-id, --region and --service-account-key-path give others.

--online checks with the API that everything the classes name exists and fits: region, zone,
machine type, image, snapshot, volumes, volume class, network, NICs, security groups, affinity
group, key pair, and the quota for one more machine of each class. It also checks the nodeTemplate,
by which cluster-autoscaler scales up from zero. Anything that the service account may not read, or that
the API does not show, is listed as not checked. Nothing is changed.

--allow-missing-secret is for CI, where no file has the Secrets: a missing Secret gives only a hint, as does
a Secret's value with the text replace-me, as in the samples.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 something could not be checked (for
instance because a Secret is not in the files) and nothing is wrong, 64 wrong usage.`,
		Example: `  # Files, folders with subfolders, standard input, the output of kustomize
  mcm-stackit validate -f samples -R
  mcm-stackit validate -f samples/secret.yaml -f - < samples/machine-class.yaml
  mcm-stackit validate -k overlays/production

  # In CI: files without the Secret, or one with placeholders
  mcm-stackit validate -f samples --allow-missing-secret

  # Check with the API as well
  mcm-stackit validate -f samples --online

  # The objects of a namespace
  kubectl get machineclasses,machinedeployments,machines,secrets -o yaml | mcm-stackit validate -f -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return wrongUsage("argument %q: pass each file or folder with -f, and quote a pattern: -f 'dir/*.yaml'", args[0])
		},
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
	flags.BoolVar(&v.Online, "online", false,
		"also check with the API that the resources in the classes exist and fit; nothing is changed there")
	flags.BoolVar(&v.AllowMissingSecret, "allow-missing-secret", false,
		"exit with 0 if nothing is wrong, but something could not be checked "+
			"because a Secret is in no file or has a placeholder")
	return command
}

// check refuses flags that exclude each other, and missing files.
func (v *validateOptions) check() error {
	named := len(v.Files.Filenames) > 0
	switch {
	case !named && v.Files.Kustomize == "":
		return wrongUsage("no manifests given: pass files with -f or -k; "+
			"for a cluster's objects, kubectl get -o yaml | %s validate -f -", v.program)
	case v.Files.Kustomize != "" && (named || v.Files.Recursive):
		return wrongUsage("-k cannot be combined with -f or -R")
	}
	return nil
}

func (v *validateOptions) run(ctx context.Context) error {
	if v.Online && v.configError != nil {
		return v.configError
	}
	access := v.access()
	if v.secret != "" { // the cluster is not used if a file has the Secret
		v.connect(ctx, access)
	}
	result, err := validate.Run(ctx, access, v.Options)
	if err != nil {
		return err
	}
	if len(result.NotChecked) > 0 {
		v.say("Not checked, because validate does not know the kind, or cannot decrypt it: %s",
			strings.Join(slices.Sorted(maps.Keys(result.NotChecked)), ", "))
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

// counted formats counts of objects: 2 MachineClasses, 1 Secret.
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

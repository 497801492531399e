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
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/validate"
)

// validateFlags are those of validate alone.
type validateFlags struct {
	online             bool
	replicas           int64
	allowMissingSecret bool
	allowUnknown       bool
	showEffective      bool
	format             format
}

// maxReplicas of --replicas is more than any quota has room for.
const maxReplicas = 10_000

func (o *options) newValidateCommand() *cobra.Command {
	flags := &validateFlags{}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Check MachineClasses, their Secrets, Machines and MachineDeployments",
		Long: `Checks MachineClasses, their Secrets, Machines and MachineDeployments by the rules of the
driver and of machine-controller-manager, and prints what is wrong with file, line, column
and field. With -f, files are checked, and a cluster is asked only for what is in none of them:
the Secret that --secret names, and the class of a Machine or MachineDeployment. Without -f, the
objects of the namespace (-n) are checked.

A class is checked with its own Secrets; --secret takes their place. Where they cannot be had,
--online asks with the credentials of --project-id, --region and --service-account-key-path,
or of their variables.

With --online, the API is asked whether it has what the classes name: machine type, zone,
image, network, NICs, security groups, affinity group, performance class, volumes, snapshot
and key pair; with --replicas, also whether the quota has room for so many machines of each
class. Nothing is changed. The nodeTemplate, by which cluster-autoscaler scales up from zero,
is compared as well: its cpu and memory must not be more than the machine type's, its zone must
be one of the region, and its architecture that of the image. The API does not tell which zone
has which machine types, what GPUs and which architecture a machine type has, how much of its
memory a Node gets, and whether a service account exists. Key pairs are looked for with the
credentials of the class's Secret, because they belong to credentials, not projects.

For CI, where Secrets are in no file: --allow-missing-secret. What cannot be told because of it
is named all the same, and so is a value of a Secret with the text replace-me, which the samples
have. --allow-unknown allows everything that cannot be told.

-v=1 shows what was asked of the API and is fine, too.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 something could not be told (for
instance because a Secret is not given) and nothing is wrong, 64 wrong usage.`,
		Example: `  # Files and folders; "-" is standard input
  mcm-stackit validate -f samples
  mcm-stackit validate -f samples/secret.yaml -f - < samples/machine-class.yaml

  # In CI: files without the Secret, or one with placeholders
  mcm-stackit validate -f samples --allow-missing-secret

  # What the driver makes of a class, its Secret and the defaults
  mcm-stackit validate -f samples --show-effective

  # Ask the API as well, also for the quota that three more machines of each class take
  mcm-stackit validate -f samples --online --replicas=3

  # The objects of a namespace, for a program
  mcm-stackit validate -n default -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("replicas") && (!flags.online || flags.replicas < 1 || flags.replicas > maxReplicas) {
				return wrongUsage("--replicas must be 1 to %d, and needs --online", maxReplicas)
			}
			if flags.allowMissingSecret && len(o.files) == 0 {
				return wrongUsage("--allow-missing-secret is for files: it needs -f")
			}
			return o.validate(command.Context(), flags)
		},
	}
	command.Flags().BoolVar(&flags.online, "online", false, "ask the API, too; nothing is changed there")
	command.Flags().Int64Var(&flags.replicas, "replicas", 0, "with --online: how many more machines of each class the quota must have room for")
	command.Flags().BoolVar(&flags.allowMissingSecret, "allow-missing-secret", false,
		"with -f: exit with 0 if nothing is wrong, but something could not be told because a Secret is in no file or has a placeholder")
	command.Flags().BoolVar(&flags.allowUnknown, "allow-unknown", false, "exit with 0 if nothing is wrong, but something could not be told")
	command.Flags().BoolVar(&flags.showEffective, "show-effective", false,
		"print the providerSpec of each class after Secret and defaults, without userData: as YAML documents, or with -o json as a list; findings go to stderr")
	flags.format.addTo(command, formatJSON, formatYAML)
	return command
}

func (o *options) validate(ctx context.Context, flags *validateFlags) error {
	if flags.online && o.configError != nil {
		return o.configError
	}
	with, err := o.validateOperator(ctx)
	if err != nil {
		return err
	}
	progress := o.progress()
	result, err := validate.Run(ctx, with, validate.Options{
		Cluster: len(o.files) == 0, Online: flags.online, Replicas: flags.replicas,
		AllowMissingSecret: flags.allowMissingSecret, AllowUnknown: flags.allowUnknown, Progress: progress.show,
	})
	progress.show("")
	if result != nil && len(result.NotChecked) > 0 {
		o.say("Not checked, because of other kinds: %s", counted(result.NotChecked))
	}
	if err != nil {
		return err
	}
	return o.printValidation(flags, result)
}

// validateOperator needs a cluster only where the objects or a Secret of one are named. Else
// it may be asked for a class.
func (o *options) validateOperator(ctx context.Context) (*account.Access, error) {
	with, err := o.operatorOfBroken(ctx, len(o.files) == 0)
	if err != nil || len(o.files) == 0 {
		return with, err
	}
	with.ControlError = o.connect(with)
	if o.secret == "" || with.SecretGiven() {
		return with, nil
	}
	return with, with.ControlError
}

func (o *options) printValidation(flags *validateFlags, checked *validate.Result) error {
	if flags.showEffective {
		if err := o.printEffective(flags.format, checked.Effective); err != nil {
			return err
		}
		o.printFindings(o.streams.ErrOut, checked)
	} else if done, err := o.printAs(flags.format, checked); err != nil {
		return err
	} else if !done {
		o.printFindings(o.streams.Out, checked)
	}
	return exitWith(checked.ExitCode())
}

// printFindings prints those that somebody must look at, and how many objects there were.
func (o *options) printFindings(to io.Writer, result *validate.Result) {
	for _, found := range result.Findings {
		if found.Verdict != report.Fine || klog.V(1).Enabled() {
			_, _ = fmt.Fprintln(to, found)
		}
	}
	count := result.Findings.Count()
	summary := "Checked " + counted(result.Checked)
	if hints := count[report.Hint]; hints > 0 {
		summary += ", with " + report.Count(hints, "hint")
	}
	if fine := count[report.Fine]; fine == 1 {
		summary += ", with 1 finding that is fine"
	} else if fine > 1 {
		summary += fmt.Sprintf(", with %d findings that are fine", fine)
	}
	if count[report.Fine] > 0 && !klog.V(1).Enabled() {
		summary += " (-v=1 shows them)"
	}
	switch wrong, unknown := count[report.Wrong], count[report.Unknown]; {
	case wrong > 0:
		o.say("%s: %d wrong, %d could not be told.", summary, wrong, unknown)
	case unknown > 0 && result.ExitCode() == report.ExitFine:
		_, _ = fmt.Fprintf(to, "%s: nothing is wrong, %d could not be told, which is allowed.\n", summary, unknown)
	case unknown > 0:
		o.say("%s: nothing is wrong, %d could not be told.", summary, unknown)
	default:
		_, _ = fmt.Fprintf(to, "%s: nothing is wrong.\n", summary)
	}
}

// printEffective prints one document a class, as YAML, or one list of all as JSON, which
// has no documents.
func (o *options) printEffective(as format, specs []validate.EffectiveSpec) error {
	if as.isJSON() {
		_, err := o.printAs(as, append([]validate.EffectiveSpec{}, specs...))
		return err
	}
	as.value = formatYAML
	for i, spec := range specs {
		if i > 0 {
			_, _ = fmt.Fprintln(o.streams.Out, "---")
		}
		if _, err := o.printAs(as, spec); err != nil {
			return err
		}
	}
	return nil
}

// counted writes numbers of objects: 2 MachineClass, 1 Secret.
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

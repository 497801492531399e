// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/doctor"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

func (o *options) newDoctorCommand() *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a sidecar can work with these credentials and this cluster",
		Long: `Checks what a sidecar needs, in the order in which it would fail: the service-account key or
workload identity, the clock, the access token, and each read that the driver makes; then
MachineClasses and their Secrets, the Deployments of manager and sidecar, their leases, and the
sidecar's own login to the target cluster. Nothing is changed; the last lines list what was
not tried.

Credentials are those of the namespace's MachineClasses, unless --secret or flags give others, or
with --cloud-only variables. Each line begins with FINE, WRONG, UNKNOWN (it could not be checked) or
HINT (worth knowing); the text, or the line below it, says what to do.

Exit codes: 0 fine, 1 something is wrong, 2 something could not be checked, 64 wrong usage.`,
		Example: `  # The MachineClasses of a namespace, their credentials, and the cluster
  mcm-stackit doctor -n default

  # A key before it is used, without a cluster
  mcm-stackit doctor --cloud-only --project-id 10000000-0000-4000-8000-000000000001 --region eu01 \
    --service-account-key-path key.json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "" && output != formatJSON {
				return wrongUsage("-o must be %s", formatJSON)
			}
			if o.cloudOnly && o.secret != "" {
				return wrongUsage("--secret cannot be combined with --cloud-only, which reads no cluster")
			}
			return o.doctor(command.Context(), output == formatJSON)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "print as "+formatJSON+", once all checks are done")
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{formatJSON}, cobra.ShellCompDirectiveNoFileComp))
	command.Flags().BoolVar(&o.cloudOnly, "cloud-only", false,
		"use no cluster: check only credentials and API; reads $"+envProjectID+", $"+envRegion+" and $"+envKeyPath)
	return command
}

func (o *options) doctor(ctx context.Context, asJSON bool) error {
	access := o.access()
	if !o.cloudOnly {
		o.connect(ctx, access)
	}
	doctor := &doctor.Doctor{Access: access, ConfigError: o.configError}
	if !asJSON {
		doctor.Report = o.printFinding
	}
	result := doctor.Examine(ctx)
	if asJSON {
		encoder := json.NewEncoder(o.streams.Out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(result); err != nil {
			return err
		}
	} else {
		for _, what := range result.NotTried {
			_, _ = fmt.Fprintf(o.streams.Out, "not tried: %s\n", what)
		}
	}
	counts := result.Findings.Count()
	o.say("%d fine, %d wrong, %d unknown, %s.", counts[report.Fine], counts[report.Wrong], counts[report.Unknown],
		report.Count(counts[report.Hint], "hint"))
	return exitWith(result.Findings.ExitCode())
}

func (o *options) printFinding(found report.Finding) {
	_, _ = fmt.Fprintf(o.streams.Out, "%-7s  %s: %s\n", strings.ToUpper(string(found.Verdict)), found.Subject, found.Found)
	if found.Remedy != "" {
		_, _ = fmt.Fprintf(o.streams.Out, "%-7s  %s\n", "", found.Remedy)
	}
}

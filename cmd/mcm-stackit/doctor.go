// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/doctor"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

func (o *options) newDoctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a sidecar can work with these credentials and this cluster",
		Long: `Checks what a sidecar needs, in the order in which it would fail: the service-account key or
workload identity, the access token, and each read that the driver makes; then MachineClasses and
their Secrets, as validate does. Nothing is changed; the last lines list what was not tried.

Credentials are those of the namespace's MachineClasses, unless --secret or flags give others, or
with --cloud-only variables. Each line begins with fine, wrong, unknown (it could not be checked) or
hint (worth knowing).

Exit codes: 0 fine, 1 something is wrong, 2 something could not be checked, 64 wrong usage.`,
		Example: `  mcm-stackit doctor -n default
  mcm-stackit doctor --cloud-only --project-id 10000000-0000-4000-8000-000000000001 --region eu01 \
    --service-account-key-path key.json`,
		Args: cobra.NoArgs,
	}
	format, checkFormat := addOutputFlag(command, formatJSON)
	command.Flags().BoolVar(&o.cloudOnly, "cloud-only", false,
		"use no cluster; credentials may be variables")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if o.cloudOnly && o.secret != "" {
			return wrongUsage("--secret cannot be combined with --cloud-only, which reads no cluster")
		}
		if err := checkFormat(); err != nil {
			return err
		}
		return o.doctor(command.Context(), *format)
	}
	return command
}

func (o *options) doctor(ctx context.Context, format string) error {
	access := o.access()
	if !o.cloudOnly {
		o.connect(access)
	}
	result := (&doctor.Doctor{Access: access, ConfigError: o.configError}).Examine(ctx)
	if err := printFindings(o, format, result, result.Findings); err != nil {
		return err
	}
	for _, what := range result.NotTried {
		if format == "" {
			_, _ = fmt.Fprintf(o.streams.Out, "not tried: %s\n", what)
		}
	}
	o.say("%d fine, %s", result.Findings.Count()[report.Fine], summary(result.Findings))
	return exitWith(result.Findings.ExitCode())
}

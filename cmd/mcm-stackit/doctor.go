// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/doctor"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	*options
	output         format
	cloudOnly      bool
	serviceAccount string
}

func (o *options) newDoctorCommand() *cobra.Command {
	d := &doctorOptions{options: o}
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that machines need, and say how to mend what is wrong",
		Long: `Looks at the service-account key, the access token, the clock, the endpoint, project and
region, and which reads of the API are allowed; then at the cluster with the Machines: custom
resource definitions, MachineClasses and their Secrets, cluster labels, the manager and the
sidecar, who leads, and what the sidecar's service account may do. Nothing is changed.

Credentials are those of the MachineClasses of the namespace, unless --secret, -f, or flags
and environment name others. Each line begins with FINE, WRONG, UNKNOWN (it could not be told) or HINT (worth
knowing); the line below says how to mend it.

Exit codes: 0 fine, 1 something is wrong, 2 something could not be told, 64 wrong usage.`,
		Example: `  # The MachineClasses of a namespace, their credentials, the cluster and the cloud
  mcm-stackit doctor -n default

  # A Secret before it is applied, without any cluster
  mcm-stackit doctor --cloud-only -f secret.yaml

  # Two clusters, as JSON
  mcm-stackit doctor --target-kubeconfig target.kubeconfig -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !isObjectName(d.serviceAccount) {
				return wrongUsage("--service-account must be the name of a service account, or namespace/name")
			}
			return d.run(command.Context())
		},
	}
	d.output.addTo(command, formatJSON, formatYAML)
	command.Flags().BoolVar(&d.cloudOnly, "cloud-only", false, "ask no cluster: look at credentials and API alone")
	command.Flags().StringVar(&d.serviceAccount, "service-account", "",
		"service account of the sidecar, as name or namespace/name (default: that of its Deployment in the namespace)")
	return command
}

func (d *doctorOptions) run(ctx context.Context) error {
	o, err := d.operatorOfWhole(ctx, false)
	if err != nil {
		return err
	}
	progress := d.progress()
	doctor := &doctor.Doctor{
		Access: o, Config: d.config, ConfigError: d.configError, EndpointOrigin: d.endpointOrigin(), ServiceAccount: d.serviceAccount,
		Looking: func(what string) { progress.show("looking at " + what) },
	}
	if !d.cloudOnly {
		d.connectDoctor(doctor)
	}
	if d.output.value == "" {
		doctor.Report = func(finding report.Finding) {
			progress.show("")
			d.print(finding)
		}
	}
	findings := doctor.Examine(ctx)
	progress.show("")
	if _, err := d.printAs(d.output, findings); err != nil {
		return err
	}
	d.summarize(findings)
	return exitWith(findings.ExitCode())
}

// connectDoctor makes what asks the clusters. One that cannot be asked is a finding, and not
// the end.
func (d *doctorOptions) connectDoctor(doctor *doctor.Doctor) {
	err := d.connect(doctor.Access)
	if doctor.Control == nil {
		doctor.ControlError = err
		return
	}
	doctor.TargetError = err
	if config, err := d.control.ToRESTConfig(); err == nil {
		doctor.ControlVersion = versionOf(config)
	}
	if doctor.Target == nil || doctor.Target == doctor.Control {
		return
	}
	if config, err := d.targetConfig(); err == nil {
		doctor.TargetVersion = versionOf(config)
	}
}

// versionOf asks an API server for its version; nil if it cannot be asked.
func versionOf(config *rest.Config) discovery.ServerVersionInterface {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil
	}
	return client
}

// endpointOrigin says what set the endpoint of the API.
func (d *doctorOptions) endpointOrigin() string {
	for _, name := range []string{spi.EnvAPIEndpoint, spi.EnvIaaSEndpoint} {
		if value, _ := d.lookup(name); value != "" {
			return "set by " + name
		}
	}
	return "the default"
}

// verdictWidth is the length of the longest verdict.
const verdictWidth = len(report.Unknown)

func (d *doctorOptions) print(finding report.Finding) {
	padding := strings.Repeat(" ", verdictWidth-len(finding.Verdict))
	_, _ = fmt.Fprintf(d.streams.Out, "%s%s  %s: %s\n", d.verdict(finding.Verdict), padding, finding.Subject, finding.Found)
	if finding.Remedy != "" {
		_, _ = fmt.Fprintf(d.streams.Out, "%s  %s\n", strings.Repeat(" ", verdictWidth), finding.Remedy)
	}
}

// summarize counts the findings, beside the data.
func (d *doctorOptions) summarize(findings report.Findings) {
	counts := findings.Count()
	d.say("%d fine, %d wrong, %d unknown, %s.", counts[report.Fine], counts[report.Wrong], counts[report.Unknown], report.Count(counts[report.Hint], "hint"))
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/label"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// labelled are servers of all outcomes.
func labelled() *label.Plan {
	plan := &label.Plan{}
	for i, outcome := range []label.Outcome{label.Complete, label.Missing, label.Labelled, label.Refused, label.Wrong, label.Unknown} {
		server := label.Server{
			Namespace: "shoot--demo--laptop", Machine: fmt.Sprintf("worker-%d", i), Class: "worker", Outcome: outcome,
			ID: fmt.Sprintf("d61a8564-c8dd-4ffb-bc15-143e7d0c85e%d", i), ProjectID: "10000000-0000-4000-8000-000000000001", Region: "eu01",
		}
		server.ProviderID = "stackit://" + server.ProjectID + "/" + server.ID
		switch outcome {
		case label.Missing, label.Labelled:
			server.Labels = map[string]string{"kubernetes.io/machine": server.Machine, "kubernetes.io/machineclass": "worker"}
		case label.Refused, label.Wrong, label.Unknown:
			server.Reason = "the reason"
		case label.Complete:
		}
		plan.Servers = append(plan.Servers, server)
	}
	return plan
}

func TestLabelPrints(t *testing.T) {
	for name, output := range map[string]string{"label": "", "label-json": formatJSON} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			o := newOptions(genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, func(string) (string, bool) { return "", false })
			l := &labelling{options: o, output: format{value: output}}
			for _, server := range labelled().Servers {
				l.report(server)
			}
			_ = l.end(labelled())
			expectGolden(t, name+".txt", "# standard output\n"+out.String()+"# standard error\n"+errOut.String())
		})
	}
}

func TestLabelExitCodes(t *testing.T) {
	for outcome, want := range map[label.Outcome]int{
		label.Complete: report.ExitFine, label.Missing: report.ExitFine, label.Labelled: report.ExitFine,
		label.Refused: report.ExitWrong, label.Wrong: report.ExitWrong, label.Unknown: report.ExitUnknown,
	} {
		var code result
		errors.As(exitWith(labelExitCode(&label.Plan{Servers: []label.Server{{Outcome: outcome}, {Outcome: label.Labelled}}})), &code)
		if int(code) != want {
			t.Errorf("%s: exit code %d, want %d", outcome, code, want)
		}
	}
	if code := labelExitCode(&label.Plan{Servers: []label.Server{{Outcome: label.Unknown}, {Outcome: label.Refused}}}); code != report.ExitWrong {
		t.Errorf("unknown and refused: exit code %d, want %d", code, report.ExitWrong)
	}
}

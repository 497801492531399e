// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// The runbook's table has one row for each reason of the driver's, with its code.
func TestEachReasonHasARemedy(t *testing.T) {
	for _, reason := range provider.Reasons() {
		if row := fmt.Sprintf("\n| `%s` | %s | ", reason, reason.Code()); strings.Count(kubernetes.Runbooks, row) != 1 {
			t.Errorf("%q is not there once", row)
		}
		row := report.RowOf(string(reason))
		if row.Cause == "" || row.Remedy == "" || strings.ContainsAny(row.Cause+row.Remedy, "`[]") {
			t.Errorf("%s: got %+v, want plain text", reason, row)
		}
	}
	if report.RowOf(report.Silence).Remedy == "" {
		t.Errorf("there is no row %q", report.Silence)
	}
	const want = "let its Machines go (kubernetes/runbooks.md#the-project-is-gone)"
	if got := report.RowOf(string(provider.ReasonResourceMissing)).Remedy; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// A reason without a row leaves a user without help; a row without a reason helps nobody.
func TestEachReasonHasOneRemedy(t *testing.T) {
	reasons := provider.Reasons()
	for _, reason := range reasons {
		if row := fmt.Sprintf("\n| `%s` | %s | ", reason, reason.Code()); strings.Count(kubernetes.Runbooks, row) != 1 {
			t.Errorf("kubernetes/runbooks.md has no row, or several, that begin with %q", row)
		}
		if found := remedies()[string(reason)]; found.cause == "" || found.remedy == "" {
			t.Errorf("%s: got %+v", reason, found)
		}
	}
	if got := remedies()[silent]; got != (remedy{"the Secret, or its key userData, is missing", "create it; the sidecar's log repeats userdata field not found"}) {
		t.Errorf("%s: got %+v", silent, got)
	}
	if len(remedies()) != len(reasons)+1 {
		t.Errorf("%d rows about %d reasons and silence", len(remedies()), len(reasons))
	}
}

func TestRemediesArePlainText(t *testing.T) {
	const want = "grant it these permissions (pkg/provider/apis/README.md); check that key and projectId belong together"
	if got := remedies()[string(provider.ReasonNoPermission)].remedy; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

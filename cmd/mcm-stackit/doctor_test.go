// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/doctor"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// From a key to a verdict: what is printed where, and how it ends.
func TestDoctorJourney(t *testing.T) {
	cloud, env, key := startProject(t)
	run := func(args ...string) outcome {
		return invocation{args: inProject(key, append([]string{"doctor"}, args...)...), env: env}.run(t)
	}
	fine := run("--cloud-only")
	fine.expect(t, 0)
	want := "credentials: --project-id, --region, --service-account-key-path\n" +
		"5 fine, 0 wrong, 0 unknown, 0 hints.\n"
	if fine.stderr != want {
		t.Errorf("stderr is %q, want %q", fine.stderr, want)
	}
	same := fine.stdout
	for pattern, as := range map[string]string{
		`http://127[^/ ]*`: "<API>", `key [0-9a-f-]{36}`: "key <key>", `[\w.-]+@[\w.-]+`: "<mail>", key: "<file>",
	} {
		same = regexp.MustCompile(pattern).ReplaceAllString(same, as)
	}
	expectGolden(t, "doctor-fine.txt", same)

	var result doctor.Result
	if asJSON := run("--cloud-only", "-o", "json"); json.Unmarshal([]byte(asJSON.stdout), &result) != nil ||
		asJSON.code != 0 ||
		len(result.Findings) != 5 || result.Findings[0].Verdict != report.Fine || len(result.NotTried) == 0 {
		t.Errorf("got %+v", asJSON)
	}
	environmentRow{[]string{"doctor", "-o", "yaml"}, 64, "", "-o must be json\n"}.run(t, "yaml", nil, "")

	run().expect(t, 2, "UNKNOWN  cluster with the Machines: ", "--cloud-only checks only the API\n")
	cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
	run("--cloud-only").expect(t, 1, "WRONG    reads: servers: not allowed (status 403): the driver needs it\n"+
		"         give the service account the permission iaas.server.list")
}

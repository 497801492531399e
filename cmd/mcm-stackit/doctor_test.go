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

// A remedy names the flags or variables that are wrong: there is no Secret and no class.
func TestDoctorOfAnUnknownRegion(t *testing.T) {
	t.Parallel()
	_, env, key := startProject(t)
	for name, row := range map[string]struct {
		args []string
		env  []string
		says string
	}{
		"flags": {[]string{"--project-id", iaasmock.DefaultProjectID, "--region", "EU01", "--service-account-key-path", key},
			env[:2], "correct one of --project-id, --region, --service-account-key-path\n"},
		"a zone": {[]string{"--region", "eu01-1"}, env,
			"correct one of $STACKIT_PROJECT_ID, --region, $STACKIT_SERVICE_ACCOUNT_KEY_PATH; " +
				"eu01-1 is the name of a zone: its region is eu01\n"},
		"another's project": {[]string{"--project-id", iaasmock.SecondProjectID}, env,
			"or correct one of --project-id, $STACKIT_REGION, $STACKIT_SERVICE_ACCOUNT_KEY_PATH\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invocation{args: append([]string{"doctor", "--cloud-only"}, row.args...), env: row.env}.run(t).expect(t, 1, row.says)
		})
	}
}

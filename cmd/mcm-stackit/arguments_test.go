// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The variables may be set for other tools.
func TestCredentialsWithoutASecret(t *testing.T) {
	cloud, env := startProject(t)
	path := env[len(env)-1][len(envKeyPath)+1:]
	text := manifests(t, cloud)
	missing := append(slices.Clone(env), envKeyPath+"=/nowhere/key.json")
	for name, row := range map[string]struct {
		args, env []string
		code      int
		says      string
	}{
		"by variables":                   {[]string{"list"}, env, 2, "0 servers read in project " + iaasmock.DefaultProjectID + " in eu01"},
		"by flags":                       {[]string{"list", "--project-id", iaasmock.DefaultProjectID, "--region", "eu01", "--service-account-key-path", path}, env[:2], 2, "0 servers read"},
		"region by flag":                 {[]string{"list", "--region", "eu02"}, env, 2, "in eu02"},
		"some variables":                 {[]string{"list", noControl}, env[:3], 2, "MachineClasses, Machines, age of readiness, servers unknown: the cluster"},
		"a flag alone":                   {[]string{"list", "--project-id", iaasmock.DefaultProjectID}, env[:2], 64, "credentials without a Secret need all of "},
		"a flag beside a Secret":         {[]string{"list", "--project-id", iaasmock.DefaultProjectID, "--secret", "a"}, env, 64, "--secret goes without "},
		"a key that is missing":          {[]string{"list"}, missing, 2, "reading the service-account key: open /nowhere/key.json: no such file"},
		"a missing key that is not used": {[]string{"validate", "-f", "-", "--online"}, missing, 0, "nothing is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args, env: row.env, stdin: text}.run(t)
			if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"strings"
	"testing"
)

const (
	project = "10000000-0000-4000-8000-000000000001"
	other   = "10000000-0000-4000-8000-000000000002"
	server  = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
)

func TestParse(t *testing.T) {
	for providerID, row := range map[string]struct{ want, says string }{
		"stackit://" + project + "/" + server: {server, ""},
		"stackit://" + server:                 {server, ""},
		"openstack:///" + server:              {server, ""},
		"openstack://RegionOne/" + server:     {server, ""},
		"openstack:///RegionOne/" + server:    {server, ""},
		"openstack:////" + server:             {server, ""},
		"openstack://a/b/c d/" + server:       {server, ""},

		"stackit://" + other + "/" + server:                    {"", "project " + other},
		"stackit:///" + server:                                 {"", "is invalid"},
		"stackit://eu01/" + server:                             {"", "is invalid"},
		"stackit://" + project + "/" + server + "/x":           {"", "is invalid"},
		"stackit://" + project + "/":                           {"", "is invalid"},
		"stackit://" + project + "/" + strings.ToUpper(server): {"", "is invalid"},
		"openstack://" + server:                                {"", "is invalid"},
		"openstack:///RegionOne/" + server + "/":               {"", "is invalid"},
		"openstack:///" + server + "/x":                        {"", "is invalid"},
		"stackit:///eu01/" + server:                            {"", "is invalid"},
		"aws:///eu/" + server:                                  {"", "is invalid"},
		server:                                                 {"", "is invalid"},
		"":                                                     {"", "is invalid"},
	} {
		t.Run(providerID, func(t *testing.T) {
			got, err := Parse(providerID, project)
			if got != row.want || (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %q, %v; want %q, %q", got, err, row.want, row.says)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"stackit://" + project + "/" + server, "stackit://" + server, "stackit://", "://",
		"openstack:///" + server, "openstack://r/" + server, "openstack:///r/" + server,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, providerID string) {
		id, err := Parse(providerID, project)
		if err != nil {
			return
		}
		again, err := Parse(Format(project, id), project)
		if err != nil || again != id {
			t.Errorf("%q gives %q, which formats to something else: %q, %v", providerID, id, again, err)
		}
	})
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestMembersOfAnAffinityGroup(t *testing.T) {
	m := openMock(t)
	const group = iaasmock.DefaultAffinityGroupID
	path := inRegion + "/affinity-groups/" + group
	first, second := m.create(object{"affinityGroup": group}), m.create(object{"affinityGroup": group})
	m.create(nil)
	if got := m.want(200, "GET", path, nil)["members"]; !cmp.Equal(got, []any{first, second}) {
		t.Errorf("members are %v", got)
	}
	m.want(204, "DELETE", inRegion+"/servers/"+first, nil)
	m.clock.Step(boot)
	if got := m.want(200, "GET", path, nil)["members"]; !cmp.Equal(got, []any{second}) {
		t.Errorf("members are %v", got)
	}
}

func TestMachineTypeFilter(t *testing.T) {
	m := openMock(t)
	for _, row := range []struct {
		filter string
		want   []string
	}{
		{"", []string{"t1.1", "c2i.2", "g2i.4", "m2i.8", "c1a.8d", "n1.14d.g1"}},
		{"vcpus == 8", []string{"m2i.8", "c1a.8d"}},
		{"vcpus >= 4 && ram < 65536", []string{"g2i.4", "c1a.8d"}},
		{`name startsWith "c"`, []string{"c2i.2", "c1a.8d"}},
		{`name in ["t1.1", "g2i.4"] or extraSpecs.gpu == "1"`, []string{"t1.1", "g2i.4", "n1.14d.g1"}},
		{"disk > 0", []string{}},
	} {
		got := names(m.list("/machine-types?filter=" + url.QueryEscape(row.filter)))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.filter, diff)
		}
	}
	for _, broken := range []string{"vcpus >", "cores == 2", "vcpus", `vcpus == "2"`, `int(name) > 1`} {
		if answer := m.want(400, "GET", inRegion+"/machine-types?filter="+url.QueryEscape(broken), nil); !strings.HasPrefix(answer["msg"].(string), "invalid filter: ") {
			t.Errorf("%s: %v", broken, answer)
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
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

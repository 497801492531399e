// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestQuotasOfNetworksAndSecurityGroups(t *testing.T) {
	quota := iaasmock.DefaultQuota()
	quota.Networks, quota.SecurityGroups, quota.SecurityGroupRules = 3, 3, 3
	m := openMock(t, iaasmock.WithQuota(quota))
	group := inRegion + "/security-groups/" + iaasmock.DefaultSecurityGroupID
	for _, row := range []struct {
		path, resource string
		made, refused  int
		body           object
	}{
		{inRegion + "/networks", "network", 202, 409, object{"name": "a"}},
		{inRegion + "/security-groups", "security_group", 201, 403, object{"name": "a"}}, // comes with two rules
		{group + "/rules", "security_group_rule", 201, 403, object{"direction": "ingress"}},
	} {
		path := m.made(row.made, row.path, row.body)
		if answer := m.want(row.refused, "POST", row.path, row.body); !strings.Contains(answer["msg"].(string), "Quota exceeded for resources: ['"+row.resource+"']") {
			t.Errorf("one more: %v", answer)
		}
		usage := m.want(200, "GET", inRegion+"/quotas", nil)["quotas"].(object)
		if row.resource == "network" {
			m.want(202, "DELETE", path, nil)
			m.want(202, "POST", row.path, row.body)
		}
		if row.resource == "security_group_rule" && usage["securityGroupRules"].(object)["usage"] != 3.0 {
			t.Errorf("usage is %v", usage)
		}
	}
}

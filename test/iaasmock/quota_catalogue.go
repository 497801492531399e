// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "net/http"

// allowNetwork answers with the conflict that the document has for
// CreateNetwork.
func (c *Cloud) allowNetwork(project, region string) *apiError {
	return allowOne(http.StatusConflict, "network", c.usage(project, region).Networks, c.quotaOf(project).Networks)
}

// allowSecurityGroup and allowSecurityGroupRule answer 403: of all that the
// document has there, it fits best.
func (c *Cloud) allowSecurityGroup(project, region string) *apiError {
	return allowOne(http.StatusForbidden, "security_group", c.usage(project, region).SecurityGroups, c.quotaOf(project).SecurityGroups)
}

func (c *Cloud) allowSecurityGroupRule(project, region string) *apiError {
	return allowOne(http.StatusForbidden, "security_group_rule", c.usage(project, region).SecurityGroupRules, c.quotaOf(project).SecurityGroupRules)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

type securityGroupView struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Stateful    bool              `json:"stateful"`
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

func showSecurityGroup(g *SecurityGroup, _ time.Time) securityGroupView {
	return securityGroupView{
		ID: g.ID, Name: g.Name, Description: g.Description, Stateful: !g.Stateless,
		Labels: orEmptyMap(g.Labels), CreatedAt: g.CreatedAt.UTC(), UpdatedAt: g.UpdatedAt.UTC(),
	}
}

func (c *Cloud) listSecurityGroups(r *request) (any, *apiError) {
	return listed(c, r, &c.securityGroups, showSecurityGroup)
}

func (c *Cloud) getSecurityGroup(r *request) (any, *apiError) {
	return shown(c, r, &c.securityGroups, namedSecurityGroup, showSecurityGroup)
}

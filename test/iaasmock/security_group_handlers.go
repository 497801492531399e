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

func showSecurityGroup(g *SecurityGroup) securityGroupView {
	return securityGroupView{
		ID: g.ID, Name: g.Name, Description: g.Description, Stateful: !g.Stateless,
		Labels: orEmptyMap(g.Labels), CreatedAt: g.CreatedAt.UTC(), UpdatedAt: g.UpdatedAt.UTC(),
	}
}

// findSecurityGroup finds a group by its ID or, as CreateServer does, by its name. Of
// several groups with the name it returns the oldest.
func (c *Cloud) findSecurityGroup(r *request, nameOrID string) (*SecurityGroup, bool) {
	if group, ok := c.securityGroups.get(nameOrID); ok && r.covers(group.ProjectID, group.Region) {
		return group, true
	}
	for _, group := range c.securityGroups.all() {
		if group.Name == nameOrID && r.covers(group.ProjectID, group.Region) {
			return group, true
		}
	}
	return nil, false
}

// withSecurityGroup runs f on the group that the path names by its ID.
func (c *Cloud) withSecurityGroup(r *request, f func(g *SecurityGroup, now time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		group, ok := c.securityGroups.get(r.vars["securityGroupId"])
		if !ok || !r.covers(group.ProjectID, group.Region) {
			err = notFound("security group")
			return
		}
		err = f(group, now)
	})
	return err
}

func (c *Cloud) listSecurityGroups(r *request) (any, *apiError) {
	return listed(c, r, &c.securityGroups, func(g *SecurityGroup, _ time.Time) (any, map[string]string, bool) {
		return showSecurityGroup(g), g.Labels, r.covers(g.ProjectID, g.Region)
	})
}

func (c *Cloud) getSecurityGroup(r *request) (view any, err *apiError) {
	err = c.withSecurityGroup(r, func(g *SecurityGroup, _ time.Time) *apiError {
		view = showSecurityGroup(g)
		return nil
	})
	return view, err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// securityGroupPayload is the body of CreateSecurityGroup and, without stateful, of
// UpdateSecurityGroup.
type securityGroupPayload struct {
	Name        *string        `json:"name"`
	Description *string        `json:"description"`
	Stateful    *bool          `json:"stateful"`
	Labels      map[string]any `json:"labels"`
}

type securityGroupView struct {
	ID          string                  `json:"id"`
	Name        string                  `json:"name"`
	Description string                  `json:"description,omitempty"`
	Stateful    bool                    `json:"stateful"`
	Rules       []securityGroupRuleView `json:"rules"`
	Labels      map[string]string       `json:"labels"`
	CreatedAt   time.Time               `json:"createdAt"`
	UpdatedAt   time.Time               `json:"updatedAt"`
}

func showSecurityGroup(g *SecurityGroup) securityGroupView {
	return securityGroupView{
		ID: g.ID, Name: g.Name, Description: g.Description, Stateful: !g.Stateless, Rules: showSecurityGroupRules(g),
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

// createSecurityGroup makes a group that allows all outgoing traffic, as OpenStack does.
func (c *Cloud) createSecurityGroup(r *request) (view any, err *apiError) {
	var payload securityGroupPayload
	if err := r.decode("CreateSecurityGroupPayload", schema.CreateSecurityGroup, &payload); err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		if err = c.allowSecurityGroup(r.project(), r.region()); err != nil {
			return
		}
		group := &SecurityGroup{
			ID: c.ids.uuid(), ProjectID: r.project(), Region: r.region(), CreatedAt: now,
			Stateless: payload.Stateful != nil && !*payload.Stateful,
			Rules: []SecurityGroupRule{
				{ID: c.ids.uuid(), Direction: directionEgress, Ethertype: ethertypeIPv4, CreatedAt: now, UpdatedAt: now},
				{ID: c.ids.uuid(), Direction: directionEgress, Ethertype: ethertypeIPv6, CreatedAt: now, UpdatedAt: now},
			},
		}
		if err = group.change(payload, now); err != nil {
			return
		}
		c.securityGroups.put(group.ID, group)
		view = showSecurityGroup(group)
	})
	return view, err
}

func (c *Cloud) updateSecurityGroup(r *request) (view any, err *apiError) {
	var payload securityGroupPayload
	if err := r.decode("UpdateSecurityGroupPayload", schema.UpdateSecurityGroup, &payload); err != nil {
		return nil, err
	}
	err = c.withSecurityGroup(r, func(g *SecurityGroup, now time.Time) *apiError {
		if err := g.change(payload, now); err != nil {
			return err
		}
		view = showSecurityGroup(g)
		return nil
	})
	return view, err
}

// change sets the fields that the payload has. On error nothing is changed.
func (g *SecurityGroup) change(payload securityGroupPayload, now time.Time) *apiError {
	labels, err := mergeLabels(g.Labels, payload.Labels)
	if err != nil {
		return err
	}
	g.Labels, g.UpdatedAt = labels, now
	if payload.Name != nil {
		g.Name = *payload.Name
	}
	if payload.Description != nil {
		g.Description = *payload.Description
	}
	return nil
}

// deleteSecurityGroup is refused while a NIC has the group. It also deletes the rules
// that name the group.
func (c *Cloud) deleteSecurityGroup(r *request) (any, *apiError) {
	return nil, c.withSecurityGroup(r, func(g *SecurityGroup, _ time.Time) *apiError {
		for _, nic := range c.nics.all() {
			if slices.Contains(nic.SecurityGroups, g.ID) {
				// Source: the document: 409 of DeleteSecurityGroup.
				return conflict()
			}
		}
		c.securityGroups.remove(g.ID)
		for _, other := range c.securityGroups.all() {
			other.dropRules(func(rule SecurityGroupRule) bool { return rule.RemoteSecurityGroupID == g.ID })
		}
		return nil
	})
}

// dropRules removes rules, in a new list.
func (g *SecurityGroup) dropRules(gone func(SecurityGroupRule) bool) {
	g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), gone)
}

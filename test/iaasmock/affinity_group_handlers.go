// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

type affinityGroupView struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Policy  string   `json:"policy"`
	Members []string `json:"members"`
}

func (c *Cloud) showAffinityGroup(g *AffinityGroup) affinityGroupView {
	view := affinityGroupView{ID: g.ID, Name: g.Name, Policy: g.Policy, Members: []string{}}
	for _, s := range c.servers.all() {
		if s.AffinityGroup == g.ID {
			view.Members = append(view.Members, s.ID)
		}
	}
	return view
}

// findAffinityGroup finds a group in the request's project and region.
func (c *Cloud) findAffinityGroup(r *request, id string) (*AffinityGroup, bool) {
	group, ok := c.affinityGroups.get(id)
	return group, ok && r.covers(group.ProjectID, group.Region)
}

// withAffinityGroup runs f on the group that the path names.
func (c *Cloud) withAffinityGroup(r *request, f func(*AffinityGroup)) (err *apiError) {
	c.locked(func(time.Time) {
		group, ok := c.findAffinityGroup(r, r.vars["affinityGroupId"])
		if !ok {
			err = notFound("affinity group")
			return
		}
		f(group)
	})
	return err
}

func (c *Cloud) listAffinityGroups(r *request) (any, *apiError) {
	views := []affinityGroupView{}
	c.locked(func(time.Time) {
		for _, g := range c.affinityGroups.all() {
			if r.covers(g.ProjectID, g.Region) {
				views = append(views, c.showAffinityGroup(g))
			}
		}
	})
	return items(views), nil
}

func (c *Cloud) getAffinityGroup(r *request) (view any, err *apiError) {
	err = c.withAffinityGroup(r, func(g *AffinityGroup) { view = c.showAffinityGroup(g) })
	return view, err
}

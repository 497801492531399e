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

func (c *Cloud) showAffinityGroup(g *AffinityGroup, _ time.Time) affinityGroupView {
	view := affinityGroupView{ID: g.ID, Name: g.Name, Policy: g.Policy, Members: []string{}}
	for s := range c.servers.each() {
		if s.AffinityGroup == g.ID {
			view.Members = append(view.Members, s.ID)
		}
	}
	return view
}

// listAffinityGroups has no label_selector: affinity groups have no labels.
func (c *Cloud) listAffinityGroups(r *request) (any, *apiError) {
	views := []affinityGroupView{}
	c.locked(func(now time.Time) {
		for g := range c.affinityGroups.each() {
			if r.sees(g) {
				views = append(views, c.showAffinityGroup(g, now))
			}
		}
	})
	return items(views), nil
}

func (c *Cloud) getAffinityGroup(r *request) (any, *apiError) {
	return shown(c, r, &c.affinityGroups, namedAffinityGroup, c.showAffinityGroup)
}

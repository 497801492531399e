// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"
	"time"
)

// Networks returns the networks that exist now, those being deleted included.
func (c *Cloud) Networks() []Network {
	return snapshot(c, &c.networks, func(n *network) Network {
		view := n.Network
		view.Labels = maps.Clone(n.Labels)
		view.IPv4Nameservers = slices.Clone(n.IPv4Nameservers)
		view.IPv6Nameservers = slices.Clone(n.IPv6Nameservers)
		return view
	})
}

// SecurityGroups returns the security groups that exist now, with their rules.
func (c *Cloud) SecurityGroups() []SecurityGroup {
	return snapshot(c, &c.securityGroups, func(g *SecurityGroup) SecurityGroup {
		view := *g
		view.Labels, view.Rules = maps.Clone(g.Labels), slices.Clone(g.Rules)
		return view
	})
}

// Images returns the images that exist now, public ones and those still waiting
// for their content included.
func (c *Cloud) Images() []Image {
	return snapshot(c, &c.images, func(i *Image) Image {
		view := *i
		view.Labels, view.Config, view.Agent = maps.Clone(i.Labels), maps.Clone(i.Config), maps.Clone(i.Agent)
		return view
	})
}

// Keypairs returns the key pairs that exist now.
func (c *Cloud) Keypairs() []Keypair {
	return snapshot(c, &c.keypairs, func(k *Keypair) Keypair {
		view := *k
		view.Labels = maps.Clone(k.Labels)
		return view
	})
}

// AffinityGroups returns the affinity groups that exist now.
func (c *Cloud) AffinityGroups() []AffinityGroup {
	return snapshot(c, &c.affinityGroups, func(g *AffinityGroup) AffinityGroup { return *g })
}

func snapshot[T, V any](c *Cloud, from *collection[T], view func(T) V) []V {
	var views []V
	c.locked(func(time.Time) {
		for _, item := range from.all() {
			views = append(views, view(item))
		}
	})
	return views
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// find returns the first item that fits.
func find[T any](items []T, fits func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, fits); i >= 0 {
		return items[i], true
	}
	var none T
	return none, false
}

func (c *Cloud) findMachineType(name string) (MachineType, bool) {
	return find(c.catalogue.MachineTypes, func(t MachineType) bool { return t.Name == name })
}

func (c *Cloud) findKeypair(name string) (Keypair, bool) {
	return find(c.catalogue.Keypairs, func(k Keypair) bool { return k.Name == name })
}

func (c *Cloud) findAffinityGroup(r *request, id string) (AffinityGroup, bool) {
	return find(c.catalogue.AffinityGroups, func(g AffinityGroup) bool { return g.ID == id && r.covers(g.ProjectID, g.Region) })
}

// findSecurityGroup takes an ID or, as CreateServer does, a name.
func (c *Cloud) findSecurityGroup(r *request, nameOrID string) (SecurityGroup, bool) {
	return find(c.catalogue.SecurityGroups, func(g SecurityGroup) bool {
		return (g.ID == nameOrID || g.Name == nameOrID) && r.covers(g.ProjectID, g.Region)
	})
}

func (c *Cloud) imageOf(r *request, id string) (Image, *apiError) {
	image, ok := find(c.catalogue.Images, func(i Image) bool { return i.ID == id && r.sees(i) })
	if !ok {
		return Image{}, notFound("image")
	}
	return image, nil
}

func (c *Cloud) snapshotOf(r *request, id string) (Snapshot, *apiError) {
	snapshot, ok := find(c.catalogue.Snapshots, func(s Snapshot) bool { return s.ID == id && r.covers(s.ProjectID, s.Region) })
	if !ok {
		return Snapshot{}, notFound("snapshot")
	}
	return snapshot, nil
}

func (r *request) covers(project, region string) bool {
	return project == r.project() && region == r.region()
}

func (r *request) sees(i Image) bool {
	return (i.ProjectID == "" || i.ProjectID == r.project()) && (i.Region == "" || i.Region == r.region())
}

func (c *Cloud) listNetworks(r *request) (any, *apiError) {
	return listCatalogue(r, c.catalogue.Networks, func(n Network) (any, map[string]string, bool) {
		return c.showNetwork(n), n.Labels, r.covers(n.ProjectID, n.Region)
	})
}

func (c *Cloud) getNetwork(r *request) (any, *apiError) {
	network, ok := find(c.catalogue.Networks, func(n Network) bool {
		return n.ID == r.vars["networkId"] && r.covers(n.ProjectID, n.Region)
	})
	if !ok {
		return nil, notFound("network")
	}
	return c.showNetwork(network), nil
}

func (c *Cloud) listImages(r *request) (any, *apiError) {
	if _, err := r.flag("all"); err != nil {
		return nil, err
	}
	return listCatalogue(r, c.catalogue.Images, func(i Image) (any, map[string]string, bool) {
		return showImage(i), i.Labels, r.sees(i)
	})
}

func (c *Cloud) getImage(r *request) (any, *apiError) {
	image, err := c.imageOf(r, r.vars["imageId"])
	if err != nil {
		return nil, err
	}
	return showImage(image), nil
}

// listMachineTypes refuses filter, whose language the mock does not speak:
// answering everything would be wrong.
func (c *Cloud) listMachineTypes(r *request) (any, *apiError) {
	if r.URL.Query().Get("filter") != "" {
		return nil, badRequest("the mock does not support filter")
	}
	views := []machineTypeView{}
	for _, t := range c.catalogue.MachineTypes {
		views = append(views, showMachineType(t))
	}
	return items(views), nil
}

func (c *Cloud) getMachineType(r *request) (any, *apiError) {
	machineType, ok := c.findMachineType(r.vars["machineType"])
	if !ok {
		return nil, notFound("machine type")
	}
	return showMachineType(machineType), nil
}

func (c *Cloud) listSecurityGroups(r *request) (any, *apiError) {
	return listCatalogue(r, c.catalogue.SecurityGroups, func(g SecurityGroup) (any, map[string]string, bool) {
		return showSecurityGroup(g), g.Labels, r.covers(g.ProjectID, g.Region)
	})
}

func (c *Cloud) getSecurityGroup(r *request) (any, *apiError) {
	group, ok := c.findSecurityGroup(r, r.vars["securityGroupId"])
	if !ok {
		return nil, notFound("security group")
	}
	return showSecurityGroup(group), nil
}

func (c *Cloud) listAffinityGroups(r *request) (any, *apiError) {
	views := []affinityGroupView{}
	for _, g := range c.catalogue.AffinityGroups {
		if r.covers(g.ProjectID, g.Region) {
			views = append(views, c.showAffinityGroup(g))
		}
	}
	return items(views), nil
}

func (c *Cloud) getAffinityGroup(r *request) (any, *apiError) {
	group, ok := c.findAffinityGroup(r, r.vars["affinityGroupId"])
	if !ok {
		return nil, notFound("affinity group")
	}
	return c.showAffinityGroup(group), nil
}

func (c *Cloud) listAvailabilityZones(r *request) (any, *apiError) {
	return items(c.catalogue.Regions[r.region()]), nil
}

func (c *Cloud) listKeypairs(r *request) (any, *apiError) {
	return listCatalogue(r, c.catalogue.Keypairs, func(k Keypair) (any, map[string]string, bool) {
		return showKeypair(k), k.Labels, true
	})
}

func (c *Cloud) getKeypair(r *request) (any, *apiError) {
	keypair, ok := c.findKeypair(r.vars["keypairName"])
	if !ok {
		return nil, notFound("keypair")
	}
	return showKeypair(keypair), nil
}

// listCatalogue lists what show says the request may see and label_selector
// picks.
func listCatalogue[T any](r *request, all []T, show func(T) (view any, itsLabels map[string]string, visible bool)) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, item := range all {
		view, itsLabels, visible := show(item)
		if visible && selector.Matches(labels.Set(itsLabels)) {
			views = append(views, view)
		}
	}
	return items(views), nil
}

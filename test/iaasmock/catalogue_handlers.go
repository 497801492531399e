// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// kind is a kind of resource that no call changes.
type kind struct {
	// what is the API's name of it in messages, variable its name in paths.
	what, variable string
}

var (
	kindImage            = kind{"image", "imageId"}
	kindSecurityGroup    = kind{"security group", "securityGroupId"}
	kindKeypair          = kind{"keypair", "keypairName"}
	kindAffinityGroup    = kind{"affinity group", "affinityGroupId"}
	kindSnapshot         = kind{"snapshot", "snapshotId"}
	kindMachineType      = kind{"machine type", "machineType"}
	kindPerformanceClass = kind{"volume performance class", "volumePerformanceClass"}
)

// readOnlyResource is a resource of the catalogue that no call changes.
type readOnlyResource struct {
	// id is the ID, or the name of a resource without one.
	id string
	// An empty project or region means all.
	project, region string
	// of is the entry in the Catalogue, view what the API shows.
	of   any
	view object
}

// object is a JSON object.
type object = map[string]any

// filled leaves out those of these texts that are empty, as the API does.
func filled(view object, optional ...string) object {
	for _, name := range optional {
		if view[name] == "" {
			delete(view, name)
		}
	}
	return view
}

func (s readOnlyResource) scope() (string, string) { return s.project, s.region }
func (s readOnlyResource) labelSet() labels.Set    { return nil }

// readOnly returns the resources that no call changes, as the API shows them.
func (c Catalogue) readOnly(now time.Time) map[kind][]readOnlyResource {
	all := map[kind][]readOnlyResource{}
	add := func(to kind, s readOnlyResource) {
		s.view["labels"], s.view["createdAt"], s.view["updatedAt"] = object{}, now.UTC(), now.UTC()
		all[to] = append(all[to], s)
	}
	for _, i := range c.Images {
		i.Status = cmp.Or(i.Status, ImageAvailable)
		view := object{
			"id": i.ID, "name": i.Name, "diskFormat": i.DiskFormat, "scope": "public", "status": i.Status,
			"minDiskSize": i.MinDiskSize, "minRam": i.MinRAM,
		}
		if i.ProjectID != "" {
			view["scope"], view["owner"] = "local", i.ProjectID
		}
		if i.Config != nil {
			view["config"] = i.Config
		}
		add(kindImage, readOnlyResource{i.ID, i.ProjectID, i.Region, i, view})
	}
	for _, g := range c.SecurityGroups {
		view := object{"id": g.ID, "name": g.Name, "stateful": true}
		add(kindSecurityGroup, readOnlyResource{g.ID, g.ProjectID, g.Region, g, view})
	}
	for _, k := range c.Keypairs {
		view := object{"name": k.Name, "publicKey": k.PublicKey, "fingerprint": k.Fingerprint}
		add(kindKeypair, readOnlyResource{k.Name, "", "", k, view})
	}
	for _, s := range c.Snapshots {
		s.Status = cmp.Or(s.Status, SnapshotAvailable)
		add(kindSnapshot, readOnlyResource{s.ID, s.ProjectID, s.Region, s, object{
			"id": s.ID, "name": s.Name, "status": s.Status, "size": s.Size, "volumeId": s.VolumeID,
			"availabilityZone": s.AvailabilityZone,
		}})
	}
	// These have no labels and times in the document, but for labels of classes.
	for _, g := range c.AffinityGroups {
		view := object{"id": g.ID, "name": g.Name, "policy": g.Policy}
		all[kindAffinityGroup] = append(all[kindAffinityGroup], readOnlyResource{g.ID, g.ProjectID, g.Region, g, view})
	}
	for _, t := range c.MachineTypes {
		all[kindMachineType] = append(all[kindMachineType], readOnlyResource{id: t.Name, of: t, view: object{
			"name": t.Name, "description": t.Description, "vcpus": t.VCPUs, "ram": t.RAM, "disk": t.Disk,
			"extraSpecs": orEmptyMap(t.ExtraSpecs),
		}})
	}
	for _, p := range c.PerformanceClasses {
		all[kindPerformanceClass] = append(all[kindPerformanceClass], readOnlyResource{id: p.Name, of: p, view: object{
			"name": p.Name, "description": p.Description, "iops": p.IOPS, "throughput": p.Throughput,
			"labels": object{},
		}})
	}
	return all
}

// findReadOnly finds a resource of the catalogue in the request's project and region.
func (c *Cloud) findReadOnly(r *request, of kind, id string) (readOnlyResource, bool) {
	return first(c.readOnlyResources[of], func(s readOnlyResource) bool { return s.id == id && r.sees(s) })
}

// listOf returns the handler of a list, with label_selector where the document has it. It
// ignores the parameters all of ListImages, which is not documented further, and filter of
// ListMachineTypes, whose language is not published.
func listOf(of kind) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		selector, err := r.selector()
		if err != nil {
			return nil, err
		}
		views := []object{}
		for _, s := range c.readOnlyResources[of] {
			if r.sees(s) && selector.Matches(s.labelSet()) {
				views = append(views, c.showReadOnly(s))
			}
		}
		return items(views), nil
	}
}

// getOf returns the handler that shows one.
func getOf(of kind) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		s, ok := c.findReadOnly(r, of, r.vars[of.variable])
		if !ok {
			return nil, notFound(of.what)
		}
		return c.showReadOnly(s), nil
	}
}

// showReadOnly adds to an affinity group its members, the one thing here that changes.
func (c *Cloud) showReadOnly(s readOnlyResource) object {
	group, is := s.of.(AffinityGroup)
	if !is {
		return s.view
	}
	members := []string{}
	c.locked(func(time.Time) {
		for server := range c.servers.each() {
			if server.AffinityGroup == group.ID {
				members = append(members, server.ID)
			}
		}
	})
	view := maps.Clone(s.view)
	view["members"] = members
	return view
}

// findSecurityGroup finds a group by its ID or, as CreateServer does, by its name. Of
// several groups with the name it returns the oldest.
func (c *Cloud) findSecurityGroup(r *request, nameOrID string) (id string, ok bool) {
	group, ok := c.findReadOnly(r, kindSecurityGroup, nameOrID)
	if !ok {
		group, ok = first(c.readOnlyResources[kindSecurityGroup], func(s readOnlyResource) bool {
			return s.view["name"] == nameOrID && r.sees(s)
		})
	}
	return group.id, ok
}

func (c *Cloud) findMachineType(name string) (MachineType, bool) {
	return first(c.catalogue.MachineTypes, func(t MachineType) bool { return t.Name == name })
}

func (c *Cloud) listAvailabilityZones(r *request) (any, *apiError) {
	return items(slices.Clone(c.catalogue.Regions[r.region()])), nil
}

// name is never empty: clients print it.
func (p Project) name() string { return cmp.Or(p.Name, "project-"+p.ID) }

// getProjectDetails shows a project in the public network area, as most are.
func (c *Cloud) getProjectDetails(r *request) (any, *apiError) {
	return object{
		"id": r.project(), "areaId": "PUBLIC", "internetAccess": true, "status": "CREATED",
		"createdAt": c.startedAt.UTC(), "updatedAt": c.startedAt.UTC(),
	}, nil
}

// getResourceManagerProject shows a project as the resource manager does, which clients ask for
// a project's name.
func (c *Cloud) getResourceManagerProject(r *request) (any, *apiError) {
	project, _ := c.project(r.project())
	const organization = "default-organization"
	parent := object{
		"id": "90000000-0000-4000-8000-000000000001", "containerId": organization, "type": "ORGANIZATION",
	}
	view := object{
		"projectId": project.ID, "containerId": project.name(), "name": project.name(), "lifecycleState": "ACTIVE",
		"labels": object{}, "parent": parent,
		"creationTime": c.startedAt.UTC(), "updateTime": c.startedAt.UTC(),
	}
	if r.flag("includeParents") {
		named := maps.Clone(parent)
		named["name"] = organization
		view["parents"] = []object{named}
	}
	return view, nil
}

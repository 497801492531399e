// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// IDs and names of resources in DefaultCatalogue.
const (
	// DefaultProjectID is the project of the resources below, unless their name indicates another
	// project.
	DefaultProjectID = "10000000-0000-4000-8000-000000000001"
	// SecondProjectID is another project, for tests that projects are isolated from each other.
	SecondProjectID = "10000000-0000-4000-8000-000000000002"

	// DefaultRegion is a region with the zones eu01-1, eu01-2, eu01-3 and eu01-m.
	DefaultRegion = "eu01"
	// SecondRegion is a region with the zones eu02-1, eu02-2, eu02-3 and eu02-m.
	SecondRegion = "eu02"
	// DefaultAvailabilityZone is a zone of DefaultRegion.
	DefaultAvailabilityZone = "eu01-1"

	// DefaultMachineType is a machine type that exists in every region.
	DefaultMachineType = "c2i.2"
	// DefaultKeypairName is the name of an SSH key pair. Key pairs do not belong to a project.
	DefaultKeypairName = "default-keypair"

	// DefaultImageID is the ID of a public image that needs a disk of 10 GB.
	DefaultImageID = "30000000-0000-4000-8000-000000000001"

	// DefaultNetworkID is the ID of an IPv4 network, 10.0.0.0/16.
	DefaultNetworkID = "20000000-0000-4000-8000-000000000001"
	// DefaultDualStackNetworkID is the ID of a network with IPv4 and IPv6, 10.1.0.0/16 and
	// fd00:1::/64.
	DefaultDualStackNetworkID = "20000000-0000-4000-8000-000000000002"
	// SecondProjectNetworkID is the ID of an IPv4 network of SecondProjectID, 10.2.0.0/16.
	SecondProjectNetworkID = "20000000-0000-4000-8000-000000000003"
	// SecondRegionNetworkID is the ID of an IPv4 network of DefaultProjectID in SecondRegion,
	// 10.3.0.0/16.
	SecondRegionNetworkID = "20000000-0000-4000-8000-000000000004"

	// DefaultSecurityGroupID is the ID of the security group DefaultSecurityGroupName.
	DefaultSecurityGroupID = "40000000-0000-4000-8000-000000000001"
	// DefaultSecurityGroupName is the name of the security group DefaultSecurityGroupID.
	// CreateServer accepts ID and name.
	DefaultSecurityGroupName = "workers"

	// DefaultAffinityGroupID is the ID of a soft-anti-affinity group.
	DefaultAffinityGroupID = "50000000-0000-4000-8000-000000000001"
	// DefaultVolumeID is the ID of an unattached data volume of 20 GB.
	DefaultVolumeID = "60000000-0000-4000-8000-000000000001"
	// DefaultBootVolumeID is the ID of an unattached bootable volume of 20 GB.
	DefaultBootVolumeID = "60000000-0000-4000-8000-000000000002"
	// DefaultNICID is the ID of an unattached NIC in DefaultNetworkID.
	DefaultNICID = "70000000-0000-4000-8000-000000000001"
	// DefaultSnapshotID is the ID of a snapshot of 20 GB.
	DefaultSnapshotID = "80000000-0000-4000-8000-000000000001"
)

// States of servers. SetServerStatus also accepts other states.
const (
	StatusActive   = "ACTIVE"
	StatusCreating = "CREATING"
	StatusDeleting = "DELETING"
	StatusError    = "ERROR"
)

// volumeAvailable is the state in which volumes, images and snapshots can be used.
const volumeAvailable, volumeAttached = "AVAILABLE", "ATTACHED"

// Catalogue holds the initial resources of a Cloud. A resource with a ProjectID and Region exists
// only in that project and region.
type Catalogue struct {
	// Projects are the IDs of the projects.
	Projects []string
	// Regions maps the name of a region to its availability zones. Each region needs at least one.
	Regions map[string][]string
	// Resources are the read-only resources, such as images.
	Resources []Resource
	Networks  []Network
	Volumes   []Volume
	NICs      []NIC
}

// Kind is a kind of Resource, with the name that the API's messages use.
type Kind string

// Kinds of Resources.
const (
	KindImage         Kind = "image"
	KindSecurityGroup Kind = "security group"
	// KindKeypair is an SSH key pair. It does not belong to a project.
	KindKeypair       Kind = "keypair"
	KindAffinityGroup Kind = "affinity group"
	// KindSnapshot is a snapshot of a volume, from which a server can boot.
	KindSnapshot    Kind = "snapshot"
	KindMachineType Kind = "machine type"
)

// Resource is a read-only resource, such as an image.
type Resource struct {
	Kind Kind
	// ID is the ID, or the name for a Kind without IDs: key pairs and machine types.
	ID string
	// ProjectID and Region are where the resource exists; "" means in all of them.
	ProjectID string
	Region    string
	// Fields are the resource's fields in the API, without the ID. Numbers have type int.
	Fields map[string]any
}

// Network is a network that NICs get their addresses from.
type Network struct {
	ID        string
	ProjectID string
	Region    string
	Name      string
	// IPv4Prefix and IPv6Prefix are the address ranges, in CIDR notation; "" means that NICs get no
	// addresses of that family. The first address after the network's own is the gateway.
	IPv4Prefix string
	IPv6Prefix string
}

// DefaultCatalogue returns the catalogue that a Cloud has without WithCatalogue: the resources of
// this package's constants, and a few more. The caller may change it.
func DefaultCatalogue() Catalogue {
	const project, region = DefaultProjectID, DefaultRegion
	return Catalogue{
		Projects: []string{project, SecondProjectID},
		Regions: map[string][]string{
			DefaultRegion: {"eu01-1", "eu01-2", "eu01-3", "eu01-m"},
			SecondRegion:  {"eu02-1", "eu02-2", "eu02-3", "eu02-m"},
		},
		Resources: slices.Concat(defaultResources(), defaultSizes()),
		Networks: []Network{
			{ID: DefaultNetworkID, ProjectID: project, Region: region, Name: "default", IPv4Prefix: "10.0.0.0/16"},
			{
				ID: DefaultDualStackNetworkID, ProjectID: project, Region: region, Name: "dual-stack",
				IPv4Prefix: "10.1.0.0/16", IPv6Prefix: "fd00:1::/64",
			},
			{ID: SecondProjectNetworkID, ProjectID: SecondProjectID, Region: region, Name: "default", IPv4Prefix: "10.2.0.0/16"},
			{ID: SecondRegionNetworkID, ProjectID: project, Region: SecondRegion, Name: "default", IPv4Prefix: "10.3.0.0/16"},
		},
		Volumes: []Volume{
			{
				ID: DefaultVolumeID, ProjectID: project, Region: region, Name: "data",
				Size: 20, PerformanceClass: "storage_premium_perf1", AvailabilityZone: DefaultAvailabilityZone,
			},
			{
				ID: DefaultBootVolumeID, ProjectID: project, Region: region, Name: "boot", Bootable: true,
				Size: 20, PerformanceClass: "storage_premium_perf1", AvailabilityZone: DefaultAvailabilityZone,
			},
		},
		NICs: []NIC{{ID: DefaultNICID, ProjectID: project, Region: region, NetworkID: DefaultNetworkID, Name: "spare"}},
	}
}

func defaultResources() []Resource {
	const project, region = DefaultProjectID, DefaultRegion
	return []Resource{
		{KindImage, DefaultImageID, "", "", object{
			"name": "Ubuntu 24.04", "diskFormat": "qcow2", "scope": "public", "status": volumeAvailable,
			"minDiskSize": 10, "minRam": 1024,
		}},
		{KindSecurityGroup, DefaultSecurityGroupID, project, region, object{
			"name": DefaultSecurityGroupName, "stateful": true,
		}},
		{KindKeypair, DefaultKeypairName, "", "", object{
			"publicKey":   "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB2mAmFxZs0nGq3oYgLwJXr0eHkqKxkIyE0bIuEN0Y2K default",
			"fingerprint": "56:7f:2d:43:bd:91:c3:7e:10:c4:62:d9:98:78:3a:48",
		}},
		{KindAffinityGroup, DefaultAffinityGroupID, project, region, object{
			"name": "spread", "policy": "soft-anti-affinity",
		}},
		{KindSnapshot, DefaultSnapshotID, project, region, object{
			"name": "golden", "status": volumeAvailable, "size": 20, "volumeId": DefaultBootVolumeID,
			"availabilityZone": DefaultAvailabilityZone,
		}},
	}
}

// defaultSizes are some of STACKIT's machine types.
func defaultSizes() (sizes []Resource) {
	for _, t := range []struct {
		name      string
		vcpus, gb int
	}{
		{"t1.1", 1, 1}, {"t1.2", 2, 2}, {DefaultMachineType, 2, 4}, {"c2a.2", 2, 4}, {"g2i.4", 4, 16}, {"n1.14d.g1", 14, 224},
	} {
		sizes = append(sizes, Resource{Kind: KindMachineType, ID: t.name, Fields: object{
			"vcpus": t.vcpus, "ram": t.gb * 1024, "disk": 0, "extraSpecs": object{},
		}})
	}
	return sizes
}

// object is a JSON object.
type object = map[string]any

// filled removes the optional fields that are empty, as the API does.
func filled(view object, optional ...string) object {
	for _, name := range optional {
		if view[name] == "" {
			delete(view, name)
		}
	}
	return view
}

func (s Resource) scope() (string, string) { return s.ProjectID, s.Region }
func (s Resource) labelSet() labels.Set    { return nil }

// number returns a numeric field; 0 if it is missing.
func (s Resource) number(field string) int64 {
	n, _ := s.Fields[field].(int)
	return int64(n)
}

// findResource finds a resource of the catalogue in the request's project and region.
func (c *Cloud) findResource(r *request, of Kind, id string) (Resource, bool) {
	return first(c.catalogue.Resources, func(s Resource) bool { return s.Kind == of && s.ID == id && r.sees(s) })
}

// listOf returns the handler of a list. It ignores the filter of ListMachineTypes, whose language is not
// published.
func listOf(of Kind) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		views := []object{}
		for _, s := range c.catalogue.Resources {
			if s.Kind == of && r.sees(s) {
				views = append(views, s.show())
			}
		}
		return items(views), nil
	}
}

// getOf returns the handler that shows the resource named by this path variable.
func getOf(of Kind, variable string) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		s, ok := c.findResource(r, of, r.vars[variable])
		if !ok {
			return nil, notFound(string(of))
		}
		return s.show(), nil
	}
}

// show returns the fields with the ID or name.
func (s Resource) show() object {
	view := maps.Clone(s.Fields)
	switch s.Kind {
	case KindKeypair, KindMachineType:
		view["name"] = s.ID
	default:
		view["id"] = s.ID
	}
	return view
}

// findSecurityGroup finds a group by its ID or, as CreateServer does, by its name. Of
// several groups with the name it returns the first.
func (c *Cloud) findSecurityGroup(r *request, nameOrID string) (id string, ok bool) {
	group, ok := c.findResource(r, KindSecurityGroup, nameOrID)
	if !ok {
		group, ok = first(c.catalogue.Resources, func(s Resource) bool {
			return s.Kind == KindSecurityGroup && s.Fields["name"] == nameOrID && r.sees(s)
		})
	}
	return group.ID, ok
}

func (c *Cloud) listAvailabilityZones(r *request) (any, *apiError) {
	return items(slices.Clone(c.catalogue.Regions[r.region()])), nil
}

// listQuotas shows quotas without a limit: the mock enforces none.
func (*Cloud) listQuotas(*request) (any, *apiError) {
	view := object{}
	for _, name := range []string{
		"vcpu", "ram", "volumes", "gigabytes", "nics", "snapshots", "backups", "backupGigabytes", "publicIps", "networks",
		"securityGroups", "securityGroupRules",
	} {
		view[name] = object{"limit": -1, "usage": 0}
	}
	return object{"quotas": view}, nil
}

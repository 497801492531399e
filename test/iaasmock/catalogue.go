// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

// IDs and names of resources in DefaultCatalogue.
const (
	// DefaultProjectID owns the resources below that have a project, unless their name
	// says otherwise.
	DefaultProjectID = "10000000-0000-4000-8000-000000000001"
	// SecondProjectID is another project, for tests that must not mix projects up.
	SecondProjectID = "10000000-0000-4000-8000-000000000002"

	// DefaultRegion has the zones eu01-1, eu01-2, eu01-3 and eu01-m.
	DefaultRegion = "eu01"
	// SecondRegion has the zones eu02-1, eu02-2 and eu02-m.
	SecondRegion = "eu02"
	// DefaultAvailabilityZone is a zone of DefaultRegion.
	DefaultAvailabilityZone = "eu01-1"

	// DefaultMachineType exists in every region.
	DefaultMachineType = "c2i.2"
	// DefaultKeypairName is an SSH key pair. Key pairs belong to no project.
	DefaultKeypairName = "default-keypair"

	// DefaultImageID is a public image that needs a disk of 10 GB.
	DefaultImageID = "30000000-0000-4000-8000-000000000001"
	// SecondImageID is a public image that needs a disk of 20 GB.
	SecondImageID = "30000000-0000-4000-8000-000000000002"

	// DefaultNetworkID is an IPv4 network, 10.0.0.0/16.
	DefaultNetworkID = "20000000-0000-4000-8000-000000000001"
	// DefaultDualStackNetworkID has IPv4 and IPv6, 10.1.0.0/16 and fd00:1::/64.
	DefaultDualStackNetworkID = "20000000-0000-4000-8000-000000000002"
	// SecondProjectNetworkID is an IPv4 network of SecondProjectID, 10.2.0.0/16.
	SecondProjectNetworkID = "20000000-0000-4000-8000-000000000003"
	// SecondRegionNetworkID is an IPv4 network of DefaultProjectID in
	// SecondRegion, 10.3.0.0/16.
	SecondRegionNetworkID = "20000000-0000-4000-8000-000000000004"

	// DefaultSecurityGroupID is the security group named
	// DefaultSecurityGroupName.
	DefaultSecurityGroupID = "40000000-0000-4000-8000-000000000001"
	// DefaultSecurityGroupName is the name of DefaultSecurityGroupID. CreateServer
	// accepts either.
	DefaultSecurityGroupName = "workers"

	// DefaultAffinityGroupID is a soft-anti-affinity group.
	DefaultAffinityGroupID = "50000000-0000-4000-8000-000000000001"
	// DefaultVolumeID is an unattached data volume of 20 GB.
	DefaultVolumeID = "60000000-0000-4000-8000-000000000001"
	// DefaultBootVolumeID is an unattached bootable volume of 20 GB.
	DefaultBootVolumeID = "60000000-0000-4000-8000-000000000002"
	// DefaultNICID is an unattached NIC in DefaultNetworkID.
	DefaultNICID = "70000000-0000-4000-8000-000000000001"
	// DefaultSnapshotID is a snapshot of 20 GB.
	DefaultSnapshotID = "80000000-0000-4000-8000-000000000001"
)

// States of servers that the mock knows. SetServerStatus accepts any state.
const (
	StatusActive      = "ACTIVE"
	StatusCreating    = "CREATING"
	StatusDeallocated = "DEALLOCATED"
	StatusDeleting    = "DELETING"
	StatusError       = "ERROR"
	StatusInactive    = "INACTIVE"
	StatusRescue      = "RESCUE"
	StatusStarting    = "STARTING"
	StatusStopping    = "STOPPING"
)

// Power states of servers.
const (
	powerError   = "ERROR"
	powerRunning = "RUNNING"
	powerStopped = "STOPPED"
)

// Image states.
const (
	ImageAvailable = "AVAILABLE"
	ImageCreating  = "CREATING"
)

// Volume states.
const (
	VolumeAvailable = "AVAILABLE"
	VolumeAttached  = "ATTACHED"
	VolumeError     = "ERROR"
)

// Snapshot states.
const (
	SnapshotAvailable = "AVAILABLE"
	SnapshotError     = "ERROR"
)

// Catalogue is what a Cloud has before the first call. A resource with a ProjectID and
// Region is found only there.
type Catalogue struct {
	Projects []Project
	// Regions maps a region's name to its availability zones.
	Regions map[string][]string
	// MachineTypes exist in every project and region.
	MachineTypes []MachineType
	Images       []Image
	Networks     []Network
	// SecurityGroups are found by ID, and by name when a server is created.
	SecurityGroups []SecurityGroup
	// Keypairs belong to no project.
	Keypairs       []Keypair
	AffinityGroups []AffinityGroup
	Snapshots      []Snapshot
	Volumes        []Volume
	NICs           []NIC
	// PerformanceClasses exist in every project and region. If there are none, every name
	// of a class is accepted.
	PerformanceClasses []PerformanceClass
}

// Project is a STACKIT project.
type Project struct {
	ID string
	// Name is its name in the resource manager. Default: "project-" and the ID.
	Name string
}

// MachineType is a size of servers.
type MachineType struct {
	Name        string
	Description string
	VCPUs       int64
	// RAM is in MB.
	RAM int64
	// Disk is the ephemeral disk in GB.
	Disk       int64
	ExtraSpecs map[string]string
}

// Image is a disk image. With an empty ProjectID it is public, with an empty
// Region it is in every region.
type Image struct {
	ID         string
	ProjectID  string
	Region     string
	Name       string
	DiskFormat string
	// MinDiskSize is in GB, MinRAM in MB.
	MinDiskSize int64
	MinRAM      int64
	// Config is the API's object of this name.
	Config map[string]any
	// Status is ImageAvailable or ImageCreating; in the catalogue, empty means available.
	Status string
}

// Network is a network that NICs get their addresses from.
type Network struct {
	ID        string
	ProjectID string
	Region    string
	Name      string
	Labels    map[string]string
	// IPv4Prefix and IPv6Prefix are in CIDR form; with an empty one NICs get no addresses
	// of that family. The first address is the gateway unless a request has set another.
	IPv4Prefix      string
	IPv6Prefix      string
	IPv4Nameservers []string
	IPv6Nameservers []string
	// Isolated is the opposite of the API's routed, DHCPDisabled that of dhcp.
	Isolated     bool
	DHCPDisabled bool
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// SecurityGroup is a named set of rules. The mock has no rules: there is no traffic that they
// could filter.
type SecurityGroup struct {
	ID        string
	ProjectID string
	Region    string
	Name      string
}

// Keypair is an SSH key pair.
type Keypair struct {
	Name string
	// PublicKey is in the form of an authorized_keys line.
	PublicKey string
	// Fingerprint is the MD5 of the key in hexadecimal, with colons.
	Fingerprint string
}

// AffinityGroup is a group of servers with one placement policy. The mock stores the
// policy but places no servers by it.
type AffinityGroup struct {
	ID        string
	ProjectID string
	Region    string
	Name      string
	// Policy is one of the API's four policies, such as "hard-anti-affinity".
	Policy string
}

// Snapshot is the state of a volume at one time. Volumes can be made from it.
type Snapshot struct {
	ID        string
	ProjectID string
	Region    string
	// VolumeID is the ID of its volume, which may be deleted.
	VolumeID string
	// Status is SnapshotAvailable or SnapshotError; empty means available.
	Status           string
	Name             string
	AvailabilityZone string
	// Size is that of its volume, in GB.
	Size int64
}

// DefaultCatalogue returns the catalogue of a Cloud without WithCatalogue: the resources
// that this package's constants name, and a few more. The caller may change it.
func DefaultCatalogue() Catalogue {
	return Catalogue{
		Projects: []Project{{ID: DefaultProjectID, Name: "default"}, {ID: SecondProjectID, Name: "second"}},
		Regions: map[string][]string{
			DefaultRegion: {"eu01-1", "eu01-2", "eu01-3", "eu01-m"},
			SecondRegion:  {"eu02-1", "eu02-2", "eu02-m"},
		},
		MachineTypes:       defaultMachineTypes(),
		PerformanceClasses: defaultPerformanceClasses(),
		Images: []Image{
			{ID: DefaultImageID, Name: "Ubuntu 24.04", DiskFormat: "qcow2", MinDiskSize: 10, MinRAM: 1024},
			{ID: SecondImageID, Name: "Flatcar Stable", DiskFormat: "qcow2", MinDiskSize: 20, MinRAM: 1024},
		},
		Networks: defaultNetworks(),
		SecurityGroups: []SecurityGroup{
			{ID: DefaultSecurityGroupID, ProjectID: DefaultProjectID, Region: DefaultRegion, Name: DefaultSecurityGroupName},
			{ID: "40000000-0000-4000-8000-000000000002", ProjectID: DefaultProjectID, Region: DefaultRegion, Name: "default"},
			{ID: "40000000-0000-4000-8000-000000000003", ProjectID: SecondProjectID, Region: DefaultRegion, Name: "default"},
		},
		Keypairs: []Keypair{{
			Name:        DefaultKeypairName,
			PublicKey:   "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB2mAmFxZs0nGq3oYgLwJXr0eHkqKxkIyE0bIuEN0Y2K default",
			Fingerprint: "56:7f:2d:43:bd:91:c3:7e:10:c4:62:d9:98:78:3a:48",
		}},
		AffinityGroups: []AffinityGroup{{
			ID: DefaultAffinityGroupID, ProjectID: DefaultProjectID, Region: DefaultRegion,
			Name: "spread", Policy: "soft-anti-affinity",
		}},
		Snapshots: []Snapshot{{
			ID: DefaultSnapshotID, ProjectID: DefaultProjectID, Region: DefaultRegion, Name: "golden", Size: 20,
			VolumeID: DefaultBootVolumeID, AvailabilityZone: DefaultAvailabilityZone,
		}},
		Volumes: []Volume{
			{
				ID: DefaultVolumeID, ProjectID: DefaultProjectID, Region: DefaultRegion, Name: "data",
				Size: 20, PerformanceClass: "storage_premium_perf1", AvailabilityZone: DefaultAvailabilityZone,
			},
			{
				ID: DefaultBootVolumeID, ProjectID: DefaultProjectID, Region: DefaultRegion, Name: "boot", Bootable: true,
				Size: 20, PerformanceClass: "storage_premium_perf1", AvailabilityZone: DefaultAvailabilityZone,
			},
		},
		NICs: []NIC{{
			ID: DefaultNICID, ProjectID: DefaultProjectID, Region: DefaultRegion, NetworkID: DefaultNetworkID, Name: "spare",
		}},
	}
}

func defaultMachineTypes() []MachineType {
	return []MachineType{
		{Name: "t1.1", Description: "Tiny", VCPUs: 1, RAM: 1024},
		{Name: DefaultMachineType, Description: "Compute optimized", VCPUs: 2, RAM: 4096},
		{Name: "g2i.4", Description: "General purpose", VCPUs: 4, RAM: 16384},
		{Name: "m2i.8", Description: "Memory optimized", VCPUs: 8, RAM: 65536},
		{Name: "c1a.8d", Description: "Compute optimized, AMD", VCPUs: 8, RAM: 16384},
		{Name: "n1.14d.g1", Description: "GPU", VCPUs: 14, RAM: 229376, ExtraSpecs: map[string]string{"gpu": "1"}},
	}
}

func defaultNetworks() []Network {
	return []Network{
		{
			ID: DefaultNetworkID, ProjectID: DefaultProjectID, Region: DefaultRegion,
			Name: "default", IPv4Prefix: "10.0.0.0/16",
		},
		{
			ID: DefaultDualStackNetworkID, ProjectID: DefaultProjectID, Region: DefaultRegion,
			Name: "dual-stack", IPv4Prefix: "10.1.0.0/16", IPv6Prefix: "fd00:1::/64",
		},
		{
			ID: SecondProjectNetworkID, ProjectID: SecondProjectID, Region: DefaultRegion,
			Name: "default", IPv4Prefix: "10.2.0.0/16",
		},
		{
			ID: SecondRegionNetworkID, ProjectID: DefaultProjectID, Region: SecondRegion,
			Name: "default", IPv4Prefix: "10.3.0.0/16",
		},
	}
}

// PerformanceClass is a speed class of volumes. Every project and region has it.
type PerformanceClass struct {
	Name        string
	Description string
	// IOPS is per second, Throughput in MB per second.
	IOPS       int64
	Throughput int64
}

// defaultPerformanceClasses are some of STACKIT's classes.
func defaultPerformanceClasses() []PerformanceClass {
	return []PerformanceClass{
		{Name: "storage_premium_perf0", Description: "Performance Class 0", IOPS: 120, Throughput: 25},
		{Name: "storage_premium_perf1", Description: "Performance Class 1", IOPS: 500, Throughput: 50},
		{Name: "storage_premium_perf2", Description: "Performance Class 2", IOPS: 1000, Throughput: 75},
		{Name: "storage_premium_perf4", Description: "Performance Class 4", IOPS: 2500, Throughput: 125},
		{Name: "storage_premium_perf6", Description: "Performance Class 6", IOPS: 5000, Throughput: 200},
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package apis defines the user's input to the driver: the ProviderSpec of a MachineClass and the
// fields of its Secret, with their defaults. Package validation checks both.
package apis

import "cmp"

// ProviderSpec is the JSON of MachineClass.providerSpec: it describes the servers of the
// class. A field that is set here overrides the class's Secret.
type ProviderSpec struct {
	// Region is the STACKIT region, such as eu01. Required here or in the Secret. It must not
	// change while machines of the class exist.
	Region string `json:"region,omitempty"`
	// MachineType is the name of the machine type, such as g2i.4. Required.
	MachineType string `json:"machineType"`
	// ImageID is the UUID of the image to boot from. Required unless bootVolume.source is set. With
	// a bootVolume, imageId is short for a bootVolume.source of type image. Without a bootVolume the
	// API chooses the disk: it does not document which, and reportedly only small images work.
	ImageID string `json:"imageId,omitempty"`
	// Labels are added to the server in addition to the driver's own labels; at most 256. One of
	// them should be the cluster label: its key ends in /cluster, and it limits every look-up and
	// list to that cluster.
	Labels map[string]string `json:"labels,omitempty"`
	// Networking connects the server to a network or to NICs. Required unless the Secret has a
	// networkId.
	Networking *Networking `json:"networking,omitempty"`
	// AllowedAddresses are IP addresses and CIDRs that may pass the server's NICs in addition to the
	// NICs' own addresses, such as the pod network; at most 256. Once the server runs, the driver adds
	// them to the allowed addresses that the NICs already have.
	AllowedAddresses []string `json:"allowedAddresses,omitempty"`
	// SecurityGroups are names or UUIDs of the server's security groups, at most 256. Default: the
	// project's default group.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// UserData is the cloud-init data in plain text, at most 256 KiB. Default: the Secret's userData.
	// The manager fills in the placeholders for bootstrap token and Machine name only in the Secret's
	// userData, not here.
	UserData string `json:"userData,omitempty"`
	// BootVolume is the disk to boot from. Recommended: see imageId for servers without a bootVolume.
	BootVolume *BootVolume `json:"bootVolume,omitempty"`
	// Volumes are UUIDs of existing volumes to attach, at most 256. The volumes outlive the server.
	Volumes []string `json:"volumes,omitempty"`
	// KeypairName is the name of an SSH key pair to put on the server. Key pairs belong to the
	// credentials, not to a project.
	KeypairName string `json:"keypairName,omitempty"`
	// AvailabilityZone is a zone of the region, such as eu01-1. Default: the zone in the Secret's
	// region field, if it belongs to the region in use; else the zone of an existing boot volume;
	// else STACKIT chooses.
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	// Fallbacks are alternative machine types and zones; at most 8. The driver tries them in this
	// order while the class's own choice has no capacity, or the region lacks its machine type.
	// Each attempt may take as long as a boot, and by default a Machine has 20 minutes in total.
	// Running servers are never moved.
	Fallbacks []Choice `json:"fallbacks,omitempty"`
	// AffinityGroup is the UUID of the affinity group that the server joins.
	AffinityGroup string `json:"affinityGroup,omitempty"`
	// ServiceAccountMails are email addresses of service accounts to attach to the server; the API
	// accepts at most one.
	ServiceAccountMails []string `json:"serviceAccountMails,omitempty"`
	// Agent configures the STACKIT server agent. Default: the image's choice.
	Agent *Agent `json:"agent,omitempty"`
	// ConfigDrive attaches a drive with the server's metadata and userData, for images that do not
	// fetch them over the network. Default: false, as in the API.
	ConfigDrive *bool `json:"configDrive,omitempty"`
	// Metadata is free-form metadata of the server, at most 256 entries. Values are strings,
	// numbers or booleans, and are sent as text.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// Choice is a machine type and an availability zone for a server. In ProviderSpec.Fallbacks each
// field that is set replaces the class's own.
type Choice struct {
	// MachineType replaces the class's machineType.
	MachineType string `json:"machineType,omitempty"`
	// AvailabilityZone replaces the class's availabilityZone. It is invalid together with
	// networking.nicIds, volumes or a bootVolume.source of type volume: existing resources are
	// bound to one zone.
	AvailabilityZone string `json:"availabilityZone,omitempty"`
}

// String returns the machine type and, if it is set, the zone: "g2i.4 in eu01-1".
func (c Choice) String() string {
	if c.AvailabilityZone == "" {
		return c.MachineType
	}
	return c.MachineType + " in " + c.AvailabilityZone
}

// Choices returns the class's own machine type and zone, followed by each fallback's in order. A
// field that a fallback leaves empty has the class's own value.
func (s *ProviderSpec) Choices() []Choice {
	own := Choice{s.MachineType, s.AvailabilityZone}
	choices := []Choice{own}
	for _, fallback := range s.Fallbacks {
		choices = append(choices, Choice{
			cmp.Or(fallback.MachineType, own.MachineType), cmp.Or(fallback.AvailabilityZone, own.AvailabilityZone),
		})
	}
	return choices
}

// IsExclusive reports whether the spec names NICs or volumes: they attach to one server at a time.
func (s *ProviderSpec) IsExclusive() bool {
	boot := s.BootVolume
	return s.Networking != nil && len(s.Networking.NICIDs) > 0 || len(s.Volumes) > 0 ||
		boot != nil && boot.Source != nil && boot.Source.Type == SourceVolume
}

// Networking connects a server either to a network, where the API creates a NIC for it and deletes
// the NIC with the server, or through existing NICs, which outlive the server. Exactly one of the
// two must be set.
type Networking struct {
	// NetworkID is the UUID of a network. The server gets a NIC there that is deleted with the
	// server. Default: the Secret's networkId.
	NetworkID string `json:"networkId,omitempty"`
	// NICIDs are UUIDs of existing NICs, instead of a network; at most 256. The NICs outlive the
	// server.
	NICIDs []string `json:"nicIds,omitempty"`
}

// BootVolume is the disk a server boots from.
type BootVolume struct {
	// Size is the size of the disk in gigabytes, 1 to 16000. Required unless the source is of type
	// volume: the API refuses a disk from an image or snapshot without a size.
	Size *int64 `json:"size,omitempty"`
	// PerformanceClass is the name of a performance class, such as storage_premium_perf4.
	// Default: the API's.
	PerformanceClass string `json:"performanceClass,omitempty"`
	// DeleteOnTermination deletes the disk together with its server. Default: true if the disk is
	// created from an image or snapshot; with the API's own default, false, every server would leak a
	// disk. For a source of type volume the field is not sent, and true is invalid, because it
	// would destroy an existing disk.
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Source is the image or snapshot to create the disk from, or an existing volume to use as the
	// disk. Default: the image in imageId.
	Source *BootVolumeSource `json:"source,omitempty"`
}

// Types of a BootVolumeSource.
const (
	SourceImage    = "image"
	SourceSnapshot = "snapshot"
	SourceVolume   = "volume"
)

// BootVolumeSource is the source of a boot volume: an image or snapshot, or an existing volume.
type BootVolumeSource struct {
	// Type is image, snapshot or volume. Required if id is set.
	Type string `json:"type"`
	// ID is the UUID of the image, snapshot or volume. Required if type is set.
	ID string `json:"id"`
}

// Agent configures the STACKIT server agent.
type Agent struct {
	// Provisioned determines whether the first boot installs the STACKIT server agent. Default: the
	// image's choice.
	Provisioned *bool `json:"provisioned,omitempty"`
}

// SetDefaults sets the unset fields of spec, first from the Secret, then by the defaults that
// ProviderSpec documents. An empty object is unset: templates render it.
func SetDefaults(spec *ProviderSpec, secret *Secret) {
	if spec.Region == "" {
		spec.Region = secret.Region
	}
	// The Secret's zone belongs to the Secret's region.
	if spec.AvailabilityZone == "" && spec.Region == secret.Region {
		spec.AvailabilityZone = secret.AvailabilityZone
	}
	own := spec.Networking
	if (own == nil || own.NetworkID == "" && len(own.NICIDs) == 0) && secret.NetworkID != "" {
		spec.Networking = &Networking{NetworkID: secret.NetworkID}
	}
	if spec.UserData == "" {
		spec.UserData = secret.UserData
	}
	if spec.BootVolume != nil {
		setBootVolumeDefaults(spec.BootVolume, spec.ImageID)
	}
}

func setBootVolumeDefaults(volume *BootVolume, imageID string) {
	if volume.Source != nil && *volume.Source == (BootVolumeSource{}) {
		volume.Source = nil
	}
	if volume.Source == nil && imageID != "" {
		volume.Source = &BootVolumeSource{Type: SourceImage, ID: imageID}
	}
	if volume.DeleteOnTermination == nil && volume.Source != nil && volume.Source.Type != SourceVolume {
		volume.DeleteOnTermination = new(true)
	}
}

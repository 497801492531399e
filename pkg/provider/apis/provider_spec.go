// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

// ProviderSpec is the JSON of MachineClass.providerSpec: it describes the servers of the
// class. A field that is set here beats the class's Secret.
type ProviderSpec struct {
	// Region is the STACKIT region, e.g. "eu01". Required here or in the Secret.
	// It must not change while machines of the class exist.
	Region string `json:"region,omitempty"`
	// MachineType is the name of the machine type, e.g. "g2i.4". Required.
	MachineType string `json:"machineType"`
	// ImageID is the UUID of the image to boot from: short for a
	// bootVolume.source of type image. Required unless that source is set.
	ImageID string `json:"imageId,omitempty"`
	// Labels are put on the server beside the driver's own. A key that ends in
	// "/cluster" scopes every look-up and list to that cluster.
	Labels map[string]string `json:"labels,omitempty"`
	// Networking says what the server is connected to. Required here, or a
	// networkId in the Secret.
	Networking *Networking `json:"networking,omitempty"`
	// AllowedAddresses are IP addresses or CIDRs that may pass the server's NICs
	// besides the NICs' own (e.g. the pod network). Added after the server runs.
	AllowedAddresses []string `json:"allowedAddresses,omitempty"`
	// SecurityGroups are names or UUIDs. Default: the project's default group.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// UserData is cloud-init in plain text; it replaces the Secret's userData.
	UserData string `json:"userData,omitempty"`
	// BootVolume is the disk to boot from.
	BootVolume *BootVolume `json:"bootVolume,omitempty"`
	// Volumes are UUIDs of existing volumes to attach. They outlive the server.
	Volumes []string `json:"volumes,omitempty"`
	// KeypairName is the name of an SSH key pair to put on the server.
	KeypairName string `json:"keypairName,omitempty"`
	// AvailabilityZone, e.g. "eu01-1". Default: the Secret's, if its region is
	// written with one, else chosen by the cloud.
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	// AffinityGroup is the UUID of the affinity group the server joins.
	AffinityGroup string `json:"affinityGroup,omitempty"`
	// ServiceAccountMails are attached to the server; the API takes at most one.
	ServiceAccountMails []string `json:"serviceAccountMails,omitempty"`
	// Agent configures the STACKIT server agent. Default: the image's choice.
	Agent *Agent `json:"agent,omitempty"`
	// ConfigDrive attaches a drive with the server's metadata and userData, for images that do
	// not ask the network for them. Default: the API's, false.
	ConfigDrive *bool `json:"configDrive,omitempty"`
	// Metadata is free-form metadata of the server: strings; numbers and booleans
	// are sent as text.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// Networking connects a server: to a network, in which the API makes a NIC that
// lives and dies with the server, or through NICs that exist already and stay.
// Exactly one of the two.
type Networking struct {
	// NetworkID is the UUID of a network.
	NetworkID string `json:"networkId,omitempty"`
	// NICIDs are UUIDs of existing NICs. They outlive the server.
	NICIDs []string `json:"nicIds,omitempty"`
}

// BootVolume is the disk a server boots from.
type BootVolume struct {
	// Size in gigabytes. Default: none, or that of a source of type volume. The API refuses
	// a disk from an image without one.
	Size *int64 `json:"size,omitempty"`
	// PerformanceClass, e.g. "storage_premium_perf4". Default: the API's.
	PerformanceClass string `json:"performanceClass,omitempty"`
	// DeleteOnTermination deletes the disk with its server. Default: true when
	// the disk is made from an image or snapshot (the API's own default, false,
	// leaks a disk for every server). It is not sent for a source of type
	// volume, where true is refused: it would destroy a disk somebody made.
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Source of the disk. Default: the image of ProviderSpec.ImageID.
	Source *BootVolumeSource `json:"source,omitempty"`
}

// Types of a BootVolumeSource.
const (
	SourceImage    = "image"
	SourceSnapshot = "snapshot"
	SourceVolume   = "volume"
)

// BootVolumeSource is the image or snapshot that a boot volume is made from, or an
// existing volume.
type BootVolumeSource struct {
	// Type is "image", "snapshot" or "volume".
	Type string `json:"type"`
	// ID is the UUID of the image, snapshot or volume.
	ID string `json:"id"`
}

// Agent is the STACKIT server agent.
type Agent struct {
	// Provisioned installs the agent (true) or not (false) at the first boot.
	Provisioned *bool `json:"provisioned,omitempty"`
}

// SetDefaults fills in what spec leaves open: first from the Secret, then by the
// rules that the fields of ProviderSpec document.
func SetDefaults(spec *ProviderSpec, secret *Secret) {
	if spec.Region == "" {
		spec.Region = secret.Region
	}
	// The Secret's zone belongs to the Secret's region.
	if spec.AvailabilityZone == "" && spec.Region == secret.Region {
		spec.AvailabilityZone = secret.AvailabilityZone
	}
	if spec.Networking == nil && secret.NetworkID != "" {
		spec.Networking = &Networking{NetworkID: secret.NetworkID}
	}
	if spec.UserData == "" {
		spec.UserData = secret.UserData
	}
	setBootVolumeDefaults(spec)
}

func setBootVolumeDefaults(spec *ProviderSpec) {
	if spec.ImageID != "" {
		if spec.BootVolume == nil {
			spec.BootVolume = &BootVolume{}
		}
		if spec.BootVolume.Source == nil {
			spec.BootVolume.Source = &BootVolumeSource{Type: SourceImage, ID: spec.ImageID}
		}
	}
	if volume := spec.BootVolume; volume != nil && volume.DeleteOnTermination == nil &&
		volume.Source != nil && volume.Source.Type != SourceVolume {
		yes := true
		volume.DeleteOnTermination = &yes
	}
}

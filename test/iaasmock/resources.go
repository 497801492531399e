// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"
	"time"
)

// Server is a server with all its fields, including those that the API never shows. It is
// a copy: changing it does not change the Cloud.
type Server struct {
	ID           string `json:"id"`
	ProjectID    string `json:"projectId"`
	Region       string `json:"region"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	PowerStatus  string `json:"powerStatus,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`

	Labels   map[string]string `json:"labels"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// UserData is decoded from base64; nil if none was sent.
	UserData         []byte `json:"userData,omitempty"`
	MachineType      string `json:"machineType"`
	AvailabilityZone string `json:"availabilityZone"`
	AffinityGroup    string `json:"affinityGroup,omitempty"`
	KeypairName      string `json:"keypairName,omitempty"`
	// ImageID is set only for a server that boots from its imageId without a boot volume.
	ImageID string `json:"imageId,omitempty"`
	// SecurityGroups are IDs, also where names were sent.
	SecurityGroups      []string `json:"securityGroups,omitempty"`
	ServiceAccountMails []string `json:"serviceAccountMails,omitempty"`
	// AgentProvisioned is nil if the request did not say.
	AgentProvisioned *bool `json:"agentProvisioned,omitempty"`

	// BootVolume is nil for a server with an ephemeral disk.
	BootVolume *BootVolume `json:"bootVolume,omitempty"`
	// VolumeIDs are the attached volumes, the boot volume first.
	VolumeIDs []string `json:"volumeIds"`
	// NetworkID is the networkId of the request; empty if it had nicIds.
	NetworkID string `json:"networkId,omitempty"`
	// NICIDs are the attached NICs.
	NICIDs []string `json:"nicIds"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	// LaunchedAt is zero until the server has been ACTIVE.
	LaunchedAt time.Time `json:"launchedAt,omitzero"`
	// MaintenanceWindow is nil unless one is announced.
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`
}

// MaintenanceWindow is when a server's host is worked on. Status is PLANNED or ONGOING.
type MaintenanceWindow struct {
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
	Status   string    `json:"status"`
}

// BootVolume is a server's boot volume: its ID and what CreateServer asked for.
type BootVolume struct {
	ID string `json:"id"`
	// Size is in GB.
	Size             int64  `json:"size"`
	PerformanceClass string `json:"performanceClass,omitempty"`
	// DeleteOnTermination is false unless requested, as in the API.
	DeleteOnTermination bool `json:"deleteOnTermination"`
	// SourceType is image, snapshot or volume.
	SourceType string `json:"sourceType"`
	SourceID   string `json:"sourceId"`
}

// NIC is a network interface.
type NIC struct {
	ID          string `json:"id"`
	ProjectID   string `json:"projectId"`
	Region      string `json:"region"`
	NetworkID   string `json:"networkId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// ServerID is empty while the NIC is attached to no server.
	ServerID string `json:"serverId,omitempty"`
	// IPv4 and IPv6 are empty if the network has no such prefix, and before
	// WithAddressDelay is over. In the catalogue, empty means a free address; an empty
	// MAC means a generated one.
	IPv4             string            `json:"ipv4,omitempty"`
	IPv6             string            `json:"ipv6,omitempty"`
	MAC              string            `json:"mac"`
	AllowedAddresses []string          `json:"allowedAddresses,omitempty"`
	SecurityGroups   []string          `json:"securityGroups,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	// SecurityDisabled is the opposite of the API's nicSecurity.
	SecurityDisabled bool `json:"securityDisabled,omitempty"`
	// MadeByServer is true for a NIC that CreateServer (networkId) made. It is deleted with the
	// server.
	MadeByServer bool `json:"madeByServer"`
}

// Volume is a disk.
type Volume struct {
	ID          string `json:"id"`
	ProjectID   string `json:"projectId"`
	Region      string `json:"region"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// Size is in GB.
	Size             int64  `json:"size"`
	PerformanceClass string `json:"performanceClass,omitempty"`
	AvailabilityZone string `json:"availabilityZone"`
	Bootable         bool   `json:"bootable"`
	// Status is VolumeAvailable, VolumeAttached or VolumeError.
	Status string `json:"status"`
	// ServerID is empty while the volume is attached to no server.
	ServerID string `json:"serverId,omitempty"`
	// DeleteOnTermination belongs to the attachment of a data volume. That of a
	// boot volume is in its server's BootVolume.
	DeleteOnTermination bool              `json:"deleteOnTermination,omitempty"`
	Labels              map[string]string `json:"labels,omitempty"`
	// SourceType and SourceID are the source that the volume was made from, if any.
	SourceType string `json:"sourceType,omitempty"`
	SourceID   string `json:"sourceId,omitempty"`
	// MadeByServer is true for a volume made as a server's boot volume.
	MadeByServer bool      `json:"madeByServer"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
}

// deletedWithServer reports whether the boot volume is deleted with its server. What
// STACKIT does with deleteOnTermination on a volume that existed before the server is not
// known; the mock keeps it.
func (b BootVolume) deletedWithServer() bool {
	return b.DeleteOnTermination && b.SourceType != sourceVolume
}

func (s Server) clone() Server {
	s.Labels = maps.Clone(s.Labels)
	s.Metadata = maps.Clone(s.Metadata)
	s.UserData = slices.Clone(s.UserData)
	s.SecurityGroups = slices.Clone(s.SecurityGroups)
	s.ServiceAccountMails = slices.Clone(s.ServiceAccountMails)
	s.VolumeIDs = slices.Clone(s.VolumeIDs)
	s.NICIDs = slices.Clone(s.NICIDs)
	if s.AgentProvisioned != nil {
		provisioned := *s.AgentProvisioned
		s.AgentProvisioned = &provisioned
	}
	if s.BootVolume != nil {
		boot := *s.BootVolume
		s.BootVolume = &boot
	}
	if s.MaintenanceWindow != nil {
		window := *s.MaintenanceWindow
		s.MaintenanceWindow = &window
	}
	return s
}

func (n NIC) clone() NIC {
	n.AllowedAddresses = slices.Clone(n.AllowedAddresses)
	n.SecurityGroups = slices.Clone(n.SecurityGroups)
	n.Labels = maps.Clone(n.Labels)
	return n
}

func (v Volume) clone() Volume {
	v.Labels = maps.Clone(v.Labels)
	return v
}

// detach makes the volume AVAILABLE, attached to no server.
func (v *Volume) detach(now time.Time) {
	v.ServerID, v.Status, v.UpdatedAt, v.DeleteOnTermination = "", VolumeAvailable, now, false
}

// The sources of volumes. The mock has no backups, but the document names them.
const (
	sourceImage    = "image"
	sourceSnapshot = "snapshot"
	// sourceVolume is also the source of a server that boots from an existing volume.
	sourceVolume = "volume"
	sourceBackup = "backup"
)

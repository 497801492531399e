// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

// serverView is a server as the API shows it. It has no networking and securityGroups,
// which are for requests only.
type serverView struct {
	ID               string            `json:"id"`
	Name             string            `json:"name"`
	Status           string            `json:"status"`
	PowerStatus      string            `json:"powerStatus"`
	ErrorMessage     string            `json:"errorMessage,omitempty"`
	MachineType      string            `json:"machineType"`
	AvailabilityZone string            `json:"availabilityZone"`
	AffinityGroup    string            `json:"affinityGroup,omitempty"`
	KeypairName      string            `json:"keypairName,omitempty"`
	ImageID          string            `json:"imageId,omitempty"`
	BootVolume       *bootVolumeView   `json:"bootVolume,omitempty"`
	Volumes          []string          `json:"volumes"`
	Labels           map[string]string `json:"labels"`
	Metadata         map[string]string `json:"metadata"`
	Agent            *agentView        `json:"agent,omitempty"`
	CreatedAt        time.Time         `json:"createdAt"`
	UpdatedAt        time.Time         `json:"updatedAt"`
	LaunchedAt       time.Time         `json:"launchedAt,omitzero"`

	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`
}

// detailedServerView is the server with details=true. Its NICs have no allowedAddresses:
// those are in the NIC resources.
type detailedServerView struct {
	serverView
	NICs                []serverNICView `json:"nics"`
	ServiceAccountMails []string        `json:"serviceAccountMails"`
	UserData            []byte          `json:"userData"`
}

type bootVolumeView struct {
	ID                  string `json:"id"`
	DeleteOnTermination bool   `json:"deleteOnTermination"`
}

type agentView struct {
	Provisioned bool `json:"provisioned"`
}

type serverNICView struct {
	NICID          string   `json:"nicId"`
	NetworkID      string   `json:"networkId"`
	NetworkName    string   `json:"networkName"`
	MAC            string   `json:"mac"`
	IPv4           string   `json:"ipv4,omitempty"`
	IPv6           string   `json:"ipv6,omitempty"`
	NICSecurity    bool     `json:"nicSecurity"`
	SecurityGroups []string `json:"securityGroups"`
}

// showServer returns the view of a server at t.
func (c *Cloud) showServer(s *server, t time.Time, details bool) any {
	at := s.viewAt(t)
	view := serverView{
		ID: at.ID, Name: at.Name, Status: at.Status, PowerStatus: at.PowerStatus, ErrorMessage: at.ErrorMessage,
		MachineType: at.MachineType, AvailabilityZone: at.AvailabilityZone, AffinityGroup: at.AffinityGroup,
		KeypairName: at.KeypairName, ImageID: at.ImageID, Volumes: orEmpty(at.VolumeIDs),
		Labels: at.Labels, Metadata: at.Metadata,
		CreatedAt: at.CreatedAt.UTC(), UpdatedAt: at.UpdatedAt.UTC(), LaunchedAt: at.LaunchedAt.UTC(),
		MaintenanceWindow: at.MaintenanceWindow,
	}
	if at.BootVolume != nil {
		view.BootVolume = &bootVolumeView{ID: at.BootVolume.ID, DeleteOnTermination: at.BootVolume.DeleteOnTermination}
	}
	if at.AgentProvisioned != nil {
		view.Agent = &agentView{Provisioned: *at.AgentProvisioned}
	}
	if !details {
		return view
	}
	return detailedServerView{
		serverView: view, NICs: c.showServerNICs(s, t),
		ServiceAccountMails: orEmpty(at.ServiceAccountMails), UserData: at.UserData,
	}
}

func (c *Cloud) showServerNICs(s *server, t time.Time) []serverNICView {
	nics := s.lastNICs
	if s.removedAt.IsZero() {
		nics = c.serverNICs(s)
	}
	views := make([]serverNICView, 0, len(nics))
	for _, n := range nics {
		nic := n.viewAt(t)
		view := serverNICView{
			NICID: nic.ID, NetworkID: nic.NetworkID, MAC: nic.MAC, IPv4: nic.IPv4, IPv6: nic.IPv6,
			NICSecurity: !nic.SecurityDisabled, SecurityGroups: orEmpty(nic.SecurityGroups),
		}
		if network, ok := c.networks.get(nic.NetworkID); ok {
			view.NetworkName = network.Name
		}
		views = append(views, view)
	}
	return views
}

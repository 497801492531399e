// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"reflect"
	"time"
)

// list is the form of the API's lists.
type list struct {
	Items any `json:"items"`
}

func items[T any](views []T) list { return list{Items: orEmpty(views)} }

// orEmpty returns an empty list for nil, which JSON would show as null.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func orEmptyMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

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

// extendKeepGone keeps servers deleted from now on visible to reads of this long ago.
func (c *Cloud) extendKeepGone(back time.Duration) {
	c.locked(func(time.Time) { c.keepGoneFor = max(c.keepGoneFor, back) })
}

// staleServer shows the server in the path as it was at t.
func (c *Cloud) staleServer(r *request, t time.Time, details bool) (any, *apiError) {
	servers := c.serversAt(t, func(s *server) bool { return s.ID == r.vars["serverId"] && s.in(r) })
	if len(servers) == 0 {
		return nil, notFound("server")
	}
	return c.showServer(servers[0], t, details), nil
}

// replicaLag returns the lag of the random replica that answers a list.
func (c *Cloud) replicaLag() time.Duration {
	if len(c.replicaLags) == 0 {
		return 0
	}
	return c.replicaLags[c.replicas.number(len(c.replicaLags))]
}

// showList empties the list for Fault.EmptyList and applies WithNullLists.
func (c *Cloud) showList(things list, empty bool) list {
	if empty {
		things = items([]any{})
	}
	if c.nullLists && reflect.ValueOf(things.Items).Len() == 0 {
		things.Items = nil
	}
	return things
}

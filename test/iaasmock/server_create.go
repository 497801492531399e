// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// serverPayload is the body of CreateServer.
type serverPayload struct {
	Name             string             `json:"name"`
	MachineType      string             `json:"machineType"`
	AvailabilityZone string             `json:"availabilityZone"`
	AffinityGroup    string             `json:"affinityGroup"`
	KeypairName      string             `json:"keypairName"`
	ImageID          string             `json:"imageId"`
	BootVolume       *bootVolumePayload `json:"bootVolume"`
	Volumes          []string           `json:"volumes"`
	Networking       struct {
		NetworkID string   `json:"networkId"`
		NICIDs    []string `json:"nicIds"`
	} `json:"networking"`
	SecurityGroups      []string       `json:"securityGroups"`
	ServiceAccountMails []string       `json:"serviceAccountMails"`
	UserData            []byte         `json:"userData"`
	Labels              map[string]any `json:"labels"`
	Metadata            map[string]any `json:"metadata"`
	Agent               struct {
		Provisioned *bool `json:"provisioned"`
	} `json:"agent"`
}

type bootVolumePayload struct {
	Size                int64          `json:"size"`
	PerformanceClass    string         `json:"performanceClass"`
	DeleteOnTermination bool           `json:"deleteOnTermination"`
	Source              *sourcePayload `json:"source"`
}

type sourcePayload struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func (c *Cloud) createServer(r *request) (any, *apiError) {
	var payload serverPayload
	// STACKIT calls this schema by another name than the document.
	if err := r.decode("v2CreateServer", schema.CreateServer, &payload); err != nil {
		return nil, err
	}
	var view any
	var err *apiError
	c.locked(func(now time.Time) {
		creation := &serverCreation{cloud: c, request: r, payload: payload, now: now}
		if err = creation.resolve(); err != nil {
			return
		}
		shown := c.otherServer(r)
		if shown == nil || r.fault.Executed {
			created := creation.create()
			shown = cmp.Or(shown, created)
		}
		view = c.showServer(shown, now, false)
		if r.fault.Duplicate {
			creation.repeat()
		}
	})
	return view, err
}

// serverCreation is one CreateServer. resolve finds everything that the request names and
// may refuse it; create makes the server and cannot fail. What the request names and the
// server cannot have is left out: failure says why, and the server ends in ERROR.
type serverCreation struct {
	cloud   *Cloud
	request *request
	payload serverPayload
	now     time.Time

	server  Server
	network *network
	nics    []*nic
	boot    *Volume // an existing one, or a new one if bootIsNew
	volumes []*Volume

	bootIsNew bool
	failure   string
}

func (o *serverCreation) resolve() *apiError {
	o.server = Server{
		ID: o.cloud.newID(), ProjectID: o.request.project(), Region: o.request.region(),
		Name: o.payload.Name, MachineType: o.payload.MachineType, AffinityGroup: o.payload.AffinityGroup,
		KeypairName: o.payload.KeypairName, UserData: o.payload.UserData,
		ServiceAccountMails: o.payload.ServiceAccountMails, AgentProvisioned: o.payload.Agent.Provisioned,
		CreatedAt: o.now, UpdatedAt: o.now,
	}
	for _, step := range []func() *apiError{
		o.resolveLabels, o.resolveCatalogue, o.resolveSecurityGroups, o.resolveNetworking,
		o.resolveBoot, o.resolveVolumes, o.resolveZone, o.resolveQuota,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *serverCreation) resolveLabels() (err *apiError) {
	if o.server.Labels, err = mergeLabels(nil, o.payload.Labels); err != nil {
		return err
	}
	if o.request.fault.DropLabels {
		clear(o.server.Labels)
	}
	if o.cloud.serverLabels {
		provisioned := o.payload.Agent.Provisioned != nil && *o.payload.Agent.Provisioned
		o.server.Labels["stackit_project_id"] = o.server.ProjectID
		o.server.Labels["provisionSTACKITServerAgent"] = fmt.Sprint(provisioned)
	}
	o.server.Metadata, err = mergeMetadata(nil, o.payload.Metadata)
	return err
}

func (o *serverCreation) resolveCatalogue() *apiError {
	if _, ok := o.cloud.findMachineType(o.payload.MachineType); !ok {
		// Source: clients of STACKIT have seen a 400 with this message.
		return badRequest("machine type is not valid")
	}
	if name := o.payload.KeypairName; name != "" {
		if _, ok := o.cloud.findKeypair(name); !ok {
			if err := o.cloud.unconfirmed(noSuch("keypair")); err != nil {
				return err
			}
		}
	}
	if id := o.payload.AffinityGroup; id != "" {
		if _, ok := o.cloud.findAffinityGroup(o.request, id); !ok {
			return o.cloud.unconfirmed(noSuch("affinity group"))
		}
	}
	return nil
}

// resolveSecurityGroups leaves out unknown groups.
func (o *serverCreation) resolveSecurityGroups() *apiError {
	groups, err := o.cloud.once(o.payload.SecurityGroups)
	if err != nil {
		return err
	}
	for _, nameOrID := range groups {
		group, ok := o.cloud.findSecurityGroup(o.request, nameOrID)
		if !ok {
			if err := o.cloud.unconfirmed(badRequest("Security group %s not found for project %s.", nameOrID, o.server.ProjectID)); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(o.server.SecurityGroups, group.ID) {
			o.server.SecurityGroups = append(o.server.SecurityGroups, group.ID)
		}
	}
	return nil
}

// noNetwork is the errorMessage of a server without its network.
const noNetwork = "Failed to allocate the network(s), not rescheduling."

func (o *serverCreation) resolveNetworking() *apiError {
	if id := o.payload.Networking.NetworkID; id != "" {
		o.server.NetworkID = id
		network, ok := o.cloud.findNetwork(o.request, id)
		switch {
		case !ok:
			return o.cannot(noNetwork, noSuch("network"))
		}
		o.network = network
		return nil
	}
	ids, err := o.cloud.once(o.payload.Networking.NICIDs)
	for _, id := range ids {
		nic, ok := o.cloud.findNIC(o.request, id)
		switch {
		case !ok:
			err = o.cannot(noNetwork, noSuch("network interface"))
		case nic.ServerID != "":
			err = o.cannot(noNetwork, conflict())
		default:
			o.nics = append(o.nics, nic)
		}
		if err != nil {
			break
		}
	}
	return err
}

func (o *serverCreation) resolveVolumes() *apiError {
	ids, err := o.cloud.once(o.payload.Volumes)
	for _, id := range ids {
		volume, ok := o.cloud.findVolume(o.request, id)
		switch {
		case !ok:
			err = o.cannot("volume "+id+" not found.", noSuch("volume"))
		case volume.Status != VolumeAvailable || volume == o.boot:
			err = o.cannot("volume "+id+" is not available.", conflict())
		default:
			o.volumes = append(o.volumes, volume)
		}
		if err != nil {
			break
		}
	}
	return err
}

// resolveZone sets the zone: the requested one, else the existing boot volume's, else
// <region>-m, else the region's first zone.
func (o *serverCreation) resolveZone() *apiError {
	zones := o.cloud.catalogue.Regions[o.server.Region]
	zone := o.payload.AvailabilityZone
	if o.boot != nil && !o.bootIsNew {
		zone = cmp.Or(zone, o.boot.AvailabilityZone)
	}
	if zone == "" {
		zone = o.server.Region + "-m"
		if !slices.Contains(zones, zone) && len(zones) > 0 {
			zone = zones[0]
		}
	}
	o.server.AvailabilityZone = zone
	return o.checkZone(zone, zones)
}

// checkZone checks that the region has the zone and that it is the existing boot
// volume's. Otherwise the server finds no host.
func (o *serverCreation) checkZone(zone string, zones []string) (err *apiError) {
	switch {
	case o.payload.AvailabilityZone != "" && !slices.Contains(zones, zone):
		err = o.cloud.unconfirmed(badRequest("The requested availability zone is not available"))
	case o.boot != nil && !o.bootIsNew && o.boot.AvailabilityZone != "" && zone != o.boot.AvailabilityZone:
		err = o.cloud.unconfirmed(badRequest("The requested availability zone %s does not match the availability zone %s of the boot volume",
			zone, o.boot.AvailabilityZone))
	default:
		return nil
	}
	o.failure = cmp.Or(o.failure, noHost)
	return err
}

// cannot records why the server cannot have what the request names. It returns the
// refusal WithUnconfirmedRefusals.
func (o *serverCreation) cannot(reason string, refusal *apiError) *apiError {
	o.fail(reason)
	return o.cloud.unconfirmed(refusal)
}

// fail makes the server end in ERROR, with the first reason given.
func (o *serverCreation) fail(reason string) {
	o.failure = cmp.Or(o.failure, fmt.Sprintf("Build of instance %s aborted: %s", o.server.ID, reason))
}

func duplicateItem(id string) *apiError {
	return badRequest("Duplicate items in the list: '%s'", id)
}

// once returns the list without duplicates.
func (c *Cloud) once(ids []string) ([]string, *apiError) {
	seen, kept := make(map[string]bool, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		if seen[id] {
			if err := c.unconfirmed(duplicateItem(id)); err != nil {
				return nil, err
			}
			continue
		}
		seen[id], kept = true, append(kept, id)
	}
	return kept, nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
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
	// The service names this schema otherwise than the document does.
	if err := r.decode("v2CreateServer", schema.CreateServer, &payload); err != nil {
		return nil, err
	}
	var view any
	var err *apiError
	c.locked(func(now time.Time) {
		order := &serverOrder{cloud: c, request: r, payload: payload, now: now}
		if err = order.resolve(); err != nil {
			return
		}
		s := order.place()
		view = c.showServer(s, now, false)
		if r.fault.Duplicate {
			order.repeat()
		}
	})
	return view, err
}

// serverOrder is a CreateServer on its way: resolve finds everything it names
// and may refuse it, place carries it out and cannot fail.
type serverOrder struct {
	cloud   *Cloud
	request *request
	payload serverPayload
	now     time.Time

	server  Server
	network *network
	nics    []*nic
	boot    *Volume // an existing one, or to be made if bootIsNew
	volumes []*Volume

	bootIsNew bool
}

func (o *serverOrder) resolve() *apiError {
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

func (o *serverOrder) resolveLabels() (err *apiError) {
	if o.server.Labels, err = mergeLabels(nil, o.payload.Labels); err != nil {
		return err
	}
	if o.cloud.serverLabels {
		provisioned := o.payload.Agent.Provisioned != nil && *o.payload.Agent.Provisioned
		o.server.Labels["stackit_project_id"] = o.server.ProjectID
		o.server.Labels["provisionSTACKITServerAgent"] = fmt.Sprint(provisioned)
	}
	o.server.Metadata, err = mergeMetadata(nil, o.payload.Metadata)
	return err
}

func (o *serverOrder) resolveCatalogue() *apiError {
	if _, ok := o.cloud.findMachineType(o.payload.MachineType); !ok {
		return badRequest("machine type is not valid")
	}
	if o.payload.KeypairName != "" {
		if _, ok := o.cloud.findKeypair(o.payload.KeypairName); !ok {
			return notFound("keypair")
		}
	}
	if o.payload.AffinityGroup != "" {
		if _, ok := o.cloud.findAffinityGroup(o.request, o.payload.AffinityGroup); !ok {
			return notFound("affinity group")
		}
	}
	return nil
}

func (o *serverOrder) resolveSecurityGroups() *apiError {
	if id, twice := firstDuplicate(o.payload.SecurityGroups); twice {
		return duplicateItem(id)
	}
	for _, nameOrID := range o.payload.SecurityGroups {
		group, ok := o.cloud.findSecurityGroup(o.request, nameOrID)
		if !ok {
			return badRequest("Security group %s not found for project %s.", nameOrID, o.server.ProjectID)
		}
		o.server.SecurityGroups = append(o.server.SecurityGroups, group.ID)
	}
	return nil
}

func (o *serverOrder) resolveNetworking() *apiError {
	if id := o.payload.Networking.NetworkID; id != "" {
		network, err := o.cloud.networkOf(o.request, id)
		if err == nil && network.change == networkDeleting {
			err = conflict()
		}
		o.network, o.server.NetworkID = network, id
		return err
	}
	if id, twice := firstDuplicate(o.payload.Networking.NICIDs); twice {
		return duplicateItem(id)
	}
	for _, id := range o.payload.Networking.NICIDs {
		nic, err := o.cloud.nicOf(o.request, id)
		if err != nil {
			return err
		}
		if nic.ServerID != "" {
			return conflict()
		}
		o.nics = append(o.nics, nic)
	}
	return nil
}

func (o *serverOrder) resolveVolumes() *apiError {
	if id, twice := firstDuplicate(o.payload.Volumes); twice {
		return duplicateItem(id)
	}
	for _, id := range o.payload.Volumes {
		volume, err := o.cloud.volumeOf(o.request, id)
		if err != nil {
			return err
		}
		if volume.ServerID != "" || volume == o.boot {
			return conflict()
		}
		o.volumes = append(o.volumes, volume)
	}
	return nil
}

// resolveZone: a zone not asked for is the existing boot volume's, otherwise the
// metro zone.
func (o *serverOrder) resolveZone() *apiError {
	zones := o.cloud.catalogue.Regions[o.server.Region]
	zone := o.payload.AvailabilityZone
	if zone != "" && !slices.Contains(zones, zone) {
		return badRequest("The requested availability zone is not available")
	}
	if o.boot != nil && !o.bootIsNew && o.boot.AvailabilityZone != "" {
		if zone != "" && zone != o.boot.AvailabilityZone {
			return badRequest("The requested availability zone %s does not match the availability zone %s of the boot volume",
				zone, o.boot.AvailabilityZone)
		}
		zone = o.boot.AvailabilityZone
	}
	if zone == "" {
		zone = o.server.Region + "-m"
		if !slices.Contains(zones, zone) && len(zones) > 0 {
			zone = zones[0]
		}
	}
	o.server.AvailabilityZone = zone
	return nil
}

// repeat carries the same order out again, if that is still possible.
func (o *serverOrder) repeat() {
	again := &serverOrder{cloud: o.cloud, request: o.request, payload: o.payload, now: o.now}
	if again.resolve() == nil {
		again.place()
	}
}

func (o *serverOrder) place() *server {
	c, fault := o.cloud, o.request.fault
	boot := outcome{at: o.now.Add(c.bootDuration + c.boots.spread(c.bootSpread, DelayUniform)), status: StatusActive}
	if fault.FinalStatus != "" {
		boot.status, boot.message = fault.FinalStatus, fault.ErrorMessage
	}
	hostless := !c.hasRoom(o.server.MachineType, o.server.AvailabilityZone, nil)
	if hostless {
		boot.status, boot.message = StatusError, noHost
	}
	if err := o.placeNICs(); err != nil {
		boot.status = StatusError
		boot.message = fmt.Sprintf("Build of instance %s aborted: Failed to allocate the network(s), not rescheduling.", o.server.ID)
	}
	if fault.NeverBoots {
		boot = outcome{}
	}
	o.placeVolumes()
	c.totals.ServersCreated++
	placed := &server{Server: o.server, number: c.totals.ServersCreated, hostless: hostless}
	placed.lead(boot)
	c.servers.put(placed.ID, placed)
	return placed
}

func (o *serverOrder) placeNICs() error {
	if o.network != nil {
		nic := &nic{
			NIC: NIC{
				ID: o.cloud.newID(), ProjectID: o.server.ProjectID, Region: o.server.Region,
				NetworkID: o.network.ID, SecurityGroups: o.server.SecurityGroups, MadeByServer: true,
			},
			addressedAt: o.now.Add(o.cloud.addressDelay),
		}
		if err := o.network.assign(&nic.NIC); err != nil {
			return err
		}
		o.cloud.nics.put(nic.ID, nic)
		o.cloud.totals.NICsCreated++
		o.nics = append(o.nics, nic)
	}
	for _, nic := range o.nics {
		nic.ServerID = o.server.ID
		o.server.NICIDs = append(o.server.NICIDs, nic.ID)
	}
	return nil
}

func (o *serverOrder) placeVolumes() {
	if o.boot != nil {
		if o.bootIsNew {
			o.boot.AvailabilityZone, o.boot.CreatedAt = o.server.AvailabilityZone, o.now
			o.cloud.volumes.put(o.boot.ID, o.boot)
			o.cloud.totals.VolumesCreated++
		}
		o.volumes = slices.Insert(o.volumes, 0, o.boot)
	}
	for _, volume := range o.volumes {
		volume.ServerID, volume.Status, volume.UpdatedAt = o.server.ID, VolumeAttached, o.now
		o.server.VolumeIDs = append(o.server.VolumeIDs, volume.ID)
	}
}

func duplicateItem(id string) *apiError {
	return badRequest("Duplicate items in the list: '%s'", id)
}

func firstDuplicate(ids []string) (string, bool) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return id, true
		}
		seen[id] = true
	}
	return "", false
}

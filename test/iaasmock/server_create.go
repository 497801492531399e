// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

func (c *Cloud) createServer(r *request) (view any, err *apiError) {
	var payload serverPayload
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		creation := &serverCreation{cloud: c, request: r, payload: payload, now: now}
		if err = creation.resolve(); err == nil {
			view = c.showServer(creation.create(), now, false)
		}
	})
	return view, err
}

func (o *serverCreation) resolve() *apiError {
	o.server = Server{
		ID: o.cloud.random.uuid(), ProjectID: o.request.project(), Region: o.request.region(),
		Name: o.payload.Name, MachineType: o.payload.MachineType, AffinityGroup: o.payload.AffinityGroup,
		KeypairName: o.payload.KeypairName, UserData: o.payload.UserData,
		ServiceAccountMails: o.payload.ServiceAccountMails, AgentProvisioned: o.payload.Agent.Provisioned,
		CreatedAt: o.now,
	}
	if err := o.resolveLabels(); err != nil {
		return err
	}
	_, ok := o.cloud.findResource(o.request, KindMachineType, o.payload.MachineType)
	if !ok {
		// Source: clients of STACKIT have seen a 400 with this message.
		return badRequest("machine type is not valid")
	}
	if name := o.payload.KeypairName; name != "" {
		if _, ok := o.cloud.findResource(o.request, KindKeypair, name); !ok {
			// Source: issue 580 of terraform-provider-stackit (2024-11-05) and a test run of
			// cluster-api-provider-stackit (2026-08-07) have the message.
			return newError(http.StatusNotFound, "resource not found: keypair")
		}
	}
	o.resolveSecurityGroups()
	o.resolveNetworking()
	if err := o.resolveBoot(); err != nil {
		return err
	}
	o.resolveVolumes()
	o.resolveZone()
	return nil
}

// create creates the server with its NIC and volumes.
func (o *serverCreation) create() *server {
	c, fault := o.cloud, o.request.fault
	boot := transition{at: o.now.Add(c.bootDuration + c.random.spread(c.bootSpread)), status: StatusActive}
	if fault.FinalStatus != "" {
		boot.status, boot.message = fault.FinalStatus, fault.ErrorMessage
	}
	if o.addNICs() != nil {
		o.fail(noNetwork)
	}
	if o.failure != "" {
		boot.status, boot.message = StatusError, o.failure
	}
	if fault.NeverBoots {
		boot = transition{}
	}
	o.addVolumes()
	c.totals.ServersCreated++
	created := &server{Server: o.server, number: c.totals.ServersCreated}
	created.schedule(boot)
	c.servers.put(created.ID, created)
	return created
}

func (o *serverCreation) addNICs() error {
	if o.network != nil {
		nic := &nic{
			NIC: NIC{
				ID: o.cloud.random.uuid(), ProjectID: o.server.ProjectID, Region: o.server.Region,
				NetworkID: o.network.ID, SecurityGroups: o.server.SecurityGroups, MadeByServer: true,
			},
			listedAt: o.now.Add(o.cloud.nicDelay), addressedAt: o.now.Add(o.cloud.addressDelay),
		}
		if err := o.network.assign(&nic.NIC); err != nil {
			return err
		}
		o.cloud.nics.put(nic.ID, nic)
		o.nics = append(o.nics, nic)
	}
	for _, nic := range o.nics {
		nic.ServerID = o.server.ID
		o.server.NICIDs = append(o.server.NICIDs, nic.ID)
	}
	return nil
}

func (o *serverCreation) addVolumes() {
	if o.boot != nil {
		if o.bootIsNew {
			o.boot.AvailabilityZone, o.boot.CreatedAt = o.server.AvailabilityZone, o.now
			o.cloud.volumes.put(o.boot.ID, o.boot)
		}
		o.volumes = slices.Insert(o.volumes, 0, o.boot)
	}
	for _, volume := range o.volumes {
		volume.ServerID, volume.Status = o.server.ID, volumeAttached
		o.server.VolumeIDs = append(o.server.VolumeIDs, volume.ID)
	}
}

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

// serverCreation is one CreateServer. resolve finds all resources in the request and may refuse it;
// create creates the server and cannot fail. Resources that the server cannot have are left out:
// failure gives the reason, and the server ends in ERROR.
type serverCreation struct {
	cloud   *Cloud
	request *request
	payload serverPayload
	now     time.Time

	server  Server
	network *network
	nics    []*nic
	boot    *Volume // an existing volume, or a new one if bootIsNew
	volumes []*Volume

	bootIsNew bool
	failure   string
}

// fail makes the server end in ERROR. The first reason wins.
func (o *serverCreation) fail(reason string) {
	o.failure = cmp.Or(o.failure, fmt.Sprintf("Build of instance %s aborted: %s", o.server.ID, reason))
}

func (o *serverCreation) resolveLabels() (err *apiError) {
	if o.server.Labels, err = mergeLabels(nil, o.payload.Labels); err != nil {
		return err
	}
	o.server.Metadata, err = mergeTexts(nil, o.payload.Metadata)
	return err
}

// resolveSecurityGroups leaves out unknown groups.
func (o *serverCreation) resolveSecurityGroups() {
	for _, nameOrID := range o.payload.SecurityGroups {
		if group, ok := o.cloud.findSecurityGroup(o.request, nameOrID); ok {
			o.server.SecurityGroups = append(o.server.SecurityGroups, group)
		}
	}
}

// noNetwork is the errorMessage of a server without its network.
const noNetwork = "Failed to allocate the network(s), not rescheduling."

func (o *serverCreation) resolveNetworking() {
	if id := o.payload.Networking.NetworkID; id != "" {
		o.server.NetworkID = id
		network, ok := found(o.request, &o.cloud.networks, id)
		if !ok {
			o.fail(noNetwork)
			return
		}
		o.network = network
		return
	}
	for _, id := range o.payload.Networking.NICIDs {
		nic, ok := found(o.request, &o.cloud.nics, id)
		if !ok || nic.ServerID != "" {
			o.fail(noNetwork)
			continue
		}
		o.nics = append(o.nics, nic)
	}
}

func (o *serverCreation) resolveVolumes() {
	for _, id := range o.payload.Volumes {
		volume, ok := found(o.request, &o.cloud.volumes, id)
		switch {
		case !ok:
			o.fail("volume " + id + " not found.")
		case volume.Status != volumeAvailable || volume == o.boot:
			o.fail("volume " + id + " is not available.")
		default:
			o.volumes = append(o.volumes, volume)
		}
	}
}

// resolveZone sets the zone: the requested zone, else the existing boot volume's, else the region's last,
// <region>-m. If the region lacks the zone, or it is not the existing boot volume's, the server finds
// no host.
func (o *serverCreation) resolveZone() {
	zones, disk := o.cloud.catalogue.Regions[o.server.Region], ""
	if o.boot != nil && !o.bootIsNew {
		disk = o.boot.AvailabilityZone
	}
	zone := cmp.Or(o.payload.AvailabilityZone, disk, zones[len(zones)-1])
	o.server.AvailabilityZone = zone
	if !slices.Contains(zones, zone) || disk != "" && zone != disk {
		o.failure = cmp.Or(o.failure, noHost)
	}
}

// noHost is the errorMessage of a server without a host. CreateServer succeeds; the server
// shows the message when it ends in ERROR.
const noHost = "No valid host was found. There are not enough hosts available."

// resolveBoot finds the server's boot source: an image on the machine type's own disk, or a volume. imageId is
// also the source of a boot volume without a source: a driver in production sends both.
func (o *serverCreation) resolveBoot() *apiError {
	boot, imageID := o.payload.BootVolume, o.payload.ImageID
	if imageID != "" && boot == nil {
		o.server.ImageID = imageID
		if _, problem := o.cloud.sourceSize(o.request, sourceImage, imageID); problem != "" {
			o.fail(problem)
		}
		return nil
	}
	if imageID != "" && boot.Source != nil {
		// Source: corioliskraft/cluster-api-provider-stackit notes that the two conflict, and its fix
		// (todo.md); terraform-provider-stackit sends only one of the two. The text is the mock's.
		return badRequest("imageId conflicts with the source of the boot volume")
	}
	if imageID != "" {
		boot.Source = &sourcePayload{Type: sourceImage, ID: imageID}
	}
	if boot == nil || boot.Source == nil {
		o.fail("boot device is missing.")
		return nil
	}
	switch boot.Source.Type {
	case sourceVolume:
		o.bootFromVolume(boot)
		return nil
	case sourceImage, sourceSnapshot:
		return o.bootFromNewVolume(boot)
	default:
		// Source: the document: possible values of BootVolumeSourceTypes; snapshots are from the public
		// STACKIT provider for machine-controller-manager.
		return badRequest("source type %q is not supported", boot.Source.Type)
	}
}

func (o *serverCreation) bootFromVolume(boot *bootVolumePayload) {
	id := boot.Source.ID
	volume, ok := found(o.request, &o.cloud.volumes, id)
	switch {
	case !ok:
		o.fail("volume " + id + " not found.")
		return
	case volume.Status != volumeAvailable:
		o.fail("volume " + id + " is not available.")
		return
	case !volume.Bootable:
		o.fail("Block Device " + id + " is not bootable.")
		return
	}
	o.boot = volume
	o.server.BootVolume = &BootVolume{
		ID: id, Size: volume.Size, PerformanceClass: volume.PerformanceClass,
		DeleteOnTermination: boot.DeleteOnTermination, SourceType: sourceVolume, SourceID: id,
	}
}

func (o *serverCreation) bootFromNewVolume(boot *bootVolumePayload) *apiError {
	if boot.Size < 1 || boot.Size > maxVolumeSize {
		// Source: clients of STACKIT have seen a 400 with this message; the document:
		// CreateVolumePayload's description has the largest size.
		return badRequest("boot device size is not valid or missing")
	}
	minimum, problem := o.cloud.sourceSize(o.request, boot.Source.Type, boot.Source.ID)
	if problem == "" && boot.Size < minimum {
		problem = fmt.Sprintf("a volume of %d GB is too small for its source.", boot.Size)
	}
	if problem != "" {
		o.fail(problem)
		return nil
	}
	o.bootIsNew = true
	o.boot = &Volume{
		ID: o.cloud.random.uuid(), ProjectID: o.server.ProjectID, Region: o.server.Region, Bootable: true,
		Size: boot.Size, PerformanceClass: boot.PerformanceClass, MadeByServer: true,
	}
	o.server.BootVolume = &BootVolume{
		ID: o.boot.ID, Size: boot.Size, PerformanceClass: boot.PerformanceClass,
		DeleteOnTermination: boot.DeleteOnTermination, SourceType: boot.Source.Type, SourceID: boot.Source.ID,
	}
	return nil
}

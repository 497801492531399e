// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

func (c *Cloud) createServer(r *request) (any, *apiError) {
	var payload serverPayload
	// STACKIT calls this schema by another name than the document.
	if err := r.decode(&payload); err != nil {
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

// otherServer is the server that the answer shows in place of the new one; nil for none.
func (c *Cloud) otherServer(r *request) *server {
	wanted := r.fault.OtherServer
	if wanted == "" {
		return nil
	}
	var fitting []*server
	for s := range c.servers.each() {
		if r.sees(s) && (wanted == fault.AnyServer || wanted == s.Name || wanted == s.ID) {
			fitting = append(fitting, s)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	return fitting[c.others.number(len(fitting))]
}

// repeat creates a second server from the same request, if that is possible without a
// failure.
func (o *serverCreation) repeat() {
	again := &serverCreation{cloud: o.cloud, request: o.request, payload: o.payload, now: o.now}
	if again.resolve() == nil && again.failure == "" {
		again.create()
	}
}

// create makes the server with its NIC and volumes.
func (o *serverCreation) create() *server {
	c, fault := o.cloud, o.request.fault
	boot := transition{at: o.now.Add(c.bootDuration + c.boots.spread(c.bootSpread, DelayUniform)), status: StatusActive}
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

func (o *serverCreation) addVolumes() {
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

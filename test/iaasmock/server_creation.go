// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"slices"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// otherServer is the server that the answer shows in place of the new one; nil for none.
func (c *Cloud) otherServer(r *request) *server {
	wanted := r.fault.OtherServer
	if wanted == "" {
		return nil
	}
	var fitting []*server
	for s := range c.servers.each() {
		if s.in(r) && (wanted == fault.AnyServer || wanted == s.Name || wanted == s.ID) {
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
	if !c.hasRoom(o.server.MachineType, o.server.AvailabilityZone, nil) {
		o.failure = cmp.Or(o.failure, noHost)
	}
	withoutCapacity := o.failure != ""
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
	created := &server{Server: o.server, number: c.totals.ServersCreated, withoutCapacity: withoutCapacity}
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
	"slices"
)

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
		if _, ok := o.cloud.shelved(o.request, kindKeypair, name); !ok {
			if err := o.cloud.unconfirmed(noSuch("keypair")); err != nil {
				return err
			}
		}
	}
	if id := o.payload.AffinityGroup; id != "" {
		if _, ok := o.cloud.shelved(o.request, kindAffinityGroup, id); !ok {
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
		if !slices.Contains(o.server.SecurityGroups, group) {
			o.server.SecurityGroups = append(o.server.SecurityGroups, group)
		}
	}
	return nil
}

// noNetwork is the errorMessage of a server without its network.
const noNetwork = "Failed to allocate the network(s), not rescheduling."

func (o *serverCreation) resolveNetworking() *apiError {
	if id := o.payload.Networking.NetworkID; id != "" {
		o.server.NetworkID = id
		network, ok := found(o.request, &o.cloud.networks, id)
		if !ok {
			return o.cannot(noNetwork, noSuch("network"))
		}
		o.network = network
		return nil
	}
	ids, err := o.cloud.once(o.payload.Networking.NICIDs)
	for _, id := range ids {
		nic, ok := found(o.request, &o.cloud.nics, id)
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
		volume, ok := found(o.request, &o.cloud.volumes, id)
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

// noHost is the errorMessage of a server without a host. CreateServer succeeds; the server
// shows the message when it ends in ERROR.
const noHost = "No valid host was found. There are not enough hosts available."

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

// resolveQuota counts what the server adds: an existing boot volume and the NICs of
// nicIds are counted already.
func (o *serverCreation) resolveQuota() *apiError {
	machineType, _ := o.cloud.findMachineType(o.server.MachineType)
	need := quotaNeed{vcpus: machineType.VCPUs, ram: machineType.RAM}
	if o.network != nil {
		need.nics = 1
	}
	if o.bootIsNew {
		need.volumes, need.gigabytes = 1, o.boot.Size
	}
	return o.cloud.allowServer(o.server.ProjectID, o.server.Region, need)
}

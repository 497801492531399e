// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// foreign is what is in the project and nobody's of ours: it has to stay as it is.
type foreign struct {
	servers map[string]iaasmock.Server
	nics    map[string]iaasmock.NIC
	volumes map[string]iaasmock.Volume
	// api is how somebody else asks the cloud.
	api iaas.DefaultAPI
}

// nic makes a NIC that no server has.
func (f *foreign) nic(network, name string, labels map[string]any, withAllowed bool) (id string) {
	payload := iaas.CreateNicPayload{Name: &name, Labels: labels}
	if withAllowed {
		address := allowed
		payload.AllowedAddresses = []iaas.AllowedAddressesInner{iaas.StringAsAllowedAddressesInner(&address)}
	}
	nic, err := f.api.CreateNic(context.Background(), ownPlace.project, ownPlace.region, network).CreateNicPayload(payload).Execute()
	if err != nil {
		panic(fmt.Errorf("NIC %s: %w", name, err))
	}
	return nic.GetId()
}

// volume makes a volume that no server has.
func (f *foreign) volume(name string, labels map[string]any) (id string) {
	size := int64(20)
	payload := iaas.CreateVolumePayload{
		Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone, Labels: labels,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
	}
	volume, err := f.api.CreateVolume(context.Background(), ownPlace.project, ownPlace.region).CreateVolumePayload(payload).Execute()
	if err != nil {
		panic(fmt.Errorf("volume %s: %w", name, err))
	}
	return volume.GetId()
}

// serverOf makes a server of a NIC and a volume, as the OpenStack provider does.
func (f *foreign) serverOf(name, nic, volume string, tags map[string]any) (id string) {
	server, err := f.api.CreateServer(context.Background(), ownPlace.project, ownPlace.region).CreateServerPayload(iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Metadata: tags,
		BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Type: "volume", Id: volume}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nic}}},
	}).Execute()
	if err != nil {
		panic(fmt.Errorf("server %s: %w", name, err))
	}
	return server.GetId()
}

func byID(cloud *iaasmock.Cloud) (servers map[string]iaasmock.Server, nics map[string]iaasmock.NIC, volumes map[string]iaasmock.Volume) {
	servers, nics, volumes = map[string]iaasmock.Server{}, map[string]iaasmock.NIC{}, map[string]iaasmock.Volume{}
	for _, server := range cloud.Servers() {
		servers[server.ID] = server
	}
	for _, nic := range cloud.NICs() {
		nics[nic.ID] = nic
	}
	for _, volume := range cloud.Volumes() {
		volumes[volume.ID] = volume
	}
	return servers, nics, volumes
}

// changes are in what way these things are not as they were. onlyForeign says that nothing
// else may be there.
func (f *foreign) changes(cloud *iaasmock.Cloud, onlyForeign bool) []string {
	servers, nics, volumes := byID(cloud)
	return slices.Concat(
		compare("server", f.servers, servers, onlyForeign),
		compare("NIC", f.nics, nics, onlyForeign),
		compare("volume", f.volumes, volumes, onlyForeign))
}

func compare[T any](kind string, before, now map[string]T, only bool) (changes []string) {
	for id, was := range before {
		if is, there := now[id]; !there {
			changes = append(changes, fmt.Sprintf("foreign %s %s is gone", kind, id))
		} else if !reflect.DeepEqual(was, is) {
			changes = append(changes, fmt.Sprintf("foreign %s %s was %+v, is %+v", kind, id, was, is))
		}
	}
	for id := range now {
		if _, known := before[id]; only && !known {
			changes = append(changes, fmt.Sprintf("%s %s is left", kind, id))
		}
	}
	return changes
}

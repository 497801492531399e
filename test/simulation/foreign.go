// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// foreign is the project's resources that are not ours: they must not change.
type foreign struct {
	// things are the servers, NICs and volumes, by ID.
	things map[string]any
	// api is another user's client of the cloud.
	api iaas.DefaultAPI
}

// nic creates a NIC without a server.
func (f *foreign) nic(network, name string, labels map[string]any, withAllowed bool) (id string) {
	payload := iaas.CreateNicPayload{Name: &name, Labels: labels}
	if withAllowed {
		address := allowed
		payload.AllowedAddresses = []iaas.AllowedAddressesInner{iaas.StringAsAllowedAddressesInner(&address)}
	}
	request := f.api.CreateNic(context.Background(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, network)
	return made(request.CreateNicPayload(payload).Execute())
}

// volume creates a volume without a server.
func (f *foreign) volume(name string, labels map[string]any) (id string) {
	size := int64(20)
	request := f.api.CreateVolume(context.Background(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return made(request.CreateVolumePayload(iaas.CreateVolumePayload{
		Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone, Labels: labels,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
	}).Execute())
}

// serverOf creates a server with a NIC and a volume, as the OpenStack provider does.
func (f *foreign) serverOf(name, nic, volume string, tags map[string]any) (id string) {
	return f.server(iaas.CreateServerPayload{
		Name: name, Metadata: tags,
		BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Type: "volume", Id: volume}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nic}}},
	})
}

func (f *foreign) server(payload iaas.CreateServerPayload) (id string) {
	payload.MachineType = iaasmock.DefaultMachineType
	request := f.api.CreateServer(context.Background(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return made(request.CreateServerPayload(payload).Execute())
}

// made returns the ID of a created resource.
func made[T interface{ GetId() string }](thing T, err error) string {
	if err != nil {
		panic(err)
	}
	return thing.GetId()
}

// thingsIn returns all servers, NICs and volumes, by ID.
func thingsIn(cloud *iaasmock.Cloud) map[string]any {
	things := map[string]any{}
	for _, server := range cloud.Servers() {
		things[server.ID] = server
	}
	for _, nic := range cloud.NICs() {
		things[nic.ID] = nic
	}
	for _, volume := range cloud.Volumes() {
		things[volume.ID] = "volume " + volume.Name // its attachment changes with its server
	}
	return things
}

// changes describes how these resources differ from their initial state. onlyForeign means that nothing else
// may exist.
func (f *foreign) changes(cloud *iaasmock.Cloud, onlyForeign bool) (changes []string) {
	now := thingsIn(cloud)
	for id, was := range f.things {
		if is, there := now[id]; !there {
			changes = append(changes, fmt.Sprintf("%T %s of another owner is gone", was, id))
		} else if !reflect.DeepEqual(was, is) {
			changes = append(changes, fmt.Sprintf("%T %s of another owner has changed: it was %+v, is %+v", was, id, was, is))
		}
	}
	for id, is := range now {
		if _, known := f.things[id]; onlyForeign && !known {
			changes = append(changes, fmt.Sprintf("%T %s still exists: must be gone with the last Machine", is, id))
		}
	}
	return changes
}

// populate fills the project with servers that look much like ours.
func (w *world) populate(key []byte) {
	f := &w.foreign
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: endpoint}, Transport: direct{w.cloud}}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
	if err != nil {
		panic(err)
	}
	f.api = session.API
	machine := machineName(0)
	for _, labels := range []map[string]any{
		nil,
		{"kubernetes.io/role": "bastion"},
		{clusterLabel: "shoot-z", provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: classA},
		{clusterLabel: "shoot-a", provider.StackitMachineLabel: "by-hand-" + machine},
		{provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: classA},
		{clusterLabel: "shoot-a"},
	} {
		size, network := int64(20), iaasmock.DefaultNetworkID
		w.trace.named(f.server(iaas.CreateServerPayload{
			Name: nameOfForeign(labels), Labels: labels,
			BootVolume: &iaas.BootVolume{
				Size: &size, Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}},
			Networking: iaas.CreateServerPayloadAllOfNetworking{
				CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}},
		}))
	}
	w.moveIn()
	wait := w.plan.Boot + w.plan.AddressDelay + w.plan.ListLag
	if len(w.openStack) > 0 {
		wait += settle // no list is older than the servers
	}
	_ = spi.Sleep(context.Background(), w.clock, wait)
	f.things = thingsIn(w.cloud)
	maps.DeleteFunc(f.things, func(id string, _ any) bool { return w.openStackOf(id) != nil })
}

// nameOfForeign returns a Machine's name, except for servers that lack one of our labels: a server with that
// name may be the Machine's own, made before it was labelled, and the driver waits until an operator labels
// it.
func nameOfForeign(labels map[string]any) string {
	_, inCluster := labels[clusterLabel]
	if _, ofMachine := labels[provider.StackitMachineLabel]; !inCluster || !ofMachine {
		return "nobody-s-" + machineName(0)
	}
	return machineName(0)
}

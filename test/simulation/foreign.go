// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
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

// openStackTag begins the key of the metadata by which the OpenStack provider names a cluster.
const openStackTag = "kubernetes.io-cluster-"

// populate fills the project with servers that look much like ours.
func (w *world) populate(key []byte) {
	f := &w.foreign
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: endpoint, TokenURL: endpoint + "/token"}, Transport: direct{w.cloud}}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
	if err != nil {
		panic(err)
	}
	f.api = session.API
	machine := machineName(0)
	for i, labels := range []map[string]any{
		nil,
		{"kubernetes.io/role": "bastion"},
		{clusterLabel: "shoot-z", provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: classA},
		{clusterLabel: "shoot-a", provider.StackitMachineLabel: "by-hand-" + machine},
		{provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: classA},
		{clusterLabel: "shoot-a"},
	} {
		payload := iaas.CreateServerPayload{Name: nameOfForeign(labels), MachineType: iaasmock.DefaultMachineType, Labels: labels}
		size, network := int64(20), iaasmock.DefaultNetworkID
		payload.BootVolume = &iaas.BootVolume{Size: &size, Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}}
		payload.Networking = iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}}
		server, err := session.API.CreateServer(context.Background(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(payload).Execute()
		if err != nil {
			panic(fmt.Errorf("foreign server %d: %w", i, err))
		}
		w.trace.named(server.GetId())
	}
	w.moveIn()
	wait := w.plan.Boot + w.plan.AddressDelay + w.plan.ListLag
	if len(w.openStack) > 0 {
		wait += settle // no list is from before
	}
	_ = spi.Sleep(context.Background(), w.clock, wait)
	f.servers, f.nics, f.volumes = byID(w.cloud)
	for _, m := range w.openStack {
		for _, id := range slices.Concat(m.servers, m.leftovers) {
			delete(f.servers, id)
			delete(f.nics, id)
			delete(f.volumes, id)
		}
	}
}

// fromOpenStack is what its Machines may bring about: one without a server or with a broken one is
// refused until it is replaced, one with two until somebody names its own.
var fromOpenStack = trouble{name: "Machines from OpenStack", explains: []codes.Code{codes.FailedPrecondition, codes.Internal}, spoils: true}

// moveIn makes what the OpenStack provider made for the Machines, and what others have that
// looks like it.
func (w *world) moveIn() {
	if len(w.plan.Origins) == 0 {
		return
	}
	for _, c := range w.clusters {
		cluster := c.name
		for i, origin := range w.plan.Origins {
			name := fmt.Sprintf("%s-from-openstack-%s", cluster, strings.Repeat(fmt.Sprint(i), 5))
			m := &openStackMachine{owner: owner{cluster, name}, Origin: origin}
			w.openStack = append(w.openStack, m)
			for twin := range origin.Servers {
				nic := w.foreign.nic(iaasmock.DefaultNetworkID, m.machine, nil, origin.HasID || origin.Servers > 1)
				volume := w.foreign.volume(m.machine, nil)
				tags := map[string]any{openStackTag + cluster: "1", "kubernetes.io-role-node": "1", clusterField: cluster}
				server := w.foreign.serverOf(m.machine, nic, volume, tags)
				w.trace.named(server)
				if twin > 0 {
					continue // somebody else's: the ProviderID names the first, or will
				}
				m.servers, m.leftovers = append(m.servers, server), append(m.leftovers, nic, volume)
				if m.Broken && w.cloud.SetServerStatus(server, iaasmock.StatusError, "broken") != nil {
					panic("no server " + server)
				}
				w.trace.called(nic, "NIC of "+m.machine)
				w.trace.called(volume, "volume of "+m.machine)
			}
			w.foreign.lookalikes(m)
		}
	}
	w.met(&fromOpenStack)
}

// lookalikes have the name of a Machine from OpenStack, and are not its own.
func (f *foreign) lookalikes(m *openStackMachine) {
	const network = iaasmock.DefaultNetworkID
	f.nic(iaasmock.DefaultDualStackNetworkID, m.machine, nil, false)
	for _, labels := range []map[string]any{
		{clusterLabel: "shoot-z"}, {"example.org/cluster": "shoot-z"}, {provider.StackitMachineLabel: "by-hand"}, {openStackTag + "shoot-z": "1"},
	} {
		f.nic(network, m.machine, labels, false)
		f.volume(m.machine, labels)
	}
	if m.Elsewhere {
		f.serverOf("nobody-s-"+m.machine, f.nic(network, m.machine, nil, false), f.volume(m.machine, nil), nil)
		f.serverOf(m.machine, f.nic(network, m.machine, nil, false), f.volume(m.machine, nil), map[string]any{openStackTag + "shoot-z": "1"})
	}
}

// nameOfForeign is the name of a Machine, but for servers that lack a label of ours: one of
// that name may be the Machine's, from before it was labelled, so that the driver waits for a
// person to say whose it is.
func nameOfForeign(labels map[string]any) string {
	_, inCluster := labels[clusterLabel]
	if _, ofMachine := labels[provider.StackitMachineLabel]; !inCluster || !ofMachine {
		return "nobody-s-" + machineName(0)
	}
	return machineName(0)
}

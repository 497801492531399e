// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"

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

// direct serves somebody else, whom nothing befalls.
type direct struct{ world *world }

// populate fills the project with servers that look much like ours.
func (f *foreign) populate(w *world, key []byte) {
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: endpoint, TokenURL: endpoint + "/token"}, Transport: direct{w}}
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
	_ = spi.Sleep(context.Background(), w.clock, w.plan.Boot+w.plan.AddressDelay+w.plan.ListLag)
	f.servers, f.nics, f.volumes = byID(w.cloud)
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

// check compares what is there with what was. onlyForeign says that nothing else
// may be there.
func (f *foreign) check(w *world, onlyForeign bool) {
	servers, nics, volumes := byID(w.cloud)
	compare(w, "server", f.servers, servers, onlyForeign)
	compare(w, "NIC", f.nics, nics, onlyForeign)
	compare(w, "volume", f.volumes, volumes, onlyForeign)
}

func compare[T any](w *world, kind string, before, now map[string]T, only bool) {
	for id, was := range before {
		if is, there := now[id]; !there {
			w.violated("foreign %s %s is gone", kind, id)
		} else if !reflect.DeepEqual(was, is) {
			w.violated("foreign %s %s was %+v, is %+v", kind, id, was, is)
		}
	}
	if !only {
		return
	}
	for id := range now {
		if _, known := before[id]; !known {
			w.violated("%s %s is left", kind, id)
		}
	}
}

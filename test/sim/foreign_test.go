// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"net/http"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	clusterLabel = "kubernetes.io/cluster"
	// fromOpenStack is the name of the Machine from OpenStack, openStackTag the start of the tag that names the cluster
	// of a server there.
	fromOpenStack = "from-openstack"
	openStackTag  = "kubernetes.io-cluster-"
)

type labels = map[string]any

// direct carries another user's requests.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) { return serve(d, r) }

// populate makes resources that look much like ours: of other clusters, other Machines, and of nobody. Then come those
// of the Machine from OpenStack, which the driver is to take over.
func (w *world) populate() {
	sessions := &spi.PluginSPIImpl{Config: config, Transport: direct{w.cloud}}
	session, err := sessions.Session(spi.Credentials{
		ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(simulationKey())})
	if err != nil {
		w.Fatal(err)
	}
	w.api = session.API
	machine, elsewhere := provider.StackitMachineLabel, "shoot-z"
	w.server(name(0), labels{clusterLabel: elsewhere, machine: name(0), provider.StackitMachineClassLabel: class}, nil)
	w.server(name(0), labels{machine: name(0), provider.StackitMachineClassLabel: class, "x/cluster": elsewhere}, nil)
	w.server(name(0), labels{clusterLabel: cluster, machine: "by-hand"}, nil)
	w.server("nobody-s", nil, nil)
	w.server(fromOpenStack, nil, labels{openStackTag + elsewhere: "1"})
	for _, of := range []labels{{clusterLabel: elsewhere}, {machine: "by-hand"}, {openStackTag + elsewhere: "1"}} {
		w.nic(fromOpenStack, of)
		w.volume(fromOpenStack, of)
	}
	time.Sleep(w.plan.boot + time.Minute)
	w.foreign = w.things()
	if w.plan.fromOpenStack {
		w.migratedServer = w.server(fromOpenStack, nil, labels{openStackTag + cluster: "1"})
		time.Sleep(w.plan.boot + time.Minute)
	}
	w.migrated = w.things()
	maps.DeleteFunc(w.migrated, func(id string, _ any) bool { return w.foreign[id] != nil })
}

// server makes a server with a NIC and a volume of its own, as Gardener's OpenStack provider does.
func (w *world) server(name string, of, tags labels) (id string) {
	request := w.api.CreateServer(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return w.made(request.CreateServerPayload(iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: of, Metadata: tags,
		BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Id: w.volume(name, nil), Type: "volume"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{w.nic(name, nil)}}},
	}).Execute())
}

func (w *world) nic(name string, of labels) (id string) {
	request := w.api.CreateNic(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultNetworkID)
	return w.made(request.CreateNicPayload(iaas.CreateNicPayload{Name: &name, Labels: of}).Execute())
}

func (w *world) volume(name string, of labels) (id string) {
	size := int64(20)
	request := w.api.CreateVolume(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return w.made(request.CreateVolumePayload(iaas.CreateVolumePayload{
		Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone, Labels: of,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
	}).Execute())
}

func (w *world) made(thing interface{ GetId() string }, err error) (id string) {
	if err != nil {
		w.Fatal(err)
	}
	return thing.GetId()
}

// things returns all servers, NICs and volumes, by ID.
func (w *world) things() map[string]any {
	things := map[string]any{}
	for _, server := range w.cloud.Servers() {
		things[server.ID] = server
	}
	for _, nic := range w.cloud.NICs() {
		things[nic.ID] = nic
	}
	for _, volume := range w.cloud.Volumes() {
		things[volume.ID] = volume
	}
	return things
}

// comeOver adds the Machine from OpenStack, as STACKIT's extension for Gardener migrates it.
func (w *world) comeOver() {
	m := &machine{name: fromOpenStack, created: time.Now().Add(-time.Minute),
		annotations: map[string]string{"stackit.cloud/migrated-machine": "true"}}
	if w.plan.hasID {
		m.firstID = "openstack:///RegionOne/" + w.migratedServer
		m.providerID = m.firstID
	}
	w.add(m)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// openStackTags are what Gardener's OpenStack provider gives to a server.
var openStackTags = map[string]any{"kubernetes.io-cluster-shoot-a": "1", "kubernetes.io-role-node": "1"}

// migrated is the Machine once somebody marked it.
func migrated(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, "stackit.cloud/migrated-machine", "true")
	return m
}

// makeNIC makes a NIC that no server has.
func (r *rig) makeNIC(networkID, name string, labels map[string]any) string {
	r.t.Helper()
	nic, err := r.session().API.CreateNic(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, networkID).
		CreateNicPayload(iaas.CreateNicPayload{Name: &name, Labels: labels}).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	return nic.GetId()
}

// makeVolume makes a volume that no server has.
func (r *rig) makeVolume(name string, labels map[string]any) string {
	r.t.Helper()
	return r.makeDisk(iaas.CreateVolumePayload{Name: &name, Size: new(int64(20)), Labels: labels,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID}})
}

func (r *rig) makeDisk(payload iaas.CreateVolumePayload) string {
	r.t.Helper()
	payload.AvailabilityZone = iaasmock.DefaultAvailabilityZone
	volume, err := r.session().API.CreateVolume(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateVolumePayload(payload).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	return volume.GetId()
}

// attach makes a server as Gardener's OpenStack provider does, from a NIC and a volume.
func (r *rig) attach(name, nicID, volumeID string, metadata map[string]any) (serverID string) {
	r.t.Helper()
	server, err := r.session().API.CreateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(iaas.CreateServerPayload{Name: name, MachineType: iaasmock.DefaultMachineType, Metadata: metadata,
			BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Type: "volume", Id: volumeID}},
			Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nicID}}},
		}).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.cloud.SetServerStatus(server.GetId(), iaasmock.StatusActive, ""); err != nil {
		r.t.Fatal(err)
	}
	return server.GetId()
}

// fromOpenStack makes a server with a NIC and a volume of its own, all of one name.
func (r *rig) fromOpenStack(name string) (serverID string) {
	r.t.Helper()
	return r.attach(name, r.makeNIC(iaasmock.DefaultNetworkID, name, nil), r.makeVolume(name, nil), openStackTags)
}

// named returns how many servers, NICs and volumes have the name.
func (r *rig) named(name string) (servers, nics, volumes int) {
	for _, server := range r.cloud.Servers() {
		if server.Name == name {
			servers++
		}
	}
	for _, nic := range r.cloud.NICs() {
		if nic.Name == name {
			nics++
		}
	}
	for _, volume := range r.cloud.Volumes() {
		if volume.Name == name {
			volumes++
		}
	}
	return servers, nics, volumes
}

func (r *rig) wantNamed(name string, wantServers, wantNICs, wantVolumes int) {
	r.t.Helper()
	if servers, nics, volumes := r.named(name); servers != wantServers || nics != wantNICs || volumes != wantVolumes {
		r.t.Errorf("%d servers, %d NICs and %d volumes are called %s, want %d, %d and %d", servers, nics, volumes, name, wantServers, wantNICs, wantVolumes)
	}
}

func TestAMachineFromOpenStackKeepsItsServer(t *testing.T) {
	for name, mark := range map[string]func(m *v1alpha1.Machine, serverID string) *v1alpha1.Machine{
		"the annotation":                 func(m *v1alpha1.Machine, _ string) *v1alpha1.Machine { return migrated(m) },
		"the annotation and our ID":      func(m *v1alpha1.Machine, id string) *v1alpha1.Machine { return withID(migrated(m), providerIDOf(id)) },
		"the ID of Gardener's OpenStack": func(m *v1alpha1.Machine, id string) *v1alpha1.Machine { return withID(m, "openstack:///RegionOne/"+id) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			id := r.fromOpenStack("m1")
			m := mark(machine("m1"), id)
			// The manager writes the answer's into the Machine: one of OpenStack must not get lost.
			want := cmp.Or(m.Spec.ProviderID, providerIDOf(id))
			if response := r.mustCreate(m); response.ProviderID != want {
				t.Errorf("the ProviderID is %s, want %s", response.ProviderID, want)
			}
			if response, err := r.initialize(m); err != nil || response.ProviderID != want {
				t.Errorf("%+v, %v, want %s", response, err, want)
			}
			if response, err := r.status(m); err != nil || m.Spec.ProviderID != "" && response.ProviderID != want {
				t.Errorf("%+v, %v, want %s", response, err, want)
			}
			if nic := nicOf(t, r, r.onlyServer()); len(nic.AllowedAddresses) != 1 {
				t.Errorf("the NIC's allowed addresses are %v", nic.AllowedAddresses)
			}
			if err := r.delete(r.deleted(m)); err != nil {
				t.Error(err)
			}
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// Nothing is made or deleted where it is not clear which server is the Machine's.
func TestAMachineFromOpenStackGetsNoNewServer(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(r *rig)
		servers int
	}{
		"none":                     {func(*rig) {}, 0},
		"two of its name":          {func(r *rig) { r.fromOpenStack("m1"); r.fromOpenStack("m1") }, 2},
		"of another cluster":       {func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{clusterLabel: "shoot-b"}) }, 1},
		"of another key's cluster": {func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{"example.org/cluster": "shoot-b"}) }, 1},
		"of another Machine":       {func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{"kubernetes.io/machine": "m2"}) }, 1},
		"tagged for another cluster": {func(r *rig) {
			r.attach("m1", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil), map[string]any{"kubernetes.io-cluster-shoot-b": "1"})
		}, 1},
		"that is being deleted": {func(r *rig) { r.deleteByHand(r.fromOpenStack("m1")) }, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			row.prepare(r)
			before := r.cloud.CallCounts()
			_, err := r.create(migrated(machine("m1")))
			wantCode(t, err, codes.FailedPrecondition)
			if !strings.Contains(err.Error(), "OpenStack") {
				t.Errorf("the error does not say why: %v", err)
			}
			after := r.cloud.CallCounts()
			if after["CreateServer"] != before["CreateServer"] || after["DeleteServer"] != before["DeleteServer"] {
				t.Errorf("calls before %v, after %v: want no server made or deleted", before, after)
			}
		})
	}
}

func TestAFailedServerFromOpenStackIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.fromOpenStack("m1")
		if err := r.cloud.SetServerStatus(id, iaasmock.StatusError, "broken"); err != nil {
			t.Fatal(err)
		}
		_, err := r.create(migrated(machine("m1")))
		wantCode(t, err, codes.Internal)
		r.wantNamed("m1", 1, 1, 1)
		if err := r.delete(r.deleted(migrated(machine("m1")))); err != nil {
			t.Error(err)
		}
		r.wantNamed("m1", 0, 0, 0)
	})
}

// The class is applied first; the mark comes later, Machine by Machine.
func TestTheMarkOfAMachineFromOpenStackMayComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.fromOpenStack("m1")
		r.fromOpenStack("m2")
		r.restartNow()
		early := start(func() error { _, err := r.create(machine("m1")); return err })
		<-time.After(3 * time.Second)
		marked := migrated(machine("m1"))
		if response := r.mustCreate(marked); response.ProviderID != providerIDOf(id) {
			t.Errorf("the ProviderID is %s, want that of server %s", response.ProviderID, id)
		}
		if err := <-early; err == nil {
			t.Error("the call that does not know of the mark has found a server")
		}
		r.wantNamed("m1", 1, 1, 1)
		// m2 was not marked yet.
		unmarked := machine("m2")
		unmarked.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		_, err := r.create(unmarked)
		wantCode(t, err, codes.FailedPrecondition)
		r.wantNamed("m2", 1, 1, 1)
	})
}

// Only lists of the whole project show a server that was not labelled yet, and one of them may
// be wrong.
func TestAnEmptyMomentHidesNoServerThatIsNotMarkedYet(t *testing.T) {
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"creation": func(r *rig, m *v1alpha1.Machine) error { _, err := r.create(m); return err },
		"deletion": func(r *rig, m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.fromOpenStack("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true, Count: 1,
				Match: func(request *http.Request) bool { return !request.URL.Query().Has("label_selector") }})
			m := machine("m1")
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
			wantCode(t, call(r, m), codes.FailedPrecondition)
			r.wantNamed("m1", 1, 1, 1)
		})
	}
}

// A server that surely is the Machine's is used, whatever else has its name.
func TestAServerWithLabelsBeatsOneWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		made := r.mustCreate(m).ProviderID
		r.fromOpenStack("m1")
		r.restartNow()
		m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		if found := r.mustCreate(m).ProviderID; found != made {
			t.Errorf("the Machine has %s, want %s", found, made)
		}
	})
}

// What is the Machine's by name goes with it, and nothing else.
func TestDeletionOfAMachineFromOpenStack(t *testing.T) {
	const other = iaasmock.DefaultDualStackNetworkID
	for name, row := range map[string]struct {
		options       []iaasmock.Option
		prepare       func(r *rig)
		nics, volumes int
	}{
		"NIC and volume":           {},
		"that are released late":   {options: []iaasmock.Option{iaasmock.WithReleaseDuration(40 * time.Second)}},
		"a NIC in another network": {prepare: func(r *rig) { r.makeNIC(other, "m1", nil) }, nics: 1},
		"a labelled NIC elsewhere": {prepare: func(r *rig) { r.makeNIC(other, "m1", map[string]any{clusterLabel: "shoot-a"}) }, nics: 1},
		"a NIC of another cluster": {prepare: func(r *rig) { r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{clusterLabel: "shoot-b"}) }, nics: 1},
		"a NIC of another Machine": {prepare: func(r *rig) {
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{"kubernetes.io/machine": "m2"})
		}, nics: 1},
		"a volume of another cluster": {prepare: func(r *rig) { r.makeVolume("m1", map[string]any{clusterLabel: "shoot-b"}) }, volumes: 1},
		"a volume of another Machine": {prepare: func(r *rig) { r.makeVolume("m1", map[string]any{"kubernetes.io/machine": "m2"}) }, volumes: 1},
		"a volume with another's tag": {prepare: func(r *rig) { r.makeVolume("m1", map[string]any{"kubernetes.io-cluster-shoot-b": "1"}) }, volumes: 1},
		"both attached to others": {prepare: func(r *rig) {
			r.attach("m2", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil), nil)
		}, nics: 1, volumes: 1},
		"both attached to one that goes, too": {prepare: func(r *rig) {
			id := r.attach("m2", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil), nil)
			go func() { <-time.After(2 * deleteDuration); r.deleteByHand(id) }()
		}, nics: 1, volumes: 1},
		"a volume of data": {prepare: func(r *rig) { r.makeDisk(iaas.CreateVolumePayload{Name: new("m1"), Size: new(int64(500))}) }, volumes: 1},
		"a volume that is being made": {prepare: func(r *rig) {
			id := r.makeVolume("m1", nil)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Count: 4, Status: 200, Body: `{"items":[{"id":"` + id + `","name":"m1","status":"CREATING","bootable":false,"size":20,"availabilityZone":"eu01-1"}]}`})
		}},
		"a read that shows the server that is gone": {
			options: []iaasmock.Option{iaasmock.WithReleaseDuration(40 * time.Second)},
			prepare: func(r *rig) {
				id := r.cloud.Servers()[0].ID
				r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", After: 20 * time.Second, Count: 1, Status: 200, Body: `{"id":"` + id + `","name":"m1","machineType":"c2i.2","status":"ACTIVE"}`})
			},
		},
		"two of each":                   {prepare: func(r *rig) { r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil); r.makeVolume("m1", nil) }},
		"an empty moment of servers":    {prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, EmptyList: true}) }},
		"two servers":                   {prepare: func(r *rig) { r.fromOpenStack("m1") }},
		"the server is gone already":    {prepare: func(r *rig) { r.deleteByHand(r.cloud.Servers()[0].ID); <-time.After(2 * deleteDuration) }},
		"volumes that cannot be listed": {prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Count: 3, Status: 503}) }},
		"an empty moment": {prepare: func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Count: 1, EmptyList: true})
			r.cloud.Inject(iaasmock.Fault{Operation: "ListNics", Count: 1, EmptyList: true})
		}},
		"an old list of NICs": {prepare: func(r *rig) {
			id := r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil)
			r.attach("m2", id, r.makeVolume("m2", nil), nil)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListNics", Count: 1, Status: 200, Body: `{"items":[{"id":"` + id + `","name":"m1"}]}`})
		}, nics: 1},
		"a DELETE that fails": {prepare: func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteVolume", Count: 2, Status: 409})
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteNic", Count: 2, Status: 500})
		}},
		"DELETEs whose answers are lost": {prepare: func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteVolume", Count: 1, DropAfter: true})
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteNic", Count: 1, DropAfter: true})
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, row.options...)
			r.fromOpenStack("m1")
			r.fromOpenStack("m12")
			r.makeNIC(iaasmock.DefaultNetworkID, "m12", nil)
			r.makeVolume("m12", nil)
			if row.prepare != nil {
				row.prepare(r)
			}
			if err := r.delete(r.deleted(migrated(machine("m1")))); err != nil {
				t.Error(err)
			}
			r.wantNamed("m1", 0, row.nics, row.volumes)
			r.wantNamed("m12", 1, 2, 2) // whose name begins with that
		})
	}
}

// Where the ProviderID names the server, another of its name is somebody else's.
func TestATwinOfAServerFromOpenStackStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id, twin := r.fromOpenStack("m1"), r.fromOpenStack("m1")
		m := withID(migrated(machine("m1")), providerIDOf(id))
		if _, err := r.status(m); err != nil {
			t.Error(err)
		}
		if err := r.delete(r.deleted(m)); err != nil {
			t.Error(err)
		}
		r.wantNamed("m1", 1, 1, 1)
		if left := r.onlyServer(); left.ID != twin {
			t.Errorf("server %s is left, want %s", left.ID, twin)
		}
	})
}

// A Machine that we made leaves what only has its name alone, and asks for no volumes.
func TestDeletionOfAMachineThatWeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil)
		r.makeVolume("m1", nil)
		m := machine("m1")
		m = withID(m, r.mustCreate(m).ProviderID)
		if err := r.delete(r.deleted(m)); err != nil {
			t.Error(err)
		}
		r.wantNamed("m1", 0, 1, 1)
		if calls := r.cloud.CallCounts()["ListVolumes"]; calls != 0 {
			t.Errorf("%d lists of volumes, want none", calls)
		}
	})
}

// The process ends between the end of the server and the DELETE of its volume.
func TestARestartLosesNothingThatCameFromOpenStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.fromOpenStack("m1")
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "DeleteVolume", Status: 503})
		m := r.deleted(withID(migrated(machine("m1")), providerIDOf(id)))
		first := start(func() error { return r.delete(m) })
		<-time.After(time.Minute)
		r.wantNamed("m1", 0, 0, 1)
		r.restartNow()
		remove()
		if err := r.delete(m); err != nil {
			t.Error(err)
		}
		r.wantNamed("m1", 0, 0, 0)
		if err := <-first; err != nil {
			t.Logf("the process that ended was told %v", err)
		}
	})
}

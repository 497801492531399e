// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
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
	volume, err := r.session().API.CreateVolume(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateVolumePayload(payload).Execute()
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
			Networking: iaas.CreateServerPayloadAllOfNetworking{
				CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nicID}}},
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
		r.t.Errorf("%d servers, %d NICs and %d volumes are called %s, want %d, %d and %d", servers, nics, volumes, name,
			wantServers, wantNICs, wantVolumes)
	}
}

func TestAMachineFromOpenStackKeepsItsServer(t *testing.T) {
	for name, mark := range map[string]func(m *v1alpha1.Machine, serverID string) *v1alpha1.Machine{
		"the annotation": func(m *v1alpha1.Machine, _ string) *v1alpha1.Machine { return migrated(m) },
		"the annotation and our ID": func(m *v1alpha1.Machine, id string) *v1alpha1.Machine {
			return withID(migrated(m), providerIDOf(id))
		},
		"the ID of Gardener's OpenStack": func(m *v1alpha1.Machine, id string) *v1alpha1.Machine {
			return withID(m, "openstack:///RegionOne/"+id)
		},
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
			r.mustRemove(m)
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
		"none":            {func(*rig) {}, 0},
		"two of its name": {func(r *rig) { r.fromOpenStack("m1"); r.fromOpenStack("m1") }, 2},
		"of another cluster": {
			func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{clusterLabel: "shoot-b"}) }, 1},
		"of another key's cluster": {
			func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{"example.org/cluster": "shoot-b"}) }, 1},
		"of another Machine": {
			func(r *rig) { r.relabel(r.fromOpenStack("m1"), map[string]any{"kubernetes.io/machine": "m2"}) }, 1},
		"tagged for another cluster": {func(r *rig) {
			r.attach("m1", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil),
				map[string]any{"kubernetes.io-cluster-shoot-b": "1"})
		}, 1},
		"that is being deleted": {func(r *rig) { r.deleteByHand(r.fromOpenStack("m1")) }, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			row.prepare(r)
			before := r.cloud.CallCounts()
			wantReason(t, r.createErr(migrated(machine("m1"))), provider.ReasonNotTakenOver)
			after := r.cloud.CallCounts()
			if after["CreateServer"] != before["CreateServer"] || after["DeleteServer"] != before["DeleteServer"] {
				t.Errorf("calls before %v, after %v: want no server made or deleted", before, after)
			}
		})
	}
}

// Lists alone, which many share, do not end the Machine of a server that no read of the call has shown.
func TestAnEmptyListDoesNotEndAMachineFromOpenStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var deleted []*v1alpha1.Machine
		for _, m := range machines(3) {
			deleted = append(deleted, withID(r.deleted(m), "openstack:///RegionOne/"+r.fromOpenStack(m.Name)))
		}
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Body: `{"items":[]}`, Status: http.StatusOK})
		wantNone(t, together(deleted, r.statusErr))
	})
}

func TestAFailedServerFromOpenStackIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.fromOpenStack("m1")
		r.setStatus(id, iaasmock.StatusError, "broken")
		wantCode(t, r.createErr(migrated(machine("m1"))), codes.Internal)
		<-time.After(time.Minute)
		r.wantNamed("m1", 1, 1, 1)
		r.mustRemove(migrated(machine("m1")))
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
		early := start(func() error { return r.createErr(machine("m1")) })
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
		wantCode(t, r.createErr(unmarked), codes.FailedPrecondition)
		r.wantNamed("m2", 1, 1, 1)
	})
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
		"a labelled NIC elsewhere": {
			prepare: func(r *rig) { r.makeNIC(other, "m1", map[string]any{clusterLabel: "shoot-a"}) }, nics: 1},
		"a NIC of another cluster": {prepare: func(r *rig) {
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{clusterLabel: "shoot-b"})
		}, nics: 1},
		"a NIC of another Machine": {prepare: func(r *rig) {
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{"kubernetes.io/machine": "m2"})
		}, nics: 1},
		"a volume of another cluster": {prepare: func(r *rig) { r.makeVolume("m1", map[string]any{clusterLabel: "shoot-b"}) },
			volumes: 1},
		"a volume of another Machine": {
			prepare: func(r *rig) { r.makeVolume("m1", map[string]any{"kubernetes.io/machine": "m2"}) }, volumes: 1},
		"a volume with another's tag": {
			prepare: func(r *rig) { r.makeVolume("m1", map[string]any{"kubernetes.io-cluster-shoot-b": "1"}) }, volumes: 1},
		"both attached to others": {prepare: func(r *rig) {
			r.attach("m2", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil), nil)
		}, nics: 1, volumes: 1},
		"a volume of data": {
			prepare: func(r *rig) { r.makeDisk(iaas.CreateVolumePayload{Name: new("m1"), Size: new(int64(500))}) }, volumes: 1},
		"a volume that is being made": {prepare: func(r *rig) {
			id := r.makeVolume("m1", nil)
			body := `{"items":[{"id":"` + id + `","name":"m1","status":"CREATING","bootable":false,` +
				`"size":20,"availabilityZone":"eu01-1"}]}`
			r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Count: 4, Status: 200, Body: body})
		}},
		"a read that shows the server that is gone": {
			options: []iaasmock.Option{iaasmock.WithReleaseDuration(40 * time.Second)},
			prepare: func(r *rig) {
				id := r.cloud.Servers()[0].ID
				r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", After: 20 * time.Second, Count: 1, Status: 200,
					Body: `{"id":"` + id + `","name":"m1","machineType":"c2i.2","status":"ACTIVE"}`})
			},
		},
		"two of each": {
			prepare: func(r *rig) { r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil); r.makeVolume("m1", nil) }},
		"the server is gone already": {
			prepare: func(r *rig) { r.deleteByHand(r.cloud.Servers()[0].ID); <-time.After(2 * deleteDuration) }},
		"volumes that cannot be listed": {
			prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Count: 3, Status: 503}) }},
		"an old list of NICs": {prepare: func(r *rig) {
			id := r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil)
			r.attach("m2", id, r.makeVolume("m2", nil), nil)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListNics", Count: 1, Status: 200,
				Body: `{"items":[{"id":"` + id + `","name":"m1"}]}`})
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
			r.mustRemove(migrated(machine("m1")))
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
		r.mustRemove(m)
		r.wantNamed("m1", 1, 1, 1)
		r.wantOnly(twin)
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
		r.mustRemove(m)
		r.wantNamed("m1", 0, 1, 1)
		r.wantCalls("ListVolumes", 0)
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
		r.mustDelete(m)
		r.wantNamed("m1", 0, 0, 0)
		if err := <-first; err != nil {
			t.Logf("the process that ended was told %v", err)
		}
	})
}

// Without a ProviderID nobody can tell several servers of the name apart.
func TestSeveralServersOfAMachineFromOpenStackStay(t *testing.T) {
	for name, call := range map[string]func(*rig, *v1alpha1.Machine) error{
		"creation": (*rig).createErr, "initialization": (*rig).initErr, "deletion": (*rig).remove,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := migrated(machine("m1"))
			ids := []string{r.fromOpenStack("m1"), r.fromOpenStack("m1")}
			err := call(r, m)
			wantCode(t, err, codes.FailedPrecondition)
			wantSaid(t, err.Error(), ids...)
			r.wantNamed("m1", 2, 2, 2)
			r.deleteByHand(ids[1]) // somebody deletes the wrong one: it is in DELETING, then gone
			r.mustRemove(m)
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// Without its network the NIC would be lost: nothing is deleted before that can be read.
func TestAClassWhoseNetworkingCannotBeReadLosesNoNIC(t *testing.T) {
	network := map[string]any{"networkId": iaasmock.DefaultNetworkID}
	for name, spoil := range map[string]func(r *rig, spec map[string]any){
		"of the wrong type": func(_ *rig, spec map[string]any) { spec["networking"] = []any{"net"} },
		"no ID":             func(_ *rig, spec map[string]any) { spec["networking"] = map[string]any{"networkId": "net"} },
		"none":              func(_ *rig, spec map[string]any) { delete(spec, "networking") },
		"a NIC, too": func(_ *rig, spec map[string]any) {
			spec["networking"] = map[string]any{"networkId": iaasmock.DefaultNetworkID, "nicIds": []any{iaasmock.DefaultNICID}}
		},
		"no ID in Secret": func(r *rig, spec map[string]any) {
			delete(spec, "networking")
			r.secret.Data["networkId"] = []byte("net")
		},
		"wrong, but default": func(r *rig, spec map[string]any) {
			spec["networking"] = "net"
			r.secret.Data["networkId"] = []byte(iaasmock.DefaultDualStackNetworkID)
		},
		"in another case": func(r *rig, spec map[string]any) {
			spec["Networking"] = network
			delete(spec, "networking")
			r.secret.Data["networkId"] = []byte(iaasmock.DefaultDualStackNetworkID)
		},
		"an ID in another case": func(r *rig, spec map[string]any) {
			spec["networking"] = map[string]any{"NetworkId": iaasmock.DefaultNetworkID}
			r.secret.Data["networkId"] = []byte(iaasmock.DefaultDualStackNetworkID)
		},
		"not the only one that is wrong": func(r *rig, spec map[string]any) {
			spec["machineType"], spec["networking"] = 5, "net"
			r.secret.Data["networkId"] = []byte(iaasmock.DefaultDualStackNetworkID)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			id := r.fromOpenStack("m1")
			r.setSpec(func(spec map[string]any) { spoil(r, spec) })
			m := withID(migrated(machine("m1")), providerIDOf(id))
			wantCode(t, r.remove(m), codes.InvalidArgument)
			r.wantNamed("m1", 1, 1, 1)
			delete(r.secret.Data, "networkId")
			r.setSpec(func(spec map[string]any) { spec["networking"], spec["machineType"] = network, 5 })
			r.mustRemove(m) // what else is wrong does not matter
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// Nor is anything deleted where the cluster is not known: NIC and volume are told from others' by its label.
func TestAClassWhoseClusterCannotBeReadLosesNoNIC(t *testing.T) {
	for name, labels := range map[string]func(spec map[string]any){
		"of the wrong type": func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: 5} },
		"in another case":   func(spec map[string]any) { spec["Labels"] = spec["labels"]; delete(spec, "labels") },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			right := string(r.class.ProviderSpec.Raw)
			m := withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1")))
			r.setSpec(labels)
			wantReason(t, r.remove(m), provider.ReasonInvalidInput)
			r.wantNamed("m1", 1, 1, 1)
			r.class.ProviderSpec.Raw = []byte(right)
			r.mustRemove(m)
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// The orphan collector names a server with our labels whose Machine still has OpenStack's ProviderID:
// it compares IDs as texts.
func TestAnOrphanWithOpenStacksTagStays(t *testing.T) {
	tag := map[string]any{"kubernetes.io-cluster-shoot-a": "1"}
	for name, made := range map[string]func(r *rig) string{
		"in its metadata": func(r *rig) string {
			id := r.attach("m1", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), r.makeVolume("m1", nil), tag)
			r.relabel(id,
				map[string]any{clusterLabel: "shoot-a", "kubernetes.io/machine": "m1", "kubernetes.io/machineclass": "class-a"})
			return id
		},
		"in its labels": func(r *rig) string {
			return r.makeServer("m1", func(labels map[string]any) { maps.Copy(labels, tag) })
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			id := made(r)
			wantCode(t, r.delete(orphan("m1", id)), codes.FailedPrecondition)
			r.wantCalls("DeleteServer", 0)
			r.wantSeries(metricOrphans, map[string]float64{"accepted": 0, "refused": 1})
		})
	}
}

// A volume may be one of data where the API does not say that a server can boot from it.
func TestAVolumeThatMayBeOfDataStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.deleted(withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1"))))
		r.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Status: 200, Body: `{"items":[{"id":"` +
			r.onlyServer().VolumeIDs[0] + `","name":"m1","status":"AVAILABLE","size":20,"availabilityZone":"eu01-1"}]}`})
		r.mustDelete(m)
		r.wantNamed("m1", 0, 0, 1)
	})
}

// What a server has that is proved gone counts as detached in the end, and nobody reads that server.
func TestAServerThatIsGoneHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithReleaseDuration(3*time.Minute))
		m := withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1")))
		done := start(func() error { return r.remove(m) })
		<-time.After(time.Minute)
		r.wantNamed("m1", 0, 1, 1)
		gets := r.cloud.CallCounts()["GetServer"]
		<-time.After(100 * time.Second)
		r.wantNamed("m1", 0, 0, 1) // the API refuses the volume: 409
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.wantNamed("m1", 0, 0, 0)
		if more := r.cloud.CallCounts()["GetServer"] - gets; more > 0 {
			t.Errorf("%d reads of the server that is gone", more)
		}
	})
}

// A process before this one saw the server go, and the cloud releases what it had late.
func TestAServerThatWentBeforeARestartHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithReleaseDuration(30*time.Minute))
		r.deleteByHand(r.fromOpenStack("m1"))
		<-time.After(time.Minute)
		r.restartNow()
		done := start(func() error { return r.remove(migrated(machine("m1"))) })
		<-time.After(5 * time.Minute)
		if deletions := r.cloud.CallCounts()["DeleteVolume"]; deletions == 0 {
			t.Error("nobody asked for the deletion of the volume")
		}
		wantCode(t, <-done, codes.DeadlineExceeded) // the API refuses it: 409
	})
}

// Many Machines from OpenStack are deleted at once: each takes three DELETEs, and at most three reads
// more, lists among them.
func TestManyMachinesFromOpenStackAreDeletedWithFewReads(t *testing.T) {
	labelled := map[string]any{clusterLabel: "shoot-a"}
	for name, row := range map[string]struct {
		labels  map[string]any
		noID    bool
		release time.Duration
	}{
		"released very late":       {release: 40 * time.Second},
		"with labels, without IDs": {release: 10 * time.Second, labels: labelled, noID: true},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, many(100), many(100), iaasmock.WithReleaseDuration(row.release))
			for i, m := range c.machines {
				id := c.fromOpenStack(m.Name)
				c.machines[i] = migrated(m)
				if !row.noID {
					c.machines[i] = withID(c.machines[i], providerIDOf(id))
				}
				if row.labels != nil {
					c.relabel(id, row.labels)
				}
			}
			c.restartNow()
			<-time.After(time.Minute)
			c.cloud.ResetCalls()
			start := time.Now()
			c.each(func(m *v1alpha1.Machine) {
				if err := c.delete(c.deleted(m)); err != nil {
					c.t.Errorf("DeleteMachine: %v", err)
				}
			})
			took, calls, peak := time.Since(start), c.cloud.CallCounts(), c.peakReads()
			each := c.callsPerMachine()
			t.Logf("%d Machines: %.1f calls each, %s, %d reads in a second", len(c.machines), each, took, peak)
			for _, m := range c.machines {
				c.wantNamed(m.Name, 0, 0, 0)
			}
			for _, operation := range []string{"DeleteServer", "DeleteNic", "DeleteVolume"} {
				if got := calls[operation]; got != len(c.machines) {
					t.Errorf("%s: %d calls, want %d", operation, got, len(c.machines))
				}
			}
			if volumes, nics := calls["ListVolumes"], calls["ListNics"]; volumes > 40 || nics > 40 {
				t.Errorf("%d lists of volumes and %d of NICs, want 40 each at most", volumes, nics)
			}
			if atMost := 3.0 + 3; !testing.Short() && each > atMost {
				t.Errorf("%.1f calls a Machine, want %.0f at most", each, atMost)
			}
			if peak > 8 {
				t.Errorf("%d reads begin in a second, want 8 at most", peak)
			}
			if took > 3*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

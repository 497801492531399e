// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
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

// attach makes a server as Gardener's OpenStack provider does, from a NIC and a volume with the server's name.
func (r *rig) attach(name, nicID string, metadata map[string]any) (serverID string) {
	r.t.Helper()
	ctx, project, region := r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion
	volume, err := r.session().API.CreateVolume(ctx, project, region).CreateVolumePayload(iaas.CreateVolumePayload{
		Name: &name, Size: new(int64(20)), AvailabilityZone: iaasmock.DefaultAvailabilityZone,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID}}).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	server, err := r.session().API.CreateServer(ctx, project, region).
		CreateServerPayload(iaas.CreateServerPayload{Name: name, MachineType: iaasmock.DefaultMachineType, Metadata: metadata,
			BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Type: "volume", Id: volume.GetId()}},
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
	return r.attach(name, r.makeNIC(iaasmock.DefaultNetworkID, name, nil), openStackTags)
}

// wantNamed checks how many servers and NICs have the name.
func (r *rig) wantNamed(name string, wantServers, wantNICs int) {
	r.t.Helper()
	servers, nics := 0, 0
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
	if servers != wantServers || nics != wantNICs {
		r.t.Errorf("%d servers and %d NICs are called %s, want %d and %d", servers, nics, name, wantServers, wantNICs)
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
			if nic := r.nicOf(r.onlyServer()); len(nic.AllowedAddresses) != 1 {
				t.Errorf("the NIC's allowed addresses are %v", nic.AllowedAddresses)
			}
			r.mustRemove(m)
			r.wantNamed("m1", 0, 0)
		})
	}
}

// A server from OpenStack is known by its name (row 15). Nothing is made or deleted where it is not clear which server
// is the Machine's.
func TestMachinesFromOpenStack(t *testing.T) {
	type labels = map[string]any
	mark := func(_ *rig, m made) { *m = *migrated(m) }
	beside := func(change labels) func(*rig, made) { // the Machine's name has a server that is another's
		return func(r *rig, m made) {
			mark(r, m)
			r.theirs = []string{r.fromOpenStack("m1")}
			r.relabel(r.theirs[0], change)
		}
	}
	twins := func(r *rig, m made) {
		mark(r, m)
		r.theirs = []string{r.fromOpenStack("m1"), r.fromOpenStack("m1")}
	}
	orphaned := func(change labels) func(*rig, made) { // with our labels and this one, its Machine has another ID
		return func(r *rig, m made) {
			r.theirs = []string{r.makeServer("m1", func(all map[string]any) { maps.Copy(all, change) })}
			m.Spec.ProviderID = providerIDOf(r.theirs[0])
		}
	}
	const notTakenOver = provider.ReasonNotTakenOver
	runSituations(t, map[string]situation{
		"15: there is no server": {before: mark, call: creates, reason: notTakenOver},
		"15: two of its name":    {before: twins, call: creates, reason: notTakenOver, left: 2},
		"15: two of its name, an initialization": {
			before: twins, call: (*rig).initErr, reason: notTakenOver, left: 2},
		"15: two of its name, a deletion": {before: twins, call: removes, reason: notTakenOver, left: 2},
		"15: somebody deleted one of the two": {before: func(r *rig, m made) {
			twins(r, m)
			r.deleteByHand(r.theirs[1])
			r.theirs = nil
		}, call: removes},
		"15: another cluster's": {
			before: beside(labels{clusterLabel: "shoot-b"}), call: creates, reason: notTakenOver, left: 1},
		"15: another cluster's by key": {
			before: beside(labels{"example.org/cluster": "shoot-b"}), call: creates, reason: notTakenOver, left: 1},
		"15: another Machine's": {
			before: beside(labels{provider.StackitMachineLabel: "m2"}), call: creates, reason: notTakenOver, left: 1},
		"15: tagged for another cluster": {before: func(r *rig, m made) {
			mark(r, m)
			r.theirs = []string{r.attach("m1", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil),
				labels{"kubernetes.io-cluster-shoot-b": "1"})}
		}, call: creates, reason: notTakenOver, left: 1},
		"15: in ERROR, is not deleted": {before: func(r *rig, m made) {
			mark(r, m)
			r.own = r.fromOpenStack("m1")
			r.setStatus(r.own, iaasmock.StatusError, "broken")
		}, call: creates, reason: provider.ReasonServerFailed, left: 1},
		"15: not marked yet, younger than the leadership's doubt": {before: succeeded(func(r *rig, _ made) {
			r.theirs = []string{r.fromOpenStack("m1")}
		}), call: createsUntilOK, reason: provider.ReasonNotOurs, left: 1},
		"15: marked while a call waits": {before: succeeded(func(r *rig, m made) {
			r.own = r.fromOpenStack("m1")
			m.CreationTimestamp.Time = m.CreationTimestamp.Add(-time.Hour)
		}), call: func(r *rig, m made) error {
			early := r.startCreate(m.DeepCopy())
			<-time.After(3 * time.Second)
			mark(r, m)
			err := creates(r, m)
			if <-early == nil {
				r.t.Error("the call that does not know of the mark has found a server")
			}
			return err
		}, left: 1},
		"15: a server with labels beats one without": {before: succeeded(func(r *rig, m made) {
			r.own = serverOf(withID(m, r.mustCreate(m).ProviderID))
			r.theirs = []string{r.fromOpenStack("m1")}
		}), call: creates, left: 2},
		"15: another of the name that the ProviderID does not name": {before: func(r *rig, m made) {
			mark(r, m)
			m.Spec.ProviderID = providerIDOf(r.fromOpenStack("m1"))
			r.theirs = []string{r.fromOpenStack("m1")}
		}, call: removes, left: 1, then: func(r *rig, _ made) { r.wantNamed("m1", 1, 1) }},
		"15: our own server leaves what has its name": {before: func(r *rig, m made) {
			running(r, m)
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil)
		}, call: removes, then: func(r *rig, _ made) { r.wantNamed("m1", 0, 1) }},
		"15: the process ended before the NIC's DELETE": {before: func(r *rig, m made) {
			mark(r, m)
			m.Spec.ProviderID = providerIDOf(r.fromOpenStack("m1"))
			mode := r.cloud.Inject(fault{Operation: "DeleteNic", Status: http.StatusServiceUnavailable})
			start(func() error { return r.remove(m) })
			<-time.After(time.Minute)
			r.wantNamed("m1", 0, 1)
			r.restartNow()
			mode()
		}, call: removes, then: func(r *rig, _ made) { r.wantNamed("m1", 0, 0) }},
		"15: its boot volume stays": {before: func(r *rig, m made) {
			mark(r, m)
			r.fromOpenStack("m1")
		}, call: removes, then: func(r *rig, _ made) {
			if !slices.ContainsFunc(r.cloud.Volumes(), func(v iaasmock.Volume) bool { return v.Name == "m1" }) {
				r.t.Errorf("its boot volume is gone: %+v", r.cloud.Volumes())
			}
		}},
		"15: an orphan with OpenStack's tag stays": {before: func(r *rig, m made) {
			r.theirs = []string{r.fromOpenStack("m1")}
			r.relabel(r.theirs[0], labels{clusterLabel: "shoot-a", provider.StackitMachineLabel: "m1"})
			m.Spec.ProviderID = providerIDOf(r.theirs[0])
		}, call: collects, reason: provider.ReasonNotOurs, left: 1, then: takeBack},
		"15: an orphan with the tag as a label stays": {before: orphaned(labels{"kubernetes.io-cluster-shoot-a": "1"}),
			call: collects, reason: provider.ReasonNotOurs, left: 1, then: takeBack},
	}, 0)
}

// takeBack: the refusal is counted. The server is the Machine's after all, and goes with it.
func takeBack(r *rig, _ made) {
	r.theirs = nil
	r.wantSeries(metricOrphans, map[string]float64{"accepted": 0, "refused": 1})
}

// Nothing is deleted before the class says which network and cluster a NIC must be in: it would be lost.
func TestAClassThatCannotBeReadLosesNoNIC(t *testing.T) {
	network := map[string]any{"networkId": iaasmock.DefaultNetworkID}
	for name, spoil := range map[string]func(spec map[string]any){
		"networking of the wrong type": func(spec map[string]any) { spec["networking"] = "net" },
		"networking in another case": func(spec map[string]any) {
			spec["Networking"] = network
			delete(spec, "networking")
		},
		"a label of the wrong type": func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: 5} },
		"labels in another case": func(spec map[string]any) {
			spec["Labels"] = spec["labels"]
			delete(spec, "labels")
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1")))
			r.setSpec(spoil)
			r.secret.Data["networkId"] = []byte(iaasmock.DefaultDualStackNetworkID) // a default does not count
			wantReason(t, r.remove(m), provider.ReasonInvalidInput)
			r.wantNamed("m1", 1, 1)
			r.setSpec(func(spec map[string]any) { spec["machineType"] = 5 }) // what else is wrong does not matter
			r.mustRemove(m)
			r.wantNamed("m1", 0, 0)
		})
	}
}

// The NICs that are the Machine's by name go with it, and nothing else.
func TestDeletionOfAMachineFromOpenStack(t *testing.T) {
	const other = iaasmock.DefaultDualStackNetworkID
	for name, row := range map[string]struct {
		options []iaasmock.Option
		prepare func(r *rig)
		nics    int
	}{
		"a NIC":                          {},
		"one that is released late":      {options: []iaasmock.Option{iaasmock.WithReleaseDuration(40 * time.Second)}},
		"one that is released very late": {options: []iaasmock.Option{iaasmock.WithReleaseDuration(3 * time.Minute)}},
		"a NIC in another network":       {prepare: func(r *rig) { r.makeNIC(other, "m1", nil) }, nics: 1},
		"a NIC of another cluster": {prepare: func(r *rig) {
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{clusterLabel: "shoot-b"})
		}, nics: 1},
		"a NIC with another's tag": {prepare: func(r *rig) {
			r.makeNIC(iaasmock.DefaultNetworkID, "m1", map[string]any{"kubernetes.io-cluster-shoot-b": "1"})
		}, nics: 1},
		"attached to another": {prepare: func(r *rig) {
			r.attach("m2", r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil), nil)
		}, nics: 1},
		"two": {prepare: func(r *rig) { r.makeNIC(iaasmock.DefaultNetworkID, "m1", nil) }},
		"the server is gone already": {
			prepare: func(r *rig) { r.deleteByHand(r.cloud.Servers()[0].ID); <-time.After(2 * deleteDuration) }},
		"NICs that cannot be listed": {
			prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "ListNics", Count: 3, Status: 503}) }},
		"a DELETE that fails": {
			prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "DeleteNic", Count: 2, Status: 500}) }},
		"a DELETE whose answer is lost": {
			prepare: func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "DeleteNic", Count: 1, DropAfter: true}) }},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, row.options...)
			r.fromOpenStack("m1")
			r.fromOpenStack("m12")
			r.makeNIC(iaasmock.DefaultNetworkID, "m12", nil)
			if row.prepare != nil {
				row.prepare(r)
			}
			r.mustRemove(migrated(machine("m1")))
			r.wantNamed("m1", 0, row.nics)
			r.wantNamed("m12", 1, 2) // whose name begins with that
		})
	}
}

// Many Machines from OpenStack are deleted at once: each takes two DELETEs, and at most three reads more, lists among
// them.
func TestManyMachinesFromOpenStackAreDeletedWithFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, many(100), many(100), iaasmock.WithReleaseDuration(40*time.Second))
		for i, m := range c.machines {
			c.machines[i] = withID(migrated(m), providerIDOf(c.fromOpenStack(m.Name)))
		}
		c.restartNow()
		<-time.After(time.Minute)
		c.cloud.ResetCalls()
		began := time.Now()
		c.each(func(m *v1alpha1.Machine) { c.mustRemove(m) })
		wantWithin(t, began, 3*time.Minute)
		calls, peak := c.cloud.CallCounts(), c.peakReads()
		each := c.callsPerMachine()
		t.Logf("%.1f calls a Machine, %d reads in a second", each, peak)
		for _, m := range c.machines {
			c.wantNamed(m.Name, 0, 0)
		}
		for _, operation := range []string{"DeleteServer", "DeleteNic"} {
			if got := calls[operation]; got != len(c.machines) {
				t.Errorf("%s: %d calls, want %d", operation, got, len(c.machines))
			}
		}
		if nics := calls["ListNics"]; nics > 40 || peak > 8 {
			t.Errorf("%d lists of NICs, want 40 at most; %d reads a second", nics, peak)
		}
		if !testing.Short() && each > 5 {
			t.Errorf("%.1f calls a Machine, want 5 at most", each)
		}
	})
}

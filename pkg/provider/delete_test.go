// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestDeleteMachineWaitsUntilNothingIsLeft(t *testing.T) {
	for name, providerID := range map[string]func(server string) string{
		"its own form":         func(server string) string { return "stackit://" + iaasmock.DefaultProjectID + "/" + server },
		"the Node's form":      func(server string) string { return "stackit://" + server },
		"OpenStack":            func(server string) string { return "openstack:///" + server },
		"OpenStack and region": func(server string) string { return "openstack://RegionOne/" + server },
		"by name":              func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.mustCreate(machine("m1"))
			r.restart()
			m := withID(r.deleted(machine("m1")), providerID(r.onlyServer().ID))
			if err := r.delete(m); err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
			if err := r.delete(m); err != nil {
				t.Errorf("deleting once more: %v", err)
			}
		})
	}
}

func TestDeleteMachineInEveryState(t *testing.T) {
	for _, state := range []string{"CREATING", "ACTIVE", "INACTIVE", "ERROR", "RESCUE", "SOMETHING-NEW"} {
		t.Run(state, func(t *testing.T) {
			r := newRig(t)
			id := r.makeServer("m1", nil)
			if err := r.cloud.SetServerStatus(id, state, ""); err != nil {
				t.Fatal(err)
			}
			if err := r.delete(r.deleted(machine("m1"))); err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
		})
	}
}

func TestDeleteMachineTakesAllServersOfTheMachineAlong(t *testing.T) {
	r := newRig(t)
	kept := r.makeServer("m1", nil)
	r.makeServer("m1", nil)
	if err := r.delete(withID(r.deleted(machine("m1")), "stackit://"+iaasmock.DefaultProjectID+"/"+kept)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// The orphan collector's Machines carry nothing but name and ProviderID.
func TestDeleteMachineForTheOrphanCollectorDeletesThatServerOnly(t *testing.T) {
	r := newRig(t)
	kept, orphan := r.makeServer("m1", nil), r.makeServer("m1", nil)
	if err := r.delete(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+orphan)); err != nil {
		t.Fatal(err)
	}
	if left := r.onlyServer(); left.ID != kept {
		t.Errorf("%s is left, want %s", left.ID, kept)
	}
}

func TestDeleteMachineRefusesWhatIsNotTheMachines(t *testing.T) {
	for name, row := range map[string]struct {
		change func(map[string]any)
		says   string
	}{
		"another machine's": {func(labels map[string]any) { labels[provider.StackitMachineLabel] = "m2" }, `"m2"`},
		"another cluster's": {func(labels map[string]any) { labels[clusterLabel] = "shoot-b" }, `"shoot-b"`},
		"another name":      {func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) }, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			foreign := r.makeServer("other", row.change)
			err := r.delete(withID(r.deleted(machine("m1")), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
			wantCode(t, err, codes.FailedPrecondition)
			if !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), foreign) {
				t.Errorf("%q does not name the server and %s", err, row.says)
			}
			if left := r.onlyServer(); left.Status == iaasmock.StatusDeleting {
				t.Error("the foreign server is being deleted")
			}
		})
	}
}

func TestDeleteMachineWithoutALabelCountsByNameAndID(t *testing.T) {
	r := newRig(t)
	id := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
	if err := r.delete(withID(r.deleted(machine("m1")), "openstack:///"+id)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

func TestDeleteMachineRefusesAnotherProject(t *testing.T) {
	r := newRig(t)
	id := r.makeServer("m1", nil)
	wantCode(t, r.delete(withID(machine("m1"), "stackit://"+iaasmock.SecondProjectID+"/"+id)), codes.InvalidArgument)
	r.onlyServer()
}

func TestDeleteMachineWithABrokenClass(t *testing.T) {
	for name, spec := range map[string]string{
		"no JSON":         `{"machineType"`,
		"null":            `null`,
		"everything gone": `{}`,
		"wrong types":     `{"machineType": 5, "labels": "none", "bootVolume": []}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			response := r.mustCreate(machine("m1"))
			if name == "wrong types" { // the cluster is learnt from the server, and finds the other
				r.makeServer("m1", nil)
			}
			r.restart()
			r.class.ProviderSpec = runtime.RawExtension{Raw: []byte(spec)}
			m := withID(r.deleted(machine("m1")), response.ProviderID)
			if _, err := r.status(m); name != "everything gone" {
				wantCode(t, err, codes.OK)
			}
			err := r.delete(m)
			if name == "everything gone" {
				// The class now says "no cluster", the server says "shoot-a".
				wantCode(t, err, codes.FailedPrecondition)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
		})
	}
}

func TestDeleteMachineWithoutARegionSaysWhatToSet(t *testing.T) {
	r := newRig(t)
	delete(r.secret.Data, "region")
	err := r.delete(r.deleted(machine("m1")))
	wantCode(t, err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "providerSpec.region") || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("%q does not say where to set the region", err)
	}
}

// A request for a server was sent, its answer lost, and the machine deleted: the
// server that shows up later must not survive.
func TestDeleteMachineByNameWaitsForLostRequests(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(20*time.Second))
	m := machine("m1")
	m.CreationTimestamp = metav1.NewTime(r.clock.Now())
	r.makeServer("m1", nil)
	restarted := r.clock.Now().Add(time.Second)
	r.restart(provider.WithActingSince(func() time.Time { return restarted }))
	if err := r.delete(r.deleted(m)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// CreateMachine makes a server beside one that is being deleted: here a predecessor
// did, or a successor while this process stood still. It does not show yet.
func TestDeleteMachineSeesBeyondAServerThatGoes(t *testing.T) {
	for name, restarts := range map[string]bool{"after a restart": true, "after a pause": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second), iaasmock.WithDeleteDuration(time.Minute))
			since := r.clock.Now()
			acting := provider.WithActingSince(func() time.Time { return since })
			r.restart(acting)
			m := machine("m1")
			m.CreationTimestamp = metav1.NewTime(since.Add(time.Second))
			r.mustCreate(m)
			r.clock.Step(30 * time.Second)
			if err := r.session().API.DeleteServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, r.onlyServer().ID).Execute(); err != nil {
				t.Fatal(err)
			}
			r.clock.Step(25 * time.Second)
			r.makeServer("m1", nil)
			since = r.clock.Now()
			if restarts {
				r.restart(acting)
			}
			if err := r.delete(r.deleted(m)); err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
		})
	}
}

func TestDeleteMachineBelievesNoSingleNotFound(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"a random 404 of the API":  {Status: http.StatusNotFound, Body: `{"code":404,"msg":"server not found"}`},
		"a gateway's 404":          {Status: http.StatusNotFound, Body: "<html>not found</html>", ContentType: "text/html"},
		"a 404 about the project":  {Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`},
		"forbidden is not gone":    {Status: http.StatusForbidden, Body: `{"code":403,"msg":"Forbidden"}`},
		"an empty 500":             {Status: http.StatusInternalServerError, ContentType: "text/plain"},
		"the connection was reset": {DropBefore: true},
		"several resets in a row":  {DropBefore: true, Count: 9},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			response := r.mustCreate(machine("m1"))
			fault.Operation = "GetServer"
			if fault.Count == 0 {
				fault.Count = 1
			}
			r.cloud.Inject(fault)
			m := withID(r.deleted(machine("m1")), response.ProviderID)
			for range 5 {
				err := r.delete(m)
				if err == nil {
					break
				}
				if server, ok := r.cloud.Server(r.onlyServer().ID); !ok {
					t.Fatalf("server %s is gone but the answer is %v", server.ID, err)
				}
			}
			r.wantNothingLeft()
		})
	}
}

func TestDeleteMachineThatFailsIsTriedAgain(t *testing.T) {
	r := newRig(t)
	response := r.mustCreate(machine("m1"))
	r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 2, FinalStatus: iaasmock.StatusError, ErrorMessage: "stuck"})
	m := withID(r.deleted(machine("m1")), response.ProviderID)
	wantCode(t, r.delete(m), codes.Aborted)
	if err := r.delete(m); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

func TestDeleteMachineKeepsWhatWasOnlyAttached(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) {
		spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
		spec["volumes"] = []any{iaasmock.DefaultVolumeID}
	})
	response := r.mustCreate(machine("m1"))
	if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
	if !slices.ContainsFunc(r.cloud.NICs(), func(nic iaasmock.NIC) bool { return nic.ID == iaasmock.DefaultNICID }) {
		t.Error("the NIC is gone")
	}
	if !slices.ContainsFunc(r.cloud.Volumes(), func(volume iaasmock.Volume) bool { return volume.ID == iaasmock.DefaultVolumeID }) {
		t.Error("the volume is gone")
	}
}

// A server that is younger than the lists lag is in none of them: there a 404 has
// nothing to confirm it.
func TestDeleteMachineOfAYoungServerBelievesNoSingleNotFound(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(20*time.Second))
	response := r.mustCreate(machine("m1"))
	r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Count: 1, Status: http.StatusNotFound, Body: `{"code":404,"msg":"server not found"}`})
	if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// Deletions may take a while to show, also those of servers in ERROR.
func TestDeleteMachineWhoseServerKeepsItsStateForAWhile(t *testing.T) {
	r := newRig(t)
	id := r.makeServer("m1", nil)
	if err := r.cloud.SetServerStatus(id, iaasmock.StatusError, "broken"); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"id":%q,"name":"m1","machineType":"t1.1","status":"ERROR","labels":{%q:"m1",%q:"class-a",%q:"shoot-a"}}`,
		id, provider.StackitMachineLabel, provider.StackitMachineClassLabel, clusterLabel)
	r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Count: 8, Status: http.StatusOK, Body: body})
	if err := r.delete(r.deleted(machine("m1"))); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// The orphan collector deletes another server of a machine that is being created.
func TestDeleteMachineForTheOrphanCollectorKeepsTheLedger(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(25*time.Second))
	r.mustCreate(machine("m1"))
	mine := r.onlyServer().ID
	orphan := r.makeServer("m1", nil)
	if err := r.delete(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+orphan)); err != nil {
		t.Fatal(err)
	}
	r.mustCreate(machine("m1"))
	if left := r.onlyServer(); left.ID != mine {
		t.Errorf("%s is left, want %s", left.ID, mine)
	}
}

// A name that cannot be a label: no server can carry it, and the Machine must go.
func TestMachineWithANameThatIsTooLongSaysSoAndCanBeDeleted(t *testing.T) {
	r := newRig(t)
	m := machine(strings.Repeat("m", 64))
	_, err := r.status(m)
	wantCode(t, err, codes.NotFound)
	_, err = r.create(m)
	wantCode(t, err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "machine.metadata.name") {
		t.Errorf("%q does not name the field", err)
	}
	// Nor is there a reason to wait for what a predecessor may have asked for.
	m.CreationTimestamp = metav1.NewTime(r.clock.Now().Add(-time.Minute))
	r.restart(provider.WithActingSince(r.clock.Now))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := r.driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: r.deleted(m), MachineClass: r.class, Secret: r.secret}); err != nil {
		t.Error(err)
	}
	if calls := r.cloud.CallCounts(); len(calls) != 0 {
		t.Errorf("made %v, want no calls", calls)
	}
}

func TestDeleteMachineWithAWrongDefaultNetwork(t *testing.T) {
	r := newRig(t)
	response := r.mustCreate(machine("m1"))
	r.secret.Data["networkId"] = []byte("my-network")
	if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/uuid"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Whose a server is: what an answer, a label, an ID and a Secret do not say.

// The answer to the POST names a server, and nothing more: whose it is, a read decides.
func TestThePOSTsAnswerIsNotBelieved(t *testing.T) {
	for name, executed := range map[string]bool{"the server was made": true, "it was not made": false} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			other := r.makeServer("other", nil)
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, OtherServer: other, Executed: executed})
			response := r.mustCreateAsManager(machine("m1"))
			if response.ProviderID == providerIDOf(other) {
				t.Error("the answer is another machine's server")
			}
			for _, server := range r.cloud.Servers() {
				if nic := nicOf(t, r, server); server.ID == other && len(nic.AllowedAddresses) > 0 {
					t.Errorf("the other machine's NIC carries %v", nic.AllowedAddresses)
				}
			}
			if servers := r.cloud.Servers(); len(servers) != 2 {
				t.Errorf("%d servers, want the other one and the machine's", len(servers))
			}
		})
	}
}

// The answer to the POST names a server that nobody ever sees.
func TestAnAnswerThatNamesNoServerIsNoEndOfThePOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		<-time.After(time.Minute)
		body := `{"id":"` + uuid.NewString() + `","name":"m1","status":"CREATING","machineType":"c2i.2"}`
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: 201, Body: body, Executed: true})
		wantCode(t, r.createErr(machine("m1")), codes.Aborted)
		r.emptyFor(4 * time.Second)
		if response := r.mustCreate(machine("m1")); response.ProviderID != providerIDOf(r.onlyServer().ID) {
			t.Errorf("the answer is %s", response.ProviderID)
		}
	})
}

// An API that drops labels, or an answer that names a stranger's server: nobody knows whose it is, so
// that it is neither used nor deleted, and its machine gets no other.
func TestAServerWithoutItsLabelsIsLeftAlone(t *testing.T) {
	for name, prepare := range map[string]func(r *rig) (faults []iaasmock.Fault){
		"the API drops labels": func(*rig) []iaasmock.Fault {
			return []iaasmock.Fault{{Operation: "CreateServer", DropLabels: true}}
		},
		"the answer names a stranger's server": func(r *rig) []iaasmock.Fault {
			other := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
			<-time.After(time.Minute)
			return []iaasmock.Fault{{Operation: "CreateServer", OtherServer: other}}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			for _, fault := range prepare(r) {
				r.cloud.Inject(fault)
			}
			refused := func(err error) {
				t.Helper()
				wantCode(t, err, codes.FailedPrecondition)
				if reason := reasonOf(err); reason != provider.ReasonLabelsMissing {
					t.Errorf("the reason is %q", reason)
				}
				wantSaid(t, err.Error(), r.onlyServer().ID)
			}
			for range 3 {
				_, err := r.create(machine("m1"))
				refused(err)
				<-time.After(10 * time.Minute)
			}
			refused(r.remove(machine("m1")))
			if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
				t.Errorf("the server is %s", left.Status)
			}
			// Somebody says whose it is.
			r.cloud.ClearFaults()
			r.relabel(r.onlyServer().ID, map[string]any{
				provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a", clusterLabel: "shoot-a"})
			r.mustCreate(machine("m1"))
			r.mustCreate(machine("m2"))
			r.mustRemove(machine("m1"))
			if left := r.onlyServer(); left.Name != "m2" {
				t.Errorf("%s is left", left.Name)
			}
		})
	}
}

// A server without its labels keeps nothing from the class's other machines, nor its own machine from another server
// once somebody says that it is not its.
func TestWhatAServerWithoutItsLabelsHoldsUp(t *testing.T) {
	for name, somebody := range map[string]func(r *rig, serverID string){
		"it is renamed": func(r *rig, serverID string) { r.rename(serverID, "stranger") },
		"it is deleted": func(r *rig, serverID string) { r.deleteByHand(serverID) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.makeServer("m2", nil)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true})
			wantReason(t, r.createErr(machine("m1")), provider.ReasonLabelsMissing)
			r.mustCreate(machine("m2"))
			for _, server := range r.cloud.Servers() {
				if server.Name == "m1" {
					somebody(r, server.ID)
				}
			}
			<-time.After(time.Minute)
			if response := r.mustCreateAsManager(machine("m1")); response.ProviderID == "" {
				t.Error("machine m1 has no server")
			}
			r.mustCreate(machine("m3"))
		})
	}
}

// They may take settle to show; a list that does not show them after that may be old, a GET may not.
func TestLabelsThatShowLateAreWaitedFor(t *testing.T) {
	readNothing := func(r *rig, m *v1alpha1.Machine) {
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		_, err := r.driver.CreateMachine(ctx,
			&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
		wantCode(t, err, codes.DeadlineExceeded)
	}
	for name, row := range map[string]struct {
		call     func(r *rig, m *v1alpha1.Machine) error
		labelled time.Duration // with its name, after its POST
		left     int
	}{
		"creation": {(*rig).createErr, 20 * time.Second, 1},
		"creation after one that read nothing, by an old list": {func(r *rig, m *v1alpha1.Machine) error {
			readNothing(r, m)
			<-time.After(provider.DefaultSettle)
			r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Duration: 5 * time.Second, Status: http.StatusForbidden})
			return r.createErr(m)
		}, 33 * time.Second, 1},
		"deletion after a creation that read nothing": {func(r *rig, m *v1alpha1.Machine) error {
			readNothing(r, m)
			return r.remove(m)
		}, 20 * time.Second, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true})
			m := machine("m1")
			done := start(func() error { return row.call(r, m) })
			<-time.After(20 * time.Second)
			made := r.onlyServer().ID
			r.relabel(made, map[string]any{provider.StackitMachineClassLabel: "class-a", clusterLabel: "shoot-a"})
			<-time.After(row.labelled - 20*time.Second)
			r.relabel(made, map[string]any{provider.StackitMachineLabel: "m1"})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			servers := r.cloud.Servers()
			if len(servers) != row.left || row.left == 1 && servers[0].ID != made {
				t.Errorf("%+v are left, want %d, made %s", servers, row.left, made)
			}
		})
	}
}

// The Secret or the class is edited while the Machine is created.
func TestASecretThatNamesAnotherProjectLosesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m.UID = "uid"
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 5 * time.Second, EmptyList: true})
		done := r.startCreate(m)
		<-time.After(time.Second)
		secret, class := r.secret.DeepCopy(), r.class.DeepCopy()
		r.secret.Data["projectId"] = []byte(iaasmock.SecondProjectID)
		r.secret.Data["serviceAccountKey"] = keys().secondProject
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"networkId": iaasmock.SecondProjectNetworkID}
		})
		wantCode(t, r.createErr(m), codes.FailedPrecondition)
		wantCode(t, r.remove(m), codes.FailedPrecondition)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.onlyServer()
		wantCode(t, r.createErr(m), codes.FailedPrecondition)
		r.secret, r.class = secret, class
		r.mustRemove(m)
		r.wantNothingLeft()
	})
}

// The class gets the cluster label that the log asks for while a POST is open.
func TestAClusterLabelThatIsAddedHidesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		withLabel := r.class.ProviderSpec
		r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 5 * time.Second, EmptyList: true})
		done := r.startCreate(m)
		<-time.After(2 * time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized})
		wantCode(t, <-done, codes.Unavailable)
		r.cloud.ClearFaults()
		r.class = r.class.DeepCopy()
		r.class.ProviderSpec = withLabel
		wantCode(t, r.createErr(m), codes.FailedPrecondition)
		r.onlyServer()
	})
}

// The call ended before it could read what the answer named; the Machine is deleted.
func TestDeleteMachineAfterAnAnswerThatNamedAnothersServer(t *testing.T) {
	for name, notFound := range map[string]bool{"found at once": false, "found while its deletion is waited for": true} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			other := r.makeServer("other", nil)
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, OtherServer: other, Executed: true})
			r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusServiceUnavailable})
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: time.Second, Status: http.StatusServiceUnavailable})
			wantCode(t, r.createErr(machine("m1")), codes.DeadlineExceeded)
			r.cloud.ClearFaults()
			if notFound {
				r.cloud.Inject(randomNotFound)
			}
			r.mustRemove(machine("m1"))
			r.wantOnly(other)
		})
	}
}

// One look-up shows the server DELETING, a later one of the same call shows it ACTIVE again.
func TestCreateMachineDeletesNoServerThatItUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		id := r.makeServer("m1", nil)
		<-time.After(30 * time.Second)
		r.restartNow()
		r.setStatus(id, iaasmock.StatusDeleting, "")
		done := r.startCreate(m)
		<-time.After(5 * time.Second)
		r.setStatus(id, iaasmock.StatusActive, "")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if deletions := r.cloud.CallCounts()["DeleteServer"]; deletions > 0 || r.onlyServer().ID != id {
			t.Errorf("%d deletions of the server that is the answer", deletions)
		}
	})
}

// The foreign ID asks for a human, which takes the manager 10 minutes; the machine's own server, whose DELETE met a
// 503, goes with the same call.
func TestAForeignIDDoesNotPutOffTheOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign, own := r.makeServer("m2", nil), r.makeServer("m1", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: own, Duration: 20 * time.Second,
			Status: http.StatusServiceUnavailable})
		m := withID(r.deleted(machine("m1")), providerIDOf(foreign))
		wantCode(t, r.delete(m), codes.FailedPrecondition)
		r.wantOnly(foreign)
	})
}

// A server of the Machine's name that lacks a label may be its own, from before there were labels,
// or one that somebody edited: nothing is made beside it.
func TestAServerFromBeforeLabelsIsNoNone(t *testing.T) {
	const machineLabel, classLabel = provider.StackitMachineLabel, provider.StackitMachineClassLabel
	ofClass, ofCluster := map[string]any{}, map[string]any{clusterLabel: "shoot-a"}
	set := func(pairs ...string) map[string]any {
		labels := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			labels[pairs[i]] = pairs[i+1]
		}
		return labels
	}
	const refused, made = codes.FailedPrecondition, codes.OK
	for name, row := range map[string]struct {
		class        map[string]any // the providerSpec's labels
		projectLists bool
		labels       map[string]any // the server's
		want         codes.Code
	}{
		"no label at all":                    {ofCluster, true, set(), refused},
		"only its class label":               {ofCluster, true, set(classLabel, "class-a"), refused},
		"no machine label":                   {ofCluster, true, set(clusterLabel, "shoot-a", classLabel, "class-a"), refused},
		"no cluster label":                   {ofCluster, true, set(machineLabel, "m1", classLabel, "class-a"), refused},
		"no cluster label nor project lists": {ofCluster, false, set(machineLabel, "m1", classLabel, "class-a"), refused},
		"no class label":                     {ofClass, true, set(machineLabel, "m1"), refused},
		"no class label nor project lists":   {ofClass, false, set(machineLabel, "m1"), refused},
		"another machine's":                  {ofCluster, true, set(machineLabel, "m2", classLabel, "class-a"), made},
		"another cluster's, by key":          {ofCluster, true, set("example.org/cluster", "c", classLabel, "class-a"), made},
		"our cluster's, by another key": {ofCluster, true,
			set("example.org/cluster", "shoot-a", classLabel, "class-a", machineLabel, "m1"), refused},
		"another cluster's machine, by key": {ofCluster, true,
			set("example.org/cluster", "c", classLabel, "class-a", machineLabel, "m1"), made},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["labels"] = row.class })
			m := machine("m1")
			r.makeServer("m1", func(labels map[string]any) { clear(labels); maps.Copy(labels, row.labels) })
			if !row.projectLists {
				r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector, Status: http.StatusGatewayTimeout})
			}
			r.restartNow()
			_, err := r.createAsManager(m)
			wantCode(t, err, row.want)
			servers := 2
			if row.want != codes.OK {
				servers = 1
				wantReason(t, err, provider.ReasonNotOurs)
				wantReason(t, insist(func() error { return r.remove(m) }), provider.ReasonNotOurs)
			}
			if got := len(r.cloud.Servers()); got != servers {
				t.Errorf("%d servers, want %d", got, servers)
			}
		})
	}
}

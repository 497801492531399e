// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// describe describes Machine m1 some time from now.
func (r *rig) describe(later time.Duration) (*list.Description, error) {
	r.T.Helper()
	r.MakeClusters()
	r.Access.Clock = clocktesting.NewFakeClock(time.Now().Add(later))
	return list.Describe(r.T.Context(), r.Access, "m1")
}

// ownedServer is one of m1.
func (r *rig) ownedServer() string {
	r.T.Helper()
	return r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
}

// owned is m1 with a MachineSet, which has a MachineDeployment.
func owned(r *rig, machine *v1alpha1.Machine) *v1alpha1.Machine {
	owner := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
	}
	machine.OwnerReferences = owner("MachineSet", "pool-1")
	r.Add(&v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "pool-1", OwnerReferences: owner("MachineDeployment", "pool")},
		Spec:       v1alpha1.MachineSetSpec{Replicas: 3}, Status: v1alpha1.MachineSetStatus{ReadyReplicas: 2},
	}, &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "pool"},
		Spec:       v1alpha1.MachineDeploymentSpec{Replicas: 4}, Status: v1alpha1.MachineDeploymentStatus{ReadyReplicas: 1},
	})
	return machine
}

func TestDescribeARunningMachine(t *testing.T) {
	r := newRig(t)
	id := r.ownedServer()
	machine := owned(r, testrig.Machine("m1", "worker", id))
	machine.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful, Description: "made\nit"}
	r.Add(machine, testrig.Node("m1", id, corev1.ConditionTrue))
	// Others are none of its business.
	r.Add(testrig.Machine("m2", "worker", r.Server("m2", testrig.Labels("m2", "worker", testrig.OwnCluster))))
	r.Cloud.ResetCalls()
	found, err := r.describe(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"ListServers": 1, "ListServerNICs": 1}, r.Cloud.CallCounts()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !r.Cloud.Calls()[0].Query.Has("label_selector") {
		t.Errorf("listed by %v, want the label of its cluster", r.Cloud.Calls()[0].Query)
	}
	if found.Deployment.Name != "pool" || *found.Deployment.Desired != 4 || *found.Deployment.Ready != 1 || found.Set.Name != "pool-1" || *found.Set.Desired != 3 || *found.Set.Ready != 2 {
		t.Errorf("got owners %+v and %+v", found.Deployment, found.Set)
	}
	if last := found.Machine.LastOperation; found.Machine.Name != "m1" || found.Machine.Server != id || last.Type != "Create" || last.State != "Successful" || last.Description != "made it" {
		t.Errorf("got %+v", found.Machine)
	}
	if found.Node == nil || found.Node.Name != "m1" || found.Node.Readiness != list.Ready {
		t.Errorf("got Node %+v", found.Node)
	}
	if len(found.Servers) != 1 || found.Servers[0].ID != id || len(found.Servers[0].NICs) != 1 {
		t.Fatalf("got servers %+v", found.Servers)
	}
	if nic := found.Servers[0].NICs[0]; nic.ID == "" || nic.Network != iaasmock.DefaultDualStackNetworkID || len(nic.Addresses) != 2 || nic.AllowedAddresses == nil || !slices.Equal(nic.Addresses, found.Servers[0].Addresses) {
		t.Errorf("got %+v of %+v", nic, found.Servers[0])
	}
	if len(found.Machine.Notes) > 0 || len(found.Unread) > 0 {
		t.Errorf("got notes %v, unread %v", found.Machine.Notes, found.Unread)
	}
}

func TestDescribeNotes(t *testing.T) {
	for name, row := range map[string]struct {
		given func(r *rig)
		later time.Duration
		// machine and servers are their notes, says a text of the JSON, unread parts.
		machine []string
		servers [][]string
		says    string
		unread  []list.Part
	}{
		"no Node after minutes": {given: func(r *rig) { r.Add(testrig.Machine("m1", "worker", r.ownedServer())) }, later: 7 * time.Minute,
			machine: []string{"no Node"}, servers: [][]string{{}}, says: "server ACTIVE, 7m old, no Node"},
		"no Node, but soon": {given: func(r *rig) { r.Add(testrig.Machine("m1", "worker", r.ownedServer())) }, later: 4 * time.Minute,
			machine: []string{}, servers: [][]string{{}}, says: `"readiness":"none"`},
		"no Node, but being deleted": {given: func(r *rig) {
			machine := testrig.Machine("m1", "worker", r.ownedServer())
			machine.DeletionTimestamp, machine.Finalizers = new(metav1.Now()), []string{"a/b"}
			r.Add(machine)
		}, later: time.Hour, machine: []string{}, servers: [][]string{{}}},
		"no Node, but the server does not run": {given: func(r *rig) {
			id := r.ownedServer()
			must(r, r.Cloud.SetServerStatus(id, iaasmock.StatusInactive, ""))
			r.Add(testrig.Machine("m1", "worker", id))
		}, later: time.Hour, machine: []string{}, servers: [][]string{{}}},
		"Nodes that cannot be read": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.ownedServer()))
			r.MakeClusters()
			r.Access.Target, r.Access.TargetError = nil, errors.New("no way")
		}, later: time.Hour, machine: []string{}, servers: [][]string{{}}, says: `"readiness":"unknown"`, unread: []list.Part{list.PartNodes}},
		"no target cluster": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.ownedServer()))
			r.MakeClusters()
			r.Access.Target = nil
		}, later: time.Hour, machine: []string{}, servers: [][]string{{}}},
		"stuck, with a remedy": {given: func(r *rig) {
			machine := testrig.InPhase(testrig.Machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff)
			machine.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed,
				Description: "machine codes error: code = [ResourceExhausted] message = [QuotaExceeded: Quota exceeded: creating a server: status 403]"}
			r.Add(machine)
		}, machine: []string{"stuck: QuotaExceeded"}, says: "raise it, or scale something else down"},
		"two servers": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.ownedServer()), testrig.Node("m1", "x", corev1.ConditionTrue))
			r.ownedServer()
		}, machine: []string{"duplicate"}, servers: [][]string{{}, {"duplicate"}}, says: "the manager deletes it itself"},
		"a server that is not its own": {given: func(r *rig) {
			machine := testrig.Machine("m1", "worker", "")
			machine.Spec.ProviderID = "stackit://" + testrig.OtherProject + "/" + r.Server("m2", testrig.Labels("m2", "worker", testrig.OwnCluster))
			machine.DeletionTimestamp, machine.Finalizers = new(metav1.Now()), []string{"a/b"}
			r.Add(machine)
		}, machine: []string{}, servers: [][]string{{"contradicting label kubernetes.io/machine"}}},
		"its server is gone": {given: func(r *rig) { r.Add(testrig.Machine("m1", "worker", elsewhere)) },
			machine: []string{"no server"}, says: "server " + elsewhere + " is not in project"},
		"servers that may not be listed": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", elsewhere))
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		}, machine: []string{"unknown"}, says: `"state":"unknown"`, unread: []list.Part{list.PartServers}},
		"NICs that may not be read": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.ownedServer()))
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Status: http.StatusForbidden})
		}, machine: []string{}, servers: [][]string{{}}, says: `"nics":null`, unread: []list.Part{list.PartNICs}},
		"a MachineSet that is not there": {given: func(r *rig) {
			machine := testrig.Machine("m1", "worker", r.ownedServer())
			machine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "lost", Controller: new(true)}}
			r.Add(machine)
		}, machine: []string{}, servers: [][]string{{}}, says: `"machineSet":{"name":"lost"}`, unread: []list.Part{list.PartOwners}},
		"its class is gone": {given: func(r *rig) {
			r.Add(testrig.Machine("m1", "none", r.Server("m1", testrig.Labels("m1", "none", testrig.OwnCluster))))
		},
			machine: []string{"class deleted"}, servers: [][]string{{"class deleted"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			found, err := r.describe(row.later)
			must(r, err)
			got := [][]string{}
			for _, server := range found.Servers {
				got = append(got, words(server.Notes))
			}
			if diff := cmp.Diff(append([][]string{row.machine}, row.servers...), append([][]string{words(found.Machine.Notes)}, got...)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			var unread []list.Part
			for _, part := range found.Unread {
				unread = append(unread, part.Part)
			}
			if !slices.Equal(unread, row.unread) {
				t.Errorf("got unread %v, want %v", found.Unread, row.unread)
			}
			text, err := json.Marshal(found)
			if err != nil || !strings.Contains(string(text), row.says) || strings.Contains(string(text), "secret user data") || strings.Contains(string(text), "c2VjcmV0") {
				t.Errorf("got %s, %v, want %s and no secret", text, err, row.says)
			}
		})
	}
}

// What to look at first is the console log, by a line to copy.
func TestDescribeNamesTheConsoleLog(t *testing.T) {
	r := newRig(t)
	id := r.ownedServer()
	r.Add(testrig.Machine("m1", "worker", id))
	found, err := r.describe(7 * time.Minute)
	must(r, err)
	want := fmt.Sprintf("stackit server log %s --project-id %s --region %s", id, iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	if len(found.Machine.Notes) != 1 || !strings.HasSuffix(found.Machine.Notes[0].Remedy, want) {
		t.Errorf("got %+v, want %s", found.Machine.Notes, want)
	}
}

func TestDescribeWithoutTheMachine(t *testing.T) {
	forbidden := errors.New("no Machines for you")
	for name, row := range map[string]struct {
		given func(r *rig)
		want  string
	}{
		"nobody has the name": {func(*rig) {}, "there is no Machine shoot--demo/m1: "},
		"another namespace has it": {func(r *rig) {
			machine := testrig.Machine("m1", "worker", "")
			machine.Namespace = "other"
			r.Add(machine)
		}, "there is no Machine shoot--demo/m1: "},
		"it may not be read": {func(r *rig) {
			r.Funcs.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return forbidden
			}
		}, "reading Machine shoot--demo/m1: no Machines for you"},
		"it may not be listed": {func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", ""))
			r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				if _, isMachines := into.(*v1alpha1.MachineList); isMachines {
					return forbidden
				}
				return c.List(ctx, into, options...)
			}
		}, "Machines unknown: listing Machines: no Machines for you"},
		"no cluster": {func(r *rig) { r.Clusterless, r.Access.ControlError = true, errors.New("no kubeconfig") }, "no kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			if found, err := r.describe(0); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got %+v and %v, want %s", found, err, row.want)
			}
		})
	}
}

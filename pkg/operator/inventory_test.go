// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// elsewhere is a server ID that no cloud has.
const elsewhere = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// notes are what an inventory says of servers, by name, and Machines.
type notes map[string][]string

func notesOf(found *operator.Inventory) notes {
	all := notes{}
	for _, server := range found.Servers {
		all["server "+server.Name] = words(server.Notes)
	}
	for _, machine := range found.Machines {
		all["machine "+machine.Name] = words(machine.Notes)
	}
	return all
}

func TestNotes(t *testing.T) {
	for name, row := range map[string]struct {
		given func(r *rig)
		want  notes
	}{
		"a Machine and its server": {func(r *rig) {
			r.add(machine("m1", "worker", r.server("m1", labels("m1", "worker", ownCluster))))
		}, notes{"server m1": {}, "machine m1": {}}},

		"no Machine": {func(r *rig) {
			r.server("m1", labels("m1", "worker", ownCluster))
		}, notes{"server m1": {"orphan"}}},

		"no Machine, but the server is being deleted": {func(r *rig) {
			id := r.server("m1", labels("m1", "worker", ownCluster))
			must(r, r.cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""))
		}, notes{"server m1": {}}},

		"no Machine, and no class": {func(r *rig) {
			r.server("m1", labels("m1", "gone", ownCluster))
		}, notes{"server m1": {"class deleted", "orphan"}}},

		"the Machine is in another namespace, without a ProviderID": {func(r *rig) {
			r.server("m1", labels("m1", "worker", ownCluster))
			other, itsClass := inPhase(machine("m1", "worker", ""), ""), class("worker", nil)
			other.Namespace, itsClass.Namespace = "other", "other"
			r.add(other, itsClass)
			r.server("m2", labels("m2", "worker", ownCluster))
		}, notes{"server m1": {"contradicting label " + clusterKey}, "server m2": {"orphan"}}},

		"another cluster": {func(r *rig) {
			r.server("m1", labels("m1", "worker", "shoot--demo--other"))
		}, notes{"server m1": {"of another cluster"}}},

		"another cluster, with a Machine of this name here": {func(r *rig) {
			r.server("m1", labels("m1", "worker", "shoot--demo--other"))
			r.add(inPhase(machine("m1", "worker", ""), ""))
		}, notes{"server m1": {"of another cluster"}, "machine m1": {"stuck: nothing at all"}}},

		"another cluster with another key": {func(r *rig) {
			all := labels("m1", "worker", "")
			all["ske.stackit.cloud/cluster"] = ownCluster
			r.server("m1", all)
		}, notes{"server m1": {"of another cluster"}}},

		"no cluster label, and no class of this name": {func(r *rig) {
			r.server("m1", labels("m1", "other", ""))
		}, notes{"server m1": {"of another cluster"}}},

		"no cluster label, and a class of this name": {func(r *rig) {
			r.add(class("plain", nil))
			r.server("m1", labels("m1", "plain", ""))
			r.server("m2", labels("m2", "worker", ""))
		}, notes{"server m1": {"cluster unknown"}, "server m2": {"cluster unknown"}}},

		"the class's cluster label cannot be used": {func(r *rig) {
			r.add(class("broken", map[string]any{"labels": map[string]any{clusterKey: "not a label"}}))
			r.server("m1", labels("m1", "broken", "who-knows"))
			r.add(machine("m2", "broken", r.server("m2", labels("m2", "broken", "who-knows"))))
		}, notes{"server m1": {"cluster unknown"}, "server m2": {}, "machine m2": {}}},

		"the class has no cluster label": {func(r *rig) {
			r.add(class("plain", nil), inPhase(machine("m1", "plain", ""), ""))
			r.server("m1", labels("m1", "plain", ""))
		}, notes{"server m1": {}, "machine m1": {}}},

		"a class of null": {func(r *rig) {
			null := class("null", nil)
			null.ProviderSpec.Raw = []byte("null")
			r.add(null, machine("m1", "null", ""))
		}, notes{"machine m1": {"no server"}}},

		"servers that are not the manager's": {func(r *rig) {
			r.server("bastion", nil)
			r.server("half", map[string]string{"kubernetes.io/machine": "half"})
		}, notes{"server bastion": {"unmanaged"}, "server half": {"unmanaged"}}},

		"a server that came from OpenStack": {func(r *rig) {
			made := machine("m1", "worker", "")
			made.Spec.ProviderID = "openstack:///" + r.server("m1", nil)
			r.add(made)
		}, notes{"server m1": {}, "machine m1": {}}},

		"the server names another Machine": {func(r *rig) {
			r.add(machine("m1", "worker", r.server("m1", labels("m2", "worker", ownCluster))))
		}, notes{"server m1": {"contradicting label kubernetes.io/machine"}, "machine m1": {"contradicting label kubernetes.io/machine"}}},

		"the server names another cluster": {func(r *rig) {
			r.add(machine("m1", "worker", r.server("m1", labels("m1", "worker", "shoot--demo--other"))))
		}, notes{"server m1": {"contradicting label " + clusterKey}, "machine m1": {"contradicting label " + clusterKey}}},

		"a Machine of the name in another cluster here": {func(r *rig) {
			other := class("other", map[string]any{"labels": map[string]any{clusterKey: "shoot--demo--other"}})
			r.add(other, inPhase(machine("m1", "other", ""), v1alpha1.MachineCrashLoopBackOff))
			r.server("m1", labels("m1", "worker", ownCluster))
		}, notes{"server m1": {"contradicting label " + clusterKey}, "machine m1": {"being created"}}},

		"two servers, and the ProviderID names one": {func(r *rig) {
			r.server("m1-old", labels("m1", "worker", ownCluster))
			r.add(machine("m1", "worker", r.server("m1", labels("m1", "worker", ownCluster))))
		}, notes{"server m1": {}, "server m1-old": {"duplicate"}, "machine m1": {"duplicate"}}},

		"two servers, and no ProviderID yet": {func(r *rig) {
			first := r.server("first", labels("m1", "worker", ownCluster))
			must(r, r.cloud.SetServerStatus(first, iaasmock.StatusError, "No valid host was found"))
			r.server("second", labels("m1", "worker", ownCluster))
			r.add(inPhase(machine("m1", "worker", ""), ""))
		}, notes{"server first": {"duplicate", "fault"}, "server second": {}, "machine m1": {"duplicate"}}},

		"the class of a Machine is gone": {func(r *rig) {
			r.add(machine("m1", "gone", r.server("m1", labels("m1", "gone", ownCluster))))
		}, notes{"server m1": {"class deleted"}, "machine m1": {"class deleted"}}},

		"the server is gone": {func(r *rig) {
			r.add(machine("m1", "worker", elsewhere))
		}, notes{"machine m1": {"no server"}}},

		"the server is being deleted": {func(r *rig) {
			id := r.server("m1", labels("m1", "worker", ownCluster))
			must(r, r.cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""))
			r.add(machine("m1", "worker", id))
		}, notes{"server m1": {}, "machine m1": {"no server"}}},

		"the server is gone, and so is the Machine soon": {func(r *rig) {
			made := machine("m1", "worker", elsewhere)
			made.DeletionTimestamp, made.Finalizers = new(metav1.Now()), []string{"machine.sapcloud.io/machine-controller"}
			r.add(made)
		}, notes{"machine m1": {}}},

		"the list may not show the server yet": {func(r *rig) {
			made := machine("m1", "worker", elsewhere)
			made.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachinePending, LastUpdateTime: metav1.Now()}
			r.add(made)
		}, notes{"machine m1": {"being created"}}},

		"the list should show the server by now": {func(r *rig) {
			made := machine("m1", "worker", elsewhere)
			made.Status.CurrentStatus.Phase = v1alpha1.MachinePending
			r.add(made)
		}, notes{"machine m1": {"no server"}}},

		"the ProviderID is of another project": {func(r *rig) {
			made := machine("m1", "worker", "")
			made.Spec.ProviderID = "stackit://" + iaasmock.SecondProjectID + "/" + elsewhere
			r.add(made)
		}, notes{"machine m1": {"no server"}}},

		"a Machine just made": {func(r *rig) {
			made := inPhase(machine("m1", "worker", ""), "")
			made.CreationTimestamp = metav1.Now()
			r.add(made)
		}, notes{"machine m1": {"being created"}}},

		"a Machine of which nothing is said": {func(r *rig) {
			r.add(inPhase(machine("m1", "worker", ""), ""))
		}, notes{"machine m1": {"stuck: nothing at all"}}},

		"a creation that fails": {func(r *rig) {
			r.add(failed(inPhase(machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff),
				"Cloud provider message - machine codes error: code = [ResourceExhausted] message = [Quota exceeded: creating a server: status 403]"))
		}, notes{"machine m1": {"stuck: ResourceExhausted"}}},

		"a failure without a code": {func(r *rig) {
			r.add(failed(inPhase(machine("m1", "worker", ""), v1alpha1.MachineFailed), "Machine m1 failed to join the cluster in 20m0s."))
		}, notes{"machine m1": {"no server", "stuck"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			found := r.look(operator.Query{Unmanaged: true})
			if diff := cmp.Diff(row.want, notesOf(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(found.Unread) > 0 {
				t.Errorf("not read: %v", found.Unread)
			}
		})
	}
}

func must(r *rig, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func failed(made *v1alpha1.Machine, description string) *v1alpha1.Machine {
	made.Status.LastOperation = v1alpha1.LastOperation{Description: description, State: v1alpha1.MachineStateFailed, Type: v1alpha1.MachineOperationCreate}
	return made
}

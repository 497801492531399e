// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"fmt"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// elsewhere is a server ID that no cloud has.
const elsewhere = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// notes are what an inventory says of servers, by name, and Machines.
type notes map[string][]string

func notesOf(found *list.Inventory) notes {
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
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))))
		}, notes{"server m1": {}, "machine m1": {}}},

		"no Machine": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
		}, notes{"server m1": {"orphan"}}},

		"no Machine, but the server is being deleted": {func(r *rig) {
			id := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			must(r, r.Cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""))
		}, notes{"server m1": {"orphan being deleted"}}},

		"no Machine, and no class": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "gone", testrig.OwnCluster))
		}, notes{"server m1": {"class deleted", "orphan"}}},

		"the Machine is in another testrig.Namespace, without a ProviderID": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			other, itsClass := testrig.InPhase(testrig.Machine("m1", "worker", ""), ""), testrig.Class("worker", nil)
			other.Namespace, itsClass.Namespace = "other", "other"
			r.Add(other, itsClass)
			r.Server("m2", testrig.Labels("m2", "worker", testrig.OwnCluster))
		}, notes{"server m1": {"contradicting label " + testrig.ClusterKey}, "server m2": {"orphan"}}},

		"another cluster": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", "shoot--demo--other"))
		}, notes{"server m1": {"of another cluster"}}},

		"another cluster, with a Machine of this name here": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", "shoot--demo--other"))
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"server m1": {"contradicting label " + testrig.ClusterKey}, "machine m1": {"stuck: nothing at all"}}},

		"no cluster label, with a Machine of this name here": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", ""))
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"server m1": {"contradicting label " + testrig.ClusterKey}, "machine m1": {"stuck: nothing at all"}}},

		"a Machine of the server's own name": {func(r *rig) {
			r.Server("m1", testrig.Labels("m2", "worker", testrig.OwnCluster))
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"server m1": {"contradicting label kubernetes.io/machine"}, "machine m1": {"stuck: nothing at all"}}},

		"one value under two keys": {func(r *rig) {
			all := testrig.Labels("m1", "worker", testrig.OwnCluster)
			all["ske.stackit.cloud/cluster"] = testrig.OwnCluster
			r.Server("m1", all)
		}, notes{"server m1": {"orphan"}}},

		"another value under a second key": {func(r *rig) {
			all := testrig.Labels("m1", "worker", testrig.OwnCluster)
			all["ske.stackit.cloud/cluster"] = "shoot--demo--other"
			r.Server("m1", all)
		}, notes{"server m1": {"of another cluster"}}},

		"another cluster with another key": {func(r *rig) {
			all := testrig.Labels("m1", "worker", "")
			all["ske.stackit.cloud/cluster"] = testrig.OwnCluster
			r.Server("m1", all)
		}, notes{"server m1": {"of another cluster"}}},

		"no cluster label, and no class of this name": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "other", ""))
		}, notes{"server m1": {"of another cluster"}}},

		"no cluster label, and a class of this name": {func(r *rig) {
			r.Add(testrig.Class("plain", nil))
			r.Server("m1", testrig.Labels("m1", "plain", ""))
			r.Server("m2", testrig.Labels("m2", "worker", ""))
		}, notes{"server m1": {"cluster unknown"}, "server m2": {"cluster unknown"}}},

		"the class's cluster label cannot be used": {func(r *rig) {
			r.Add(testrig.Class("broken", map[string]any{"labels": map[string]any{testrig.ClusterKey: "not a label"}}))
			r.Server("m1", testrig.Labels("m1", "broken", "who-knows"))
			r.Add(testrig.Machine("m2", "broken", r.Server("m2", testrig.Labels("m2", "broken", "who-knows"))))
		}, notes{"server m1": {"cluster unknown"}, "server m2": {}, "machine m2": {}}},

		"the class has no cluster label": {func(r *rig) {
			r.Add(testrig.Class("plain", nil), testrig.InPhase(testrig.Machine("m1", "plain", ""), ""))
			r.Server("m1", testrig.Labels("m1", "plain", ""))
		}, notes{"server m1": {}, "machine m1": {}}},

		"a class of null": {func(r *rig) {
			null := testrig.Class("null", nil)
			null.ProviderSpec.Raw = []byte("null")
			r.Add(null, testrig.Machine("m1", "null", ""))
		}, notes{"machine m1": {"no server"}}},

		"servers that are not the manager's": {func(r *rig) {
			r.Server("bastion", nil)
			r.Server("half", map[string]string{"kubernetes.io/machine": "half"})
		}, notes{"server bastion": {"unmanaged"}, "server half": {"unmanaged"}}},

		"a server that came from OpenStack": {func(r *rig) {
			made := testrig.Machine("m1", "worker", "")
			made.Spec.ProviderID = "openstack:///" + r.Server("m1", nil)
			r.Add(made)
		}, notes{"server m1": {}, "machine m1": {"from OpenStack"}}},

		"labelled servers, named in other forms": {func(r *rig) {
			for i, format := range []string{"openstack:///eu01/%s", "openstack:///%s", "stackit://%s"} {
				name := fmt.Sprint("m", i)
				made := testrig.Machine(name, "worker", "")
				made.Spec.ProviderID = fmt.Sprintf(format, r.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster)))
				r.Add(made)
			}
		}, notes{
			"server m0": {"ProviderID in another form"}, "machine m0": {"ProviderID in another form", "from OpenStack"},
			"server m1": {"ProviderID in another form"}, "machine m1": {"ProviderID in another form", "from OpenStack"},
			"server m2": {"ProviderID in another form"}, "machine m2": {"ProviderID in another form"},
		}},

		"a labelled server that is being deleted, named in another form": {func(r *rig) {
			id := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			must(r, r.Cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""))
			made := testrig.Machine("m1", "worker", "")
			made.Spec.ProviderID = "openstack:///" + id
			r.Add(made)
		}, notes{"server m1": {}, "machine m1": {"from OpenStack", "no server"}}},

		"the server names another Machine": {func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m2", "worker", testrig.OwnCluster))))
		}, notes{"server m1": {"contradicting label kubernetes.io/machine"}, "machine m1": {"contradicting label kubernetes.io/machine"}}},

		"the server names another cluster": {func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", "shoot--demo--other"))))
		}, notes{"server m1": {"contradicting label " + testrig.ClusterKey}, "machine m1": {"contradicting label " + testrig.ClusterKey}}},

		"a Machine of the name in another cluster here": {func(r *rig) {
			other := testrig.Class("other", map[string]any{"labels": map[string]any{testrig.ClusterKey: "shoot--demo--other"}})
			r.Add(other, testrig.InPhase(testrig.Machine("m1", "other", ""), v1alpha1.MachineCrashLoopBackOff))
			r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
		}, notes{"server m1": {"contradicting label " + testrig.ClusterKey}, "machine m1": {"being created"}}},

		"two servers, and the ProviderID names one": {func(r *rig) {
			r.Server("m1-old", testrig.Labels("m1", "worker", testrig.OwnCluster))
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))))
		}, notes{"server m1": {}, "server m1-old": {"duplicate"}, "machine m1": {"duplicate"}}},

		"two servers, and no ProviderID yet": {func(r *rig) {
			first := r.Server("first", testrig.Labels("m1", "worker", testrig.OwnCluster))
			must(r, r.Cloud.SetServerStatus(first, iaasmock.StatusError, "No valid host was found"))
			r.Server("second", testrig.Labels("m1", "worker", testrig.OwnCluster))
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"server first": {"duplicate", "fault"}, "server second": {}, "machine m1": {"duplicate"}}},

		"three servers, and no ProviderID yet": {func(r *rig) {
			for name, state := range map[string]string{"broken": iaasmock.StatusError, "going": iaasmock.StatusDeleting, "slow": iaasmock.StatusCreating} {
				must(r, r.Cloud.SetServerStatus(r.Server(name, testrig.Labels("m1", "worker", testrig.OwnCluster)), state, ""))
			}
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"server broken": {"duplicate"}, "server going": {}, "server slow": {}, "machine m1": {"duplicate"}}},

		"the class of a Machine is gone": {func(r *rig) {
			r.Add(testrig.Machine("m1", "gone", r.Server("m1", testrig.Labels("m1", "gone", testrig.OwnCluster))))
		}, notes{"server m1": {"class deleted"}, "machine m1": {"class deleted"}}},

		"the server is gone": {func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", elsewhere))
		}, notes{"machine m1": {"no server"}}},

		"the server is being deleted": {func(r *rig) {
			id := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			must(r, r.Cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""))
			r.Add(testrig.Machine("m1", "worker", id))
		}, notes{"server m1": {}, "machine m1": {"no server"}}},

		"the server is gone, and so is the Machine soon": {func(r *rig) {
			made := testrig.Machine("m1", "worker", elsewhere)
			made.DeletionTimestamp, made.Finalizers = new(metav1.Now()), []string{"machine.sapcloud.io/machine-controller"}
			r.Add(made)
		}, notes{"machine m1": {}}},

		"the list may not show the server yet": {func(r *rig) {
			made := testrig.Machine("m1", "worker", elsewhere)
			made.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachinePending, LastUpdateTime: metav1.Now()}
			r.Add(made)
		}, notes{"machine m1": {"being created"}}},

		"the list should show the server by now": {func(r *rig) {
			made := testrig.Machine("m1", "worker", elsewhere)
			made.Status.CurrentStatus.Phase = v1alpha1.MachinePending
			r.Add(made)
		}, notes{"machine m1": {"no server"}}},

		"the ProviderID is of another project": {func(r *rig) {
			made := testrig.Machine("m1", "worker", "")
			made.Spec.ProviderID = "stackit://" + iaasmock.SecondProjectID + "/" + elsewhere
			r.Add(made)
		}, notes{"machine m1": {"no server"}}},

		"a Machine just made": {func(r *rig) {
			made := testrig.InPhase(testrig.Machine("m1", "worker", ""), "")
			made.CreationTimestamp = metav1.Now()
			r.Add(made)
		}, notes{"machine m1": {"being created"}}},

		"a Machine of which nothing is said": {func(r *rig) {
			r.Add(testrig.InPhase(testrig.Machine("m1", "worker", ""), ""))
		}, notes{"machine m1": {"stuck: nothing at all"}}},

		"a creation that fails": {func(r *rig) {
			r.Add(failed(testrig.InPhase(testrig.Machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff),
				"Cloud provider message - machine codes error: code = [ResourceExhausted] message = [QuotaExceeded: Quota exceeded: creating a server: status 403]"))
		}, notes{"machine m1": {"stuck: QuotaExceeded"}}},

		"a creation that failed before texts had reasons": {func(r *rig) {
			r.Add(failed(testrig.InPhase(testrig.Machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff),
				"Cloud provider message - machine codes error: code = [ResourceExhausted] message = [Quota exceeded: creating a server: status 403]"))
		}, notes{"machine m1": {"stuck: ResourceExhausted"}}},

		"a failure without a code": {func(r *rig) {
			r.Add(failed(testrig.InPhase(testrig.Machine("m1", "worker", ""), v1alpha1.MachineFailed), "Machine m1 failed to join the cluster in 20m0s."))
		}, notes{"machine m1": {"no server", "stuck"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			found := r.look(list.Query{Unmanaged: true})
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
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

func failed(made *v1alpha1.Machine, description string) *v1alpha1.Machine {
	made.Status.LastOperation = v1alpha1.LastOperation{Description: description, State: v1alpha1.MachineStateFailed, Type: v1alpha1.MachineOperationCreate}
	return made
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestStuckMachineHasARemedy(t *testing.T) {
	r := newRig(t)
	r.add(failed(inPhase(machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff),
		"Cloud provider message - machine codes error: code = [ResourceExhausted] message = [Quota exceeded: creating a server:\nstatus 403 \x1bc]"))
	got := r.look(operator.Query{}).Machines[0].Notes
	want := []operator.Note{{
		Kind: operator.NoteStuck, About: "ResourceExhausted",
		Reason: "Quota exceeded: creating a server: status 403 ?c",
		Cause:  "the project's quota is used up",
		Remedy: "raise it, or scale something else down; the class gets the same answer for 1 minute",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEntries(t *testing.T) {
	r := newRig(t)
	ready, notReady := r.server("m1", labels("m1", "worker", ownCluster)), r.server("m2", labels("m2", "worker", ownCluster))
	r.add(machine("m1", "worker", ready), machine("m2", "worker", notReady), node("m1", ready, corev1.ConditionTrue), node("m2", notReady, corev1.ConditionUnknown))
	r.server("m3", labels("m3", "worker", ownCluster))
	found := r.look(operator.Query{Addresses: true})

	server := found.Servers[0]
	if len(server.Addresses) != 2 || !strings.HasPrefix(server.Addresses[0], "10.1.") || !strings.HasPrefix(server.Addresses[1], "fd00:1:") {
		t.Errorf("got addresses %v, want one of each family, IPv4 first", server.Addresses)
	}
	if age := found.Time.Sub(server.CreatedAt); age < 0 || age > time.Minute {
		t.Errorf("got an age of %s", age)
	}
	server.Addresses, server.CreatedAt = nil, time.Time{}
	want := operator.ServerEntry{
		ID: ready, Name: "m1", Project: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		Cluster: clusterKey + "=" + ownCluster, Class: "worker", Machine: "m1", Namespace: namespace, State: "ACTIVE",
		MachineType: iaasmock.DefaultMachineType, Zone: server.Zone, Node: "m1", Readiness: operator.Ready,
	}
	if diff := cmp.Diff(want, server); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if second, third := found.Servers[1].Readiness, found.Servers[2].Readiness; second != operator.NotReady || third != operator.NoNode {
		t.Errorf("got readiness %q and %q", second, third)
	}
	if m := found.Machines[1]; m.Server != notReady || m.State != "ACTIVE" || m.Node != "m2" || m.Readiness != operator.NotReady || m.Cluster != clusterKey+"="+ownCluster {
		t.Errorf("got machine %+v", m)
	}
	counts, err := json.Marshal(found.Clusters)
	must(r, err)
	if want := `[{"cluster":"kubernetes.io/cluster=shoot--demo--laptop","classes":1,"servers":3,"active":3,"machines":2,"ready":1,"orphans":1}]`; string(counts) != want {
		t.Errorf("got %s, want %s", counts, want)
	}
	all, err := json.Marshal(found)
	must(r, err)
	if strings.Contains(string(all), "secret user data") || strings.Contains(string(all), "c2VjcmV0") {
		t.Error("the inventory has user data")
	}
}

func TestFilters(t *testing.T) {
	r := newRig(t)
	r.add(class("other", map[string]any{"labels": map[string]any{clusterKey: "shoot--demo--other"}}))
	r.add(machine("a1", "worker", r.server("a1", labels("a1", "worker", ownCluster))))
	r.add(machine("b1", "other", r.server("b1", labels("b1", "other", "shoot--demo--other"))))
	r.add(machine("lost", "worker", r.server("lost", labels("lost", "worker", "typo"))))
	r.server("bastion", nil)
	r.server("b2", labels("b2", "other", "shoot--demo--other"))
	cluster := operator.Query{}
	must(r, cluster.SetCluster(clusterKey+"="+ownCluster))
	for name, row := range map[string]struct {
		query operator.Query
		want  string
	}{
		"everything of the manager": {operator.Query{}, "a1 b1 b2 lost / a1 b1 lost"},
		"everything":                {operator.Query{Unmanaged: true}, "a1 b1 b2 bastion lost / a1 b1 lost"},
		// The server of the Machine lost is not in the list of the label.
		"a cluster": {cluster, "a1 lost / a1 lost"},
		"a class":   {operator.Query{Class: "other"}, "b1 b2 / b1"},
		"a machine": {operator.Query{Machine: "b1"}, "b1 / b1"},
		"orphans":   {operator.Query{Orphans: true}, "b2 / "},
		"nothing":   {operator.Query{Class: "worker", Machine: "b1"}, " / "},
	} {
		t.Run(name, func(t *testing.T) {
			found := r.look(row.query)
			servers, machines := map[string]bool{}, []string{}
			for _, server := range found.Servers {
				servers[server.Name] = true
			}
			for _, machine := range found.Machines {
				machines = append(machines, machine.Name)
			}
			var names []string
			for _, name := range []string{"a1", "b1", "b2", "bastion", "lost"} {
				if servers[name] {
					names = append(names, name)
				}
			}
			if got := strings.Join(names, " ") + " / " + strings.Join(machines, " "); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if note := notesOf(found)["machine lost"]; len(note) > 0 && note[0] != "contradicting label "+clusterKey {
				t.Errorf("got %v for the Machine whose server lost its label", note)
			}
		})
	}
}

func TestSetCluster(t *testing.T) {
	for text, fine := range map[string]bool{
		clusterKey + "=" + ownCluster: true, "ske.stackit.cloud/cluster=a": true,
		"cluster=a": false, clusterKey: false, clusterKey + "=": false, clusterKey + "=a,b=c": false, "=a": false, "": false,
		"a b/cluster=a": false,
	} {
		var query operator.Query
		if err := query.SetCluster(text); (err == nil) != fine {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// forbid makes lists of a kind fail that are of all namespaces, or of any.
func (r *rig) forbid(list client.ObjectList, everywhere bool) {
	r.funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
		var all client.ListOptions
		all.ApplyOptions(options)
		if fmt.Sprintf("%T", into) == fmt.Sprintf("%T", list) && (everywhere || all.Namespace == "") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("not you"))
		}
		return c.List(ctx, into, options...)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	for name, row := range map[string]struct {
		given  func(r *rig)
		unread []operator.Part
		want   notes
		ready  operator.Readiness
	}{
		"no cluster": {func(r *rig) {
			r.clusterless = true
		}, []operator.Part{operator.PartMachines, operator.PartClasses}, notes{"server m1": {"unknown"}, "server orphan": {"unknown"}}, ""},
		"Machines forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineList{}, true)
		}, []operator.Part{operator.PartMachines, operator.PartOtherMachines}, notes{"server m1": {"unknown"}, "server orphan": {"unknown"}}, operator.Ready},
		"Machines of other namespaces forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineList{}, false)
		}, []operator.Part{operator.PartOtherMachines}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"unknown"}}, operator.Ready},
		"MachineClasses forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineClassList{}, true)
		}, []operator.Part{operator.PartClasses, operator.PartOtherClasses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"unknown"}}, operator.Ready},
		"MachineClasses of other namespaces forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineClassList{}, false)
		}, []operator.Part{operator.PartOtherClasses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, operator.Ready},
		"Nodes forbidden": {func(r *rig) {
			r.forbid(&corev1.NodeList{}, true)
		}, []operator.Part{operator.PartNodes}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, operator.ReadinessUnknown},
		"addresses refused": {func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusForbidden})
		}, []operator.Part{operator.PartAddresses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, operator.Ready},
		"servers refused": {func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		}, []operator.Part{operator.PartServers}, notes{"machine m1": {"unknown"}}, ""},
		"the class's Secret is gone": {func(r *rig) {
			r.op.Overrides = operator.Overrides{}
			r.objects = r.objects[1:]
		}, []operator.Part{operator.PartServers}, notes{"machine m1": {"unknown"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.op.Overrides = operator.Overrides{
				ProjectID: operator.Override{Value: iaasmock.DefaultProjectID}, Region: operator.Override{Value: iaasmock.DefaultRegion},
			}
			id := r.server("m1", labels("m1", "worker", ownCluster))
			r.add(machine("m1", "worker", id), node("m1", id, corev1.ConditionTrue))
			r.server("orphan", labels("orphan", "worker", ownCluster))
			row.given(r)
			found := r.look(operator.Query{Addresses: true})
			unread := map[operator.Part]bool{}
			for _, part := range found.Unread {
				unread[part.Part] = true
			}
			for _, part := range row.unread {
				if !unread[part] || found.Knows(part) {
					t.Errorf("%s should be unknown", part)
				}
			}
			if len(unread) != len(row.unread) {
				t.Errorf("got %v, want %v", found.Unread, row.unread)
			}
			if diff := cmp.Diff(row.want, notesOf(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(found.Servers) > 0 && found.Servers[0].Readiness != row.ready {
				t.Errorf("got readiness %q, want %q", found.Servers[0].Readiness, row.ready)
			}
			for _, server := range found.Servers {
				if known := server.Addresses != nil; known == unread[operator.PartAddresses] {
					t.Errorf("got addresses %v", server.Addresses)
				}
			}
		})
	}
}

func TestClassesOfOneProject(t *testing.T) {
	r := newRig(t)
	second := class("second", map[string]any{"labels": map[string]any{clusterKey: ownCluster}})
	otherRegion := class("elsewhere", map[string]any{"region": iaasmock.SecondRegion})
	r.add(second, otherRegion, machine("m1", "worker", r.server("m1", labels("m1", "worker", ownCluster))))
	r.cloud.ResetCalls()
	if found := r.look(operator.Query{}); len(found.Servers) != 1 || *found.Totals.Servers != 1 {
		t.Errorf("got %+v, want one server", found.Servers)
	}
	if lists := r.cloud.CallCounts()["ListServers"]; lists != 2 {
		t.Errorf("%d lists, want one for each region", lists)
	}
}

// Two keys of one project do not show its servers twice, and one that is revoked does not
// keep them from being shown.
func TestTwoKeysOfOneProject(t *testing.T) {
	for name, row := range map[string]struct {
		revoked int
		want    int
	}{
		"none is revoked": {0, 1}, "one is revoked": {1, 1}, "both are revoked": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.op.Sessions = &spi.PluginSPIImpl{Config: spi.Config{Endpoint: r.url, TokenURL: r.url + "/token"}}
			for i, key := range twoKeys() {
				must(r, r.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key))
				if i < row.revoked {
					must(r, r.cloud.RevokeServiceAccountKey(key))
				}
				secret := r.objects[0].DeepCopyObject().(*corev1.Secret)
				secret.Name, secret.Data["serviceAccountKey"] = fmt.Sprint("key-", i), key
				itsClass := class(fmt.Sprint("class-", i), nil)
				itsClass.SecretRef.Name = secret.Name
				r.add(secret, itsClass)
			}
			r.objects = slices.Delete(r.objects, 0, 2) // the Secret without a key, and its class
			r.server("m1", labels("m1", "class-0", ownCluster))
			found := r.look(operator.Query{})
			if len(found.Servers) != row.want || found.Knows(operator.PartServers) != (row.want > 0) {
				t.Errorf("got %+v, %v; want %d servers", found.Servers, found.Unread, row.want)
			}
		})
	}
}

// twoKeys makes two service-account keys, which takes a while.
var twoKeys = sync.OnceValue(func() (keys [][]byte) {
	for range 2 {
		key, err := iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

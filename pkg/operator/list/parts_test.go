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
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestStuckMachineHasARemedy(t *testing.T) {
	r := newRig(t)
	r.Add(failed(testrig.InPhase(testrig.Machine("m1", "worker", ""), v1alpha1.MachineCrashLoopBackOff),
		"Cloud provider message - machine codes error: code = [ResourceExhausted] message = [QuotaExceeded: Quota exceeded: creating a server:\nstatus 403 \x1bc]"))
	got := r.look(list.Query{}).Machines[0].Notes
	want := []list.Note{{
		Kind: list.NoteStuck, About: "QuotaExceeded",
		Reason: "QuotaExceeded: Quota exceeded: creating a server: status 403 ?c",
		Cause:  "the project's quota is used up",
		Remedy: "raise it, or scale something else down; the class gets the same answer for 1 minute",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEntries(t *testing.T) {
	r := newRig(t)
	ready, notReady := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster)), r.Server("m2", testrig.Labels("m2", "worker", testrig.OwnCluster))
	r.Add(testrig.Machine("m1", "worker", ready), testrig.Machine("m2", "worker", notReady), testrig.Node("m1", ready, corev1.ConditionTrue), testrig.Node("m2", notReady, corev1.ConditionUnknown))
	r.Server("m3", testrig.Labels("m3", "worker", testrig.OwnCluster))
	found := r.look(list.Query{Addresses: true})

	server := found.Servers[0]
	if len(server.Addresses) != 2 || !strings.HasPrefix(server.Addresses[0], "10.1.") || !strings.HasPrefix(server.Addresses[1], "fd00:1:") {
		t.Errorf("got addresses %v, want one of each family, IPv4 first", server.Addresses)
	}
	if age := found.Time.Sub(server.CreatedAt); age < 0 || age > time.Minute {
		t.Errorf("got an age of %s", age)
	}
	server.Addresses, server.CreatedAt = nil, time.Time{}
	want := list.ServerEntry{
		ID: ready, Name: "m1", Project: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		Cluster: testrig.ClusterKey + "=" + testrig.OwnCluster, Class: "worker", Machine: "m1", Namespace: testrig.Namespace, State: "ACTIVE",
		MachineType: iaasmock.DefaultMachineType, Zone: server.Zone, Node: "m1", Readiness: list.Ready,
	}
	if diff := cmp.Diff(want, server); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if second, third := found.Servers[1].Readiness, found.Servers[2].Readiness; second != list.NotReady || third != list.NoNode {
		t.Errorf("got readiness %q and %q", second, third)
	}
	if m := found.Machines[1]; m.Server != notReady || m.Project != iaasmock.DefaultProjectID || m.Region != iaasmock.DefaultRegion || m.State != "ACTIVE" || m.Node != "m2" || m.Readiness != list.NotReady || m.Cluster != testrig.ClusterKey+"="+testrig.OwnCluster {
		t.Errorf("got machine %+v", m)
	}
	counts, err := json.Marshal(found.Clusters)
	must(r, err)
	if want := `[{"cluster":"kubernetes.io/cluster=shoot--demo--laptop","projectIds":["10000000-0000-4000-8000-000000000001"],"classes":1,"servers":3,"active":3,"machines":2,"ready":1,"orphans":1}]`; string(counts) != want {
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
	r.Add(testrig.Class("other", map[string]any{"labels": map[string]any{testrig.ClusterKey: "shoot--demo--other"}}))
	r.Add(testrig.Machine("a1", "worker", r.Server("a1", testrig.Labels("a1", "worker", testrig.OwnCluster))))
	b1 := testrig.Machine("b1", "other", r.Server("b1", testrig.Labels("b1", "other", "shoot--demo--other")))
	b1.Labels["pool"] = "b"
	r.Add(b1)
	r.Add(testrig.Machine("lost", "worker", r.Server("lost", testrig.Labels("lost", "worker", "typo"))))
	r.Server("bastion", nil)
	r.Server("b2", testrig.Labels("b2", "other", "shoot--demo--other"))
	cluster := list.Query{}
	must(r, cluster.SetCluster(testrig.ClusterKey+"="+testrig.OwnCluster))
	for name, row := range map[string]struct {
		query list.Query
		want  string
	}{
		"everything of the manager": {list.Query{}, "a1 b1 b2 lost / a1 b1 lost"},
		"everything":                {list.Query{Unmanaged: true}, "a1 b1 b2 bastion lost / a1 b1 lost"},
		// The server of the Machine lost is not in the list of the label.
		"a cluster":           {cluster, "a1 lost / a1 lost"},
		"a class":             {list.Query{Class: "other"}, "b1 b2 / b1"},
		"a machine":           {list.Query{Machine: "b1"}, "b1 / b1"},
		"orphans":             {list.Query{Orphans: true}, "b2 / "},
		"nothing":             {list.Query{Class: "worker", Machine: "b1"}, " / "},
		"labels of a Machine": {list.Query{MachineLabels: selector(r, "pool notin (b),"+v1alpha1.NodeLabelKey)}, "a1 lost / a1 lost"},
		"labels of a server":  {list.Query{ServerLabels: selector(r, testrig.ClusterKey+"=shoot--demo--other")}, "b1 b2 / b1"},
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
			if note := notesOf(found)["machine lost"]; len(note) > 0 && note[0] != "contradicting label "+testrig.ClusterKey {
				t.Errorf("got %v for the Machine whose server lost its label", note)
			}
		})
	}
}

func selector(r *rig, text string) labels.Selector {
	parsed, err := labels.Parse(text)
	must(r, err)
	return parsed
}

func TestSetCluster(t *testing.T) {
	for text, fine := range map[string]bool{
		testrig.ClusterKey + "=" + testrig.OwnCluster: true, "ske.stackit.cloud/cluster=a": true,
		"cluster=a": false, testrig.ClusterKey: false, testrig.ClusterKey + "=": false, testrig.ClusterKey + "=a,b=c": false, "=a": false, "": false,
		"a b/cluster=a": false,
	} {
		var query list.Query
		if err := query.SetCluster(text); (err == nil) != fine {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// forbid makes lists of a kind fail that are of all namespaces, or of any.
func (r *rig) forbid(list client.ObjectList, everywhere bool) {
	r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
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
		unread []list.Part
		want   notes
		ready  list.Readiness
	}{
		"no cluster": {func(r *rig) {
			r.Clusterless = true
		}, []list.Part{list.PartMachines, list.PartClasses}, notes{"server m1": {"unknown"}, "server orphan": {"unknown"}}, ""},
		"Machines forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineList{}, true)
		}, []list.Part{list.PartMachines, list.PartOtherMachines}, notes{"server m1": {"unknown"}, "server orphan": {"unknown"}}, list.Ready},
		"Machines of other namespaces forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineList{}, false)
		}, []list.Part{list.PartOtherMachines}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"unknown"}}, list.Ready},
		"MachineClasses forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineClassList{}, true)
		}, []list.Part{list.PartClasses, list.PartOtherClasses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"unknown"}}, list.Ready},
		"MachineClasses of other namespaces forbidden": {func(r *rig) {
			r.forbid(&v1alpha1.MachineClassList{}, false)
		}, []list.Part{list.PartOtherClasses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, list.Ready},
		"Nodes forbidden": {func(r *rig) {
			r.forbid(&corev1.NodeList{}, true)
		}, []list.Part{list.PartNodes}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, list.ReadinessUnknown},
		"addresses refused": {func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusForbidden})
		}, []list.Part{list.PartAddresses}, notes{"server m1": {}, "machine m1": {}, "server orphan": {"orphan"}}, list.Ready},
		"servers refused": {func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		}, []list.Part{list.PartServers}, notes{"machine m1": {"unknown"}}, ""},
		"the class's Secret is gone": {func(r *rig) {
			r.Access.Overrides = account.Overrides{}
			r.Objects = r.Objects[1:]
		}, []list.Part{list.PartServers}, notes{"machine m1": {"unknown"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Access.Overrides = account.Overrides{
				ProjectID: account.Override{Value: iaasmock.DefaultProjectID}, Region: account.Override{Value: iaasmock.DefaultRegion},
			}
			id := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			r.Add(testrig.Machine("m1", "worker", id), testrig.Node("m1", id, corev1.ConditionTrue))
			r.Server("orphan", testrig.Labels("orphan", "worker", testrig.OwnCluster))
			row.given(r)
			found := r.look(list.Query{Addresses: true})
			unread := map[list.Part]bool{}
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
				if known := server.Addresses != nil; known == unread[list.PartAddresses] {
					t.Errorf("got addresses %v", server.Addresses)
				}
			}
		})
	}
}

func TestClassesOfOneProject(t *testing.T) {
	r := newRig(t)
	second := testrig.Class("second", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
	otherRegion := testrig.Class("elsewhere", map[string]any{"region": iaasmock.SecondRegion})
	r.Add(second, otherRegion, testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))))
	r.Cloud.ResetCalls()
	if found := r.look(list.Query{}); len(found.Servers) != 1 || *found.Totals.Servers != 1 {
		t.Errorf("got %+v, want one server", found.Servers)
	}
	if lists := r.Cloud.CallCounts()["ListServers"]; lists != 2 {
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
			r.Access.Sessions = &spi.PluginSPIImpl{Config: spi.Config{Endpoint: r.URL, TokenURL: r.URL + "/token"}}
			for i, key := range twoKeys() {
				must(r, r.Cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key))
				if i < row.revoked {
					must(r, r.Cloud.RevokeServiceAccountKey(key))
				}
				secret := r.Objects[0].DeepCopyObject().(*corev1.Secret)
				secret.Name, secret.Data["serviceAccountKey"] = fmt.Sprint("key-", i), key
				itsClass := testrig.Class(fmt.Sprint("class-", i), nil)
				itsClass.SecretRef.Name = secret.Name
				r.Add(secret, itsClass)
			}
			r.Objects = slices.Delete(r.Objects, 0, 2) // the Secret without a key, and its class
			r.Server("m1", testrig.Labels("m1", "class-0", testrig.OwnCluster))
			found := r.look(list.Query{})
			if len(found.Servers) != row.want || found.Knows(list.PartServers) != (row.want > 0) {
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

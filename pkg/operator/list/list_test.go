// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	ownCluster = testrig.ClusterKey + "=" + testrig.OwnCluster
	goneID     = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
)

// say returns the notes of Machines and servers in words, by name.
func say(found *Result) map[string]string {
	words := map[string]string{}
	add := func(name string, notes []Note) {
		var all []string
		for i := range notes {
			all = append(all, notes[i].String())
		}
		words[name] = strings.Join(all, ", ")
	}
	for _, machine := range found.Machines {
		add("machine "+machine.Name, machine.Notes)
	}
	for _, server := range found.Servers {
		add("server "+server.ServerName, server.Notes)
	}
	return words
}

// lines are the counting lines in a short form; -1 is unknown.
func lines(found *Result) map[string]string {
	all := map[string]string{}
	for _, c := range found.Clusters {
		number := func(n int, isKnown bool) int {
			if !isKnown {
				return -1
			}
			return n
		}
		all[c.Label] = fmt.Sprintf("%d %d %d %d", number(c.Machines, found.MachinesRead), number(c.Ready, found.MachinesRead),
			number(c.Servers, found.ServersRead), number(c.Orphans, found.OrphansRead))
	}
	return all
}

func own(machine string) map[string]string {
	return testrig.Labels(machine, "worker", testrig.OwnCluster)
}

func with(labels map[string]string, key, value string) map[string]string {
	labels[key] = value
	return labels
}

func failed(machine *v1alpha1.Machine, description string) *v1alpha1.Machine {
	testrig.InPhase(machine, v1alpha1.MachineCrashLoopBackOff)
	machine.Status.LastOperation = v1alpha1.LastOperation{State: v1alpha1.MachineStateFailed, Description: description}
	return machine
}

// stock is a cluster with something for each note.
func stock(t *testing.T) *testrig.Rig {
	t.Helper()
	r := instantRig(t)
	add := func(name string, labels map[string]string) string { return r.Server(name, labels) }
	healthy := add("healthy", own("healthy"))
	r.Add(testrig.WithNode(testrig.Machine("healthy", "worker", healthy), corev1.ConditionTrue))
	add("twin", own("healthy"))
	otherwise := testrig.WithNode(testrig.Machine("otherwise", "worker", ""), corev1.ConditionTrue)
	otherwise.Spec.ProviderID = "openstack:///eu01/" + add("otherwise", own("otherwise"))
	r.Add(otherwise)
	stolen := add("stolen", testrig.Labels("stolen", "worker", "another"))
	r.Add(testrig.WithNode(testrig.Machine("stolen", "worker", stolen), corev1.ConditionFalse))
	// Servers that a Machine names by their name, and by their label.
	add("renamed", own("another"))
	r.Add(testrig.WithNode(testrig.InPhase(testrig.Machine("renamed", "worker", ""), v1alpha1.MachineRunning),
		corev1.ConditionTrue))
	add("relabelled", testrig.Labels("healthy", "worker", "another"))
	classless := add("classless", testrig.Labels("classless", "gone", testrig.OwnCluster))
	r.Add(testrig.WithNode(testrig.Machine("classless", "gone", classless), corev1.ConditionTrue))
	r.Add(testrig.WithNode(testrig.Machine("lost", "worker", goneID), corev1.ConditionUnknown))
	r.Add(testrig.InPhase(testrig.Machine("new-born", "worker", ""), ""))
	r.Add(failed(testrig.Machine("stuck", "worker", ""),
		"Cloud provider message - machine codes error: code = [ResourceExhausted] "+
			"message = [QuotaExceeded: Quota exceeded: creating a server: status 403]"))
	if err := r.Cloud.SetServerStatus(add("stuck", own("stuck")), "DELETING", ""); err != nil { // the one that failed
		t.Fatal(err)
	}
	add("orphaned", own("orphaned"))
	add("forgotten", testrig.Labels("forgotten", "gone", testrig.OwnCluster))
	if err := r.Cloud.SetServerStatus(add("going", own("going")), "DELETING", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Cloud.SetServerStatus(add("broken", own("broken")), "ERROR", "No valid host\nwas found"); err != nil {
		t.Fatal(err)
	}
	add("two-clusters", with(own("two-clusters"), "a.io/cluster", "x"))
	add("stranger", testrig.Labels("stranger", "worker", "strangers"))
	add("bastion", nil)
	// A Machine of another namespace names a server, too.
	far := testrig.Machine("far", "worker", add("far", own("far")))
	far.Namespace = "elsewhere"
	r.Add(far)
	return r
}

func TestNotes(t *testing.T) {
	r := stock(t)
	r.MakeClusters()
	found := Read(t.Context(), r.Access, Query{})
	want := map[string]string{
		"machine healthy": "duplicate, labels of another " + testrig.ClusterKey, "server healthy": "",
		"server twin":       "duplicate",
		"machine otherwise": "ProviderID in another form", "server otherwise": "ProviderID in another form",
		"machine stolen":    "labels of another " + testrig.ClusterKey,
		"server stolen":     "labels of another " + testrig.ClusterKey,
		"server relabelled": "labels of another " + testrig.ClusterKey,
		"machine renamed":   "no server, labels of another " + provider.StackitMachineLabel,
		"server renamed":    "labels of another " + provider.StackitMachineLabel,
		"machine classless": "class deleted", "server classless": "",
		"server stuck": "", "machine lost": "no server", "machine new-born": "stuck: nothing at all",
		"machine stuck":   "stuck: QuotaExceeded",
		"server orphaned": "orphan", "server forgotten": "orphan", "server going": "orphan being deleted",
		"server broken": "orphan, fault", "server far": "",
	}
	if diff := cmp.Diff(want, say(found)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if len(found.Unknown) > 0 {
		t.Errorf("unknown: %q", found.Unknown)
	}
	if diff := cmp.Diff(map[string]string{ownCluster: "8 4 12 4"}, lines(found)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	strangers := testrig.ClusterKey + "=strangers"
	twoClusters := "a.io/cluster=x," + ownCluster
	if diff := cmp.Diff(map[string]int{strangers: 1, twoClusters: 1}, found.NotChecked); diff != "" {
		t.Errorf("not checked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"project " + iaasmock.DefaultProjectID + " in eu01": 16}, found.Read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// What a Machine's note says, and what to do, in less usual cases than those of TestNotes.
func TestNotesOfOneMachine(t *testing.T) {
	said := func(description, code string) func(*testrig.Rig, *v1alpha1.Machine) {
		return func(_ *testrig.Rig, m *v1alpha1.Machine) {
			failed(m, description).Status.LastOperation.ErrorCode = code
		}
	}
	for name, row := range map[string]struct {
		// change is made of a Running Machine whose server is gone.
		change      func(*testrig.Rig, *v1alpha1.Machine)
		words, says string
	}{
		"two servers": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = ""
			r.Server(m.Name, own(m.Name))
			r.Server(m.Name, own(m.Name))
		}, "duplicate", "and needs only one the manager deletes it itself, usually within 15 minutes"},
		"its ID in upper case": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + strings.ToUpper(r.Server(m.Name, own(m.Name)))
		}, "ProviderID in another form", "the driver lists stackit://" + iaasmock.DefaultProjectID + "/"},
		"the server of another Machine": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			id := r.Server("x-right", own("x-right"))
			r.Add(testrig.WithNode(testrig.Machine("x-right", "worker", id), corev1.ConditionTrue))
			m.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + id
		}, "server of another Machine", "belongs to Machine shoot--demo/x-right correct"},
		"two servers from OpenStack": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID, m.Annotations = "", map[string]string{"stackit.cloud/migrated-machine": "true"}
			r.Server(m.Name, nil)
			r.Server(m.Name, nil)
		}, "duplicate", "and needs only one " + remedySeveral},
		"a server that is going": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = ""
			if err := r.Cloud.SetServerStatus(r.Server(m.Name, own(m.Name)), "DELETING", ""); err != nil {
				t.Error(err)
			}
		}, "no server", "is DELETING " + remedyNoServer},
		"another project's server": {func(_ *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + testrig.OtherProject + "/" + goneID
		}, "no server", "correct spec.providerID or, if its project is right, restore that"},
		"a Node that is Ready": {func(_ *testrig.Rig, m *v1alpha1.Machine) { testrig.WithNode(m, corev1.ConditionTrue) },
			"unknown", "but the manager last saw its Node Ready"},
		"a Node that was Ready before the manager was stopped": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			testrig.WithNode(m, corev1.ConditionTrue)
			r.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: leaseName},
				Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}}})
		}, "unknown", "last saw its Node Ready: is the Secret's project the right one?"},
		"a ProviderID of one part": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + r.Server(m.Name, own(m.Name))
		}, "ProviderID in another form", "the driver lists stackit://" + iaasmock.DefaultProjectID + "/"},
		"OpenStack's ProviderID without a region": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "openstack:///" + r.Server(m.Name, own(m.Name))
		}, "ProviderID in another form", remedyOtherwise},
		"OpenStack's ProviderID, and a server that the driver lists not": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "openstack:///eu01/" + r.Server(m.Name, nil)
		}, "", ""},
		"a Node that does not come": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + iaasmock.DefaultProjectID + "/" + r.Server(m.Name, own(m.Name))
			r.Access.Clock = clocktesting.NewFakeClock(time.Now().Add(7 * time.Minute))
		}, "no Node", "server ACTIVE, 7m old, no Node its console log shows whether"},
		"a text with a code beside it": {said("no code", "Internal"), "stuck: Internal", "no code"},
		"a text without a code":        {said("no code", ""), "stuck: Unknown", "no code"},
		"about to be made": {func(_ *testrig.Rig, m *v1alpha1.Machine) {
			testrig.InPhase(m, "").CreationTimestamp = metav1.Now()
		}, "", ""},
		"no Secret of its class": {func(r *testrig.Rig, _ *v1alpha1.Machine) { r.Objects = r.Objects[1:] },
			"unknown, Secret missing", "Secret shoot--demo/credentials does not exist " + remedyNoSecret},
		"a Secret of another namespace": {func(r *testrig.Rig, _ *v1alpha1.Machine) {
			r.Objects[1].(*v1alpha1.MachineClass).SecretRef.Namespace = "other"
		}, "unknown, Secret missing", "for the sidecar, which reads only Secrets of its own namespace"},
		"a project that looks empty": {func(r *testrig.Rig, _ *v1alpha1.Machine) {
			r.Access.Clock = instantly{}
			r.Cloud.Inject(iaasmock.Fault{EmptyProject: true})
		}, "unknown", "the API shows no server at all in project"},
		"made, and nothing is said": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			testrig.InPhase(m, "")
			r.Server(m.Name, own(m.Name))
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, machine := instantRig(t), testrig.Machine("worker-1", "worker", goneID)
			r.Server("other", own("other"))
			row.change(r, machine)
			r.Add(machine)
			r.MakeClusters()
			found := Read(t.Context(), r.Access, Query{})
			text := ""
			for _, note := range found.Machines[0].Notes {
				text += note.Reason + " " + note.Remedy
			}
			if words := say(found)["machine worker-1"]; words != row.words || !strings.Contains(text, row.says) {
				t.Errorf("got %q: %s\nwant %q: %s", words, text, row.words, row.says)
			}
		})
	}
}

// instantly is a clock whose timers fire at once.
type instantly struct{ clock.RealClock }

func (instantly) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

// instantRig returns a rig that does not wait before second reads.
func instantRig(t *testing.T) *testrig.Rig {
	t.Helper()
	r := testrig.New(t)
	r.Access.Clock = instantly{}
	return r
}

// After a restore without Machines, every server looks like an orphan.
func TestLostMachinesAreRestoredFirst(t *testing.T) {
	r := testrig.New(t)
	r.Server("worker-1", own("worker-1"))
	elsewhere := testrig.Machine("worker-9", "aws", "") // says nothing of this cluster
	elsewhere.Namespace, elsewhere.Spec.ProviderID = "team-b", "aws:///eu-central-1/i-0abc"
	r.Add(elsewhere)
	r.MakeClusters()
	for _, server := range Read(t.Context(), r.Access, Query{}).Servers {
		if note := server.Notes[0]; note.Kind != NoteOrphan || note.Remedy != remedyRestore {
			t.Errorf("got %+v, want an orphan, and %q", note, remedyRestore)
		}
	}
}

// The manager deletes an orphan itself only if it has its class and the driver does not refuse.
func TestRemediesOfOrphans(t *testing.T) {
	const deletion = "mcm-stackit -n team-b delete server ID"
	r := testrig.New(t)
	class := testrig.Class("worker", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
	class.Namespace = "team-b"
	owned := testrig.Machine("owned", "worker", r.Server("owned", own("owned")))
	r.Objects = append(r.Objects[:1], class, owned)
	r.Server("collected", own("collected"))
	r.Server("classless", testrig.Labels("classless", "old", testrig.OwnCluster))
	r.Server("tagged", with(own("tagged"), "kubernetes.io-cluster-a", "1"))
	r.Server("renamed", own("label"))
	r.Server("twin", own("owned"))
	r.MakeClusters()
	r.Access.SecretName = testrig.Namespace + "/credentials"
	remedies := map[string]string{}
	for _, server := range Read(t.Context(), r.Access, Query{AllNamespaces: true}).Servers {
		for _, note := range server.Notes {
			remedies[server.ServerName] = note.Remedy
		}
	}
	for name, want := range map[string][]string{
		"collected": {"was its Machine lost, as in a restore? Then keep", "If not, the manager deletes it itself",
			"If it is scaled to 0: " + deletion},
		"classless": {"does not look for it without MachineClass old", "or: " + deletion},
		"tagged":    {"refuses to delete it, because it has OpenStack's tag kubernetes.io-cluster-a: find its owner"},
		"renamed":   {"refuses to delete it, because its name is not label"},
		"twin":      {"refuses to delete it, because its name is not owned"},
	} {
		for _, part := range want {
			if !strings.Contains(remedies[name], part) {
				t.Errorf("%s: got %q, want %q", name, remedies[name], part)
			}
		}
	}
}

// That a project with the servers of Machines has none is no fact to count.
func TestAProjectThatLooksEmptyIsNotCounted(t *testing.T) {
	r := instantRig(t)
	r.Add(testrig.WithNode(testrig.Machine("worker-1", "worker", goneID), corev1.ConditionTrue))
	r.MakeClusters()
	found := Read(t.Context(), r.Access, Query{})
	if diff := cmp.Diff(map[string]string{ownCluster: "1 1 -1 -1"}, lines(found)); diff != "" || len(found.Unknown) == 0 {
		t.Errorf("unknown %q, counts (-want +got):\n%s", found.Unknown, diff)
	}
}

// Of two keys for one project and region, the first that may read is used, and each server is read once.
func TestTwoKeysOfOnePlace(t *testing.T) {
	r := testrig.New(t)
	r.Server("worker-1", own("worker-1"))
	r.MakeClusters()
	accounts, _ := r.Access.Accounts(t.Context(), testrig.Namespace)
	second := *accounts[0]
	r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden, Count: 1})
	s := &observation{Access: r.Access, unread: map[string][]string{}}
	s.addAccount(accounts[0])
	s.addAccount(&second)
	s.readPlace(t.Context(), s.places[0])
	if at := s.places[0]; len(s.places) != 1 || at.used != &second || len(at.servers) != 1 || len(s.unread) > 0 {
		t.Errorf("got %+v, unread %v", s.places, s.unread)
	}
}

func TestQueries(t *testing.T) {
	cluster := func(value string) Query { return Query{Cluster: map[string]string{testrig.ClusterKey: value}} }
	const typo = "cluster kubernetes.io/cluster=typo unknown: no MachineClass here and no server has this label"
	for name, row := range map[string]struct {
		query Query
		// has and not are Machines and servers that are shown, and that are not.
		has, not []string
		// named is how many servers the first Machine has or names.
		named           int
		counts, unknown string
	}{
		"a cluster without a class": {cluster("strangers"), []string{"server stranger"},
			[]string{"server healthy", "machine healthy", "server bastion"}, 0, "0 0 1 1", ""},
		"a cluster that is misspelt": {cluster("typo"), nil, []string{"server healthy", "machine healthy"}, 0, "", typo},
		"all namespaces": {Query{AllNamespaces: true},
			[]string{"machine far", "machine healthy"}, nil, 0, "9 4 12 4", ""},
		"one Machine": {Query{Machine: "healthy"}, []string{"machine healthy", "server healthy", "server twin"},
			[]string{"server orphaned", "machine lost"}, 3, "1 1 2 0", ""},
		"one whose server is another's":   {Query{Machine: "stolen"}, []string{"server stolen"}, nil, 1, "1 0 1 0", ""},
		"one whose server is named alike": {Query{Machine: "renamed"}, []string{"server renamed"}, nil, 1, "1 1 1 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := stock(t)
			r.MakeClusters()
			found := Read(t.Context(), r.Access, row.query)
			words := say(found)
			for _, want := range row.has {
				if _, ok := words[want]; !ok {
					t.Errorf("lacks %s: %v", want, words)
				}
			}
			for _, not := range row.not {
				if _, ok := words[not]; ok {
					t.Errorf("has %s", not)
				}
			}
			if row.named != 0 && len(found.Machines[0].Servers) != row.named {
				t.Errorf("got %+v, want the %d servers that it names", found.Machines[0].Servers, row.named)
			}
			counts := slices.Collect(maps.Values(lines(found)))
			if strings.Join(counts, "; ") != row.counts || strings.Join(found.Unknown, "; ") != row.unknown {
				t.Errorf("counts %q, unknown %q", counts, found.Unknown)
			}
		})
	}
}

// A server is described whoever it belongs to, with what no list has of it.
func TestOneServer(t *testing.T) {
	logged := slices.Repeat([]string{"the end"}, 50)
	for name, row := range map[string]struct {
		labels  map[string]string
		change  func(*testrig.Rig)
		notes   string
		log     []string
		unknown string
	}{
		"a Machine's": {own("worker-1"), func(r *testrig.Rig) {
			r.Add(testrig.WithNode(testrig.InPhase(testrig.Machine("worker-1", "worker", ""), v1alpha1.MachineRunning),
				corev1.ConditionTrue))
		}, "", logged, ""},
		"an orphan":            {own("worker-1"), nil, "orphan", logged, ""},
		"of a class not here":  {testrig.Labels("worker-1", "gone", testrig.OwnCluster), nil, "orphan", logged, ""},
		"of another cluster":   {testrig.Labels("worker-1", "worker", "x"), nil, "not managed here", logged, ""},
		"nobody's":             {nil, nil, "not managed here", logged, ""},
		"its NICs are refused": {own("worker-1"), fails("ListServerNICs"), "orphan", logged, "addresses of server"},
		"its log is refused": {own("worker-1"), fails("GetServerLog"), "orphan", []string{Unknown},
			"console log of server"},
		"a list lacks it": {own("worker-1"), func(r *testrig.Rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: 1})
		}, "orphan", logged, "the list lacks server"},
	} {
		t.Run(name, func(t *testing.T) {
			r := instantRig(t)
			r.Server("first", own("first"))
			id := r.Server("worker-1", row.labels)
			if err := r.Cloud.SetConsoleLog(id, strings.Repeat("before\n", 100)+strings.Join(logged, "\n")+"\n", 0); err != nil {
				t.Fatal(err)
			}
			if row.change != nil {
				row.change(r)
			}
			r.MakeClusters()
			found := Read(t.Context(), r.Access, Query{Server: id})
			if len(found.Servers) != 1 || len(found.Machines)+len(found.NotChecked) > 0 {
				t.Fatalf("got %+v, want one server", found)
			}
			server := found.Servers[0]
			if server.Name != id || say(found)["server worker-1"] != row.notes ||
				len(server.Addresses) == 0 && !strings.HasPrefix(row.unknown, "addresses") {
				t.Errorf("got %+v", server)
			}
			if diff := cmp.Diff(row.log, server.ConsoleLog); diff != "" {
				t.Errorf("console log (-want +got):\n%s", diff)
			}
			if text := strings.Join(found.Unknown, " "); (text == "") != (row.unknown == "") ||
				!strings.Contains(text, row.unknown) {
				t.Errorf("unknown %q", text)
			}
			if byName := Read(t.Context(), r.Access, Query{Server: "worker-1"}).Servers; row.unknown == "" &&
				(len(byName) != 1 || byName[0].Name != id) {
				t.Errorf("by its name: got %+v", byName)
			}
		})
	}
}

func fails(operation string) func(*testrig.Rig) {
	return func(r *testrig.Rig) {
		r.Cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusForbidden})
	}
}

func TestAServerThatIsNowhere(t *testing.T) {
	for name, row := range map[string]struct {
		asked   string
		change  func(*testrig.Rig)
		unknown string
	}{
		"an ID":   {goneID, func(*testrig.Rig) {}, ""},
		"a name":  {"nobody", func(*testrig.Rig) {}, ""},
		"refused": {"nobody", fails("ListServers"), "NoPermission"},
		"a Machine names it": {goneID, func(r *testrig.Rig) {
			r.Add(testrig.WithNode(testrig.Machine("lost", "worker", goneID), corev1.ConditionTrue))
		}, "Machine shoot--demo/lost names it, but no read shows it"},
		"a Machine has the name": {"lost", func(r *testrig.Rig) {
			r.Add(testrig.WithNode(testrig.Machine("lost", "worker", goneID), corev1.ConditionTrue))
		}, "Machine shoot--demo/lost names it, but no read shows it"},
		"an empty project": {"nobody", func(r *testrig.Rig) {
			r.Access.Clock = instantly{}
			r.Cloud.Inject(iaasmock.Fault{EmptyProject: true})
		}, "the API shows no server at all in project"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			r.Server("first", own("first"))
			row.change(r)
			r.MakeClusters()
			found := Read(t.Context(), r.Access, Query{Server: row.asked})
			text := strings.Join(found.Unknown, " ")
			if len(found.Servers) > 0 || (text == "") != (row.unknown == "") || !strings.Contains(text, row.unknown) {
				t.Errorf("got %+v", found)
			}
		})
	}
}

// A list that lacks a server does not hide it from who asks for it by its Machine's name, or by its ID in upper case.
func TestAServerThatAListLacksIsDescribed(t *testing.T) {
	r := testrig.New(t)
	r.Server("first", own("first"))
	id := r.Server("worker-1", own("worker-1"))
	r.Add(testrig.WithNode(testrig.Machine("worker-1", "worker", id), corev1.ConditionTrue))
	r.MakeClusters()
	r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: 1})
	for _, asked := range []string{"worker-1", id, strings.ToUpper(id)} {
		if found := Read(t.Context(), r.Access, Query{Server: asked}); len(found.Servers) != 1 ||
			found.Servers[0].Name != id {
			t.Errorf("%s: got %+v", asked, found)
		}
	}
}

// What a folded line must not hide.
func TestHealthyIsWhatTheDriverCanServe(t *testing.T) {
	for name, change := range map[string]func(*testrig.Rig, *v1alpha1.Machine){
		"": func(*testrig.Rig, *v1alpha1.Machine) {},
		"class of another provider": func(r *testrig.Rig, _ *v1alpha1.Machine) {
			r.Objects[1].(*v1alpha1.MachineClass).Provider = "openstack"
			r.Access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01"}
		},
		"in another project or region": func(r *testrig.Rig, _ *v1alpha1.Machine) {
			second := testrig.Class("second", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
			r.Add(second)
			r.Objects[1] = testrig.Class("worker",
				map[string]any{"region": "eu02", "labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
		},
		"its last operation failed": func(_ *testrig.Rig, m *v1alpha1.Machine) {
			m.Status.LastOperation = v1alpha1.LastOperation{State: v1alpha1.MachineStateFailed, Description: "x",
				Type: "HealthCheck"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := instantRig(t)
			machine := testrig.WithNode(testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1"))),
				corev1.ConditionTrue)
			change(r, machine)
			r.Add(machine)
			r.MakeClusters()
			found := Read(t.Context(), r.Access, Query{}).Machines[0]
			words := say(&Result{Machines: []*Machine{found}})["machine worker-1"]
			if found.IsHealthy() != (name == "") || !strings.HasPrefix(name, "its ") && !strings.Contains(words, name) {
				t.Errorf("got %+v", found)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	now := time.Now()
	lease := func(renewed time.Duration) []coordinationv1.Lease {
		return []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: leaseName},
			Spec: coordinationv1.LeaseSpec{
				LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-renewed)))}}}
	}
	const none, withNode = "", "worker-1"
	for name, row := range map[string]struct {
		phase  v1alpha1.MachinePhase
		ready  corev1.ConditionStatus
		node   string
		leases []coordinationv1.Lease
		want   Readiness
	}{
		"ready":                             {"Running", "True", withNode, lease(time.Second), Ready},
		"ready, without leader election":    {"Running", "True", withNode, nil, Ready},
		"ready, the lease has just expired": {"Running", "True", withNode, lease(29 * time.Second), Ready},
		"ready, the lease expired":          {"Running", "True", withNode, lease(31 * time.Second), WasReady},
		"not ready":                         {"Running", "False", withNode, nil, NotReady},
		"not ready, the lease expired":      {"Running", "False", withNode, lease(time.Hour), WasNotReady},
		"nothing is heard of the Node":      {"Running", "Unknown", withNode, nil, NotReady},
		"the Node is gone":                  {"Unknown", "True", withNode, nil, NotReady},
		"the Node is gone, and the manager": {"Unknown", "True", withNode, lease(time.Hour), WasNotReady},
		"failed":                            {"Failed", "True", withNode, nil, NotReady},
		"terminating":                       {"Terminating", "True", withNode, nil, WasReady},
		"terminating, not ready":            {"Terminating", "False", withNode, nil, WasNotReady},
		"booting":                           {"Pending", "", withNode, nil, NeverJoined},
		"never joined, and failed":          {"Failed", "", withNode, nil, NeverJoined},
		"no target cluster":                 {"Available", "", none, nil, NoNode},
		"being created":                     {"", "", none, nil, NoNode},
	} {
		t.Run(name, func(t *testing.T) {
			machine := testrig.Machine("worker-1", "worker", "")
			machine.Status.CurrentStatus.Phase = row.phase
			machine.Labels[v1alpha1.NodeLabelKey] = row.node
			if row.ready != "" {
				testrig.WithNode(machine, row.ready)
			}
			s := &observation{now: now, leases: row.leases}
			if got := s.readiness(&machineView{Machine: machine}); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestStaleReadinessSaysSinceWhen(t *testing.T) {
	r := stock(t)
	r.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: leaseName},
		Spec: coordinationv1.LeaseSpec{
			LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))}})
	r.MakeClusters()
	found := Read(t.Context(), r.Access, Query{})
	if len(found.Stale) != 1 || !strings.Contains(found.Stale[0], "59m ago: lease machine-controller") ||
		!found.Clusters[0].Stale {
		t.Errorf("got %q, %+v", found.Stale, found.Clusters[0])
	}
}

// outage is a way in which something is down, and what is known then.
type outage struct {
	cause func(t *testing.T, r *testrig.Rig)
	// unknown is all of the Result's Unknown, each by how it begins.
	unknown []string
	// state and ready are of the Machine worker-1, "gone" where it is not shown.
	state, ready string
	counts       string
	// servers are shown.
	servers int
}

// hangTimeout is waited in full where a row hangs. What answers has to do so within it.
const hangTimeout = 5 * time.Second

func TestOutages(t *testing.T) {
	ofAPI := "servers of project " + iaasmock.DefaultProjectID + " in eu01 unknown: "
	const ofCluster = "MachineClasses, Machines, age of readiness unknown: the cluster with the Machines"
	inject := func(fault iaasmock.Fault) func(*testing.T, *testrig.Rig) {
		return func(_ *testing.T, r *testrig.Rig) { r.Cloud.Inject(fault) }
	}
	direct := func(r *testrig.Rig) {
		r.Access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01"}
	}
	fails := func(r *testrig.Rig, err func(context.Context) error, which func(kind, namespace string) bool) {
		r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1alpha1.")
			if which(kind, (&client.ListOptions{}).ApplyOptions(o).Namespace) {
				return err(ctx)
			}
			return c.List(ctx, into, o...)
		}
	}
	clusterFails := func(kinds []string, err func(context.Context) error) func(*testing.T, *testrig.Rig) {
		return func(_ *testing.T, r *testrig.Rig) {
			direct(r)
			fails(r, err, func(kind, _ string) bool { return kinds == nil || slices.Contains(kinds, kind) })
		}
	}
	listOfAllFails := func(err func(context.Context) error) func(*testing.T, *testrig.Rig) {
		return func(_ *testing.T, r *testrig.Rig) {
			fails(r, err, func(kind, namespace string) bool { return kind == "MachineList" && namespace == "" })
		}
	}
	refused := func(context.Context) error {
		return &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	}
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return &url.Error{Op: "Get", URL: "https://x", Err: ctx.Err()}
	}
	forbidden := func(context.Context) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("not you"))
	}
	for name, row := range map[string]outage{
		"nothing": {func(*testing.T, *testrig.Rig) {}, nil, "ACTIVE", "yes", "1 1 2 1", 2},
		"the API hangs": {inject(iaasmock.Fault{Delay: time.Minute}),
			[]string{ofAPI + "the API does not answer within 5s"}, "unknown", "yes", "1 1 -1 -1", 0},
		"the API answers 503": {inject(iaasmock.Fault{Status: http.StatusServiceUnavailable}),
			[]string{ofAPI}, "unknown", "yes", "1 1 -1 -1", 0},
		"the API refuses the token": {inject(iaasmock.Fault{Status: http.StatusUnauthorized}),
			[]string{ofAPI + string(provider.ReasonCredentialsRefused)}, "unknown", "yes", "1 1 -1 -1", 0},
		"the cluster refuses": {clusterFails(nil, refused),
			[]string{ofCluster + ": dial: connection refused"}, "gone", "", "-1 -1 2 -1", 2},
		"the cluster hangs": {clusterFails(nil, hangs),
			[]string{ofCluster + " does not answer within 5s"}, "gone", "", "-1 -1 2 -1", 2},
		"Machines are forbidden": {clusterFails([]string{"MachineList"}, forbidden),
			[]string{"Machines unknown: "}, "gone", "", "-1 -1 2 -1", 2},
		"the CRD is missing": {clusterFails([]string{"MachineList"}, func(context.Context) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, "")
		}), []string{"Machines unknown: "}, "gone", "", "-1 -1 2 -1", 2},
		"Machines of other namespaces are forbidden": {listOfAllFails(forbidden),
			[]string{"orphans unknown: listing Machines: "}, "ACTIVE", "yes", "1 1 2 -1", 2},
		"Machines of other namespaces hang": {listOfAllFails(hangs),
			[]string{"orphans unknown: no time was left"}, "ACTIVE", "yes", "1 1 2 -1", 2},
		"no cluster is reached": {func(_ *testing.T, r *testrig.Rig) {
			r.Clusterless, r.Access.ControlError = true, errors.New("no such context")
		}, []string{"MachineClasses, Machines, servers unknown: no such context"}, "gone", "", "-1 -1 -1 -1", 0},
		"the Secret is missing": {func(_ *testing.T, r *testrig.Rig) { r.Objects = r.Objects[1:] },
			[]string{"servers unknown: MachineClass worker: Secret shoot--demo/credentials does not exist"}, "unknown", "yes",
			"1 1 -1 -1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			r.Add(testrig.WithNode(testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1"))),
				corev1.ConditionTrue))
			r.Server("orphaned", own("orphaned"))
			r.Access.ReadTimeout = hangTimeout
			row.cause(t, r)
			r.MakeClusters()
			begin := time.Now()
			found := Read(t.Context(), r.Access, Query{})
			if took := time.Since(begin); took > 10*hangTimeout {
				t.Errorf("took %s", took)
			}
			if !slices.EqualFunc(found.Unknown, row.unknown, strings.HasPrefix) {
				t.Errorf("unknown %q\nwant    %q", found.Unknown, row.unknown)
			}
			state, ready := "gone", ""
			for _, machine := range found.Machines {
				state, ready = machine.State, string(machine.Ready)
			}
			if state != row.state || ready != row.ready || len(found.Servers) != row.servers {
				t.Errorf("state %q, ready %q, %d servers; want %q, %q, %d", state, ready, len(found.Servers), row.state, row.ready,
					row.servers)
			}
			if got := slices.Collect(maps.Values(lines(found))); !slices.Equal(got, []string{row.counts}) {
				t.Errorf("counts %q, want %q", got, row.counts)
			}
			for _, server := range found.Servers {
				if strings.HasSuffix(row.counts, "-1") && server.IsOrphan() {
					t.Errorf("%s is called an orphan", server.ServerName)
				}
			}
		})
	}
}

// A Machine that waits for its server, or is being deleted, may have one as well.
func TestServersThatWereNotRead(t *testing.T) {
	for status, want := range map[int][]string{
		http.StatusOK:        {"", "", "", goneID},
		http.StatusForbidden: {Unknown, Unknown, Unknown, goneID},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			r := testrig.New(t)
			waiting := testrig.InPhase(testrig.Machine("a", "worker", ""), v1alpha1.MachineCrashLoopBackOff)
			leaving := testrig.Machine("b", "worker", goneID)
			leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x/y"}
			r.Add(waiting, leaving)
			r.Server("another", own("another"))
			if status != http.StatusOK {
				r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: status})
			}
			r.MakeClusters()
			found := Read(t.Context(), r.Access, Query{}).Machines
			got := []string{found[0].State, found[0].Server, found[1].State, found[1].Server}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("state and server (-want +got):\n%s", diff)
			}
		})
	}
}

// A Machine that is made while the servers are read is there before its server.
func TestMachinesAreReadAfterTheServers(t *testing.T) {
	r := testrig.New(t)
	id := r.Server("new", own("new"))
	lists := 0
	r.Funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.MachineList); ok {
			if lists++; lists == 2 {
				if err := c.Create(ctx, testrig.Machine("new", "worker", id)); err != nil {
					return err
				}
			}
		}
		return c.List(ctx, list, options...)
	}
	r.MakeClusters()
	if words := say(Read(t.Context(), r.Access, Query{})); words["server new"] != "" || lists != 2 {
		t.Errorf("got %v in %d lists", words, lists)
	}
}

// A list without any server is read again. Of one that lacks a server, what a GET shows is believed; what it does not
// find is gone only if a second list and GET lack it, too.
func TestListsThatLackServers(t *testing.T) {
	empty := func(times int) iaasmock.Fault {
		return iaasmock.Fault{Operation: "ListServers", EmptyList: true, Count: times}
	}
	cutOff := func(times int) iaasmock.Fault {
		return iaasmock.Fault{Operation: "ListServers", CutOffAt: 1, Count: times}
	}
	get := func(status, times int) iaasmock.Fault {
		return iaasmock.Fault{Operation: "GetServer", Status: status, Count: times}
	}
	works := get(http.StatusNotFound, 0)
	works.Server = "another" // hits no call
	const lacks, tooLate = "the list lacks server ", "no time is left"
	for name, row := range map[string]struct {
		list, get            iaasmock.Fault
		state, note, unknown string
	}{
		"empty, the second is not":    {empty(1), works, "ACTIVE", "", ""},
		"empty, " + tooLate:           {empty(1), works, "unknown", "unknown", "too short to read it again"},
		"empty twice, a GET finds it": {empty(2), works, "ACTIVE", "", lacks},
		"cut off, a GET finds it":     {cutOff(0), works, "ACTIVE", "", lacks},
		"cut off, no GET does":        {cutOff(0), get(404, 0), "", "no server", ""},
		"cut off, " + tooLate:         {cutOff(0), get(404, 0), "unknown", "unknown", "too short to read it again"},
		"cut off, a later GET does":   {cutOff(0), get(404, 1), "ACTIVE", "", lacks},
		"cut off, a later list does":  {cutOff(1), get(404, 0), "ACTIVE", "", lacks},
		"cut off, a GET is refused":   {cutOff(0), get(403, 0), "unknown", "unknown", "NoPermission"},
		"no ProviderID, cut off once": {cutOff(1), works, "ACTIVE", "", lacks},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := testrig.New(t), clocktesting.NewFakeClock(time.Now())
			r.Server("other", own("other"))
			id := r.Server("worker-1", own("worker-1"))
			if strings.HasPrefix(name, "no ProviderID") {
				id = ""
			}
			r.Add(testrig.WithNode(testrig.Machine("worker-1", "worker", id), corev1.ConditionFalse))
			r.MakeClusters()
			r.Access.Clock = clock
			r.Cloud.Inject(row.list)
			r.Cloud.Inject(row.get)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan *Result, 1)
			go func() { done <- Read(ctx, r.Access, Query{}) }()
			var found *Result
			NewWithT(t).Eventually(func() *Result {
				switch {
				case !clock.HasWaiters():
				case strings.HasSuffix(name, tooLate):
					cancel()
				default:
					clock.Step(secondPause)
				}
				select {
				case found = <-done:
				default:
				}
				return found
			}).WithTimeout(time.Minute).ShouldNot(BeNil())
			if machine := found.Machines[0]; machine.State != row.state || say(found)["machine worker-1"] != row.note {
				t.Errorf("got %+v", machine)
			}
			if text := strings.Join(found.Unknown, " "); (text == "") != (row.unknown == "") ||
				!strings.Contains(text, row.unknown) {
				t.Errorf("unknown %q", text)
			}
		})
	}
}

// With credentials that the user names, a Machine's server may be in another project.
func TestAnAccountThatIsNotTheClasses(t *testing.T) {
	r := instantRig(t)
	r.Server("other", own("other"))
	elsewhere := testrig.WithNode(testrig.Machine("worker-1", "worker", ""), corev1.ConditionTrue)
	elsewhere.Spec.ProviderID = "stackit://" + testrig.OtherProject + "/" + goneID
	r.Add(elsewhere, testrig.WithNode(testrig.Machine("worker-2", "worker", goneID), corev1.ConditionFalse))
	r.MakeClusters()
	r.Access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01"}
	found := Read(t.Context(), r.Access, Query{})
	if words := say(found); words["machine worker-1"] != "unknown" || words["machine worker-2"] != "no server" {
		t.Errorf("got %v", words)
	}
	want := []string{"server of Machine shoot--demo/worker-1 unknown: not all servers of its project and region were read"}
	if diff := cmp.Diff(want, found.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

// Only so many servers that a list lacks are read by their IDs; of the others it is said.
func TestAListThatLacksMany(t *testing.T) {
	r := instantRig(t)
	r.Server("other", own("other"))
	for i := range maxByID + 2 {
		id := fmt.Sprintf("d61a8564-c8dd-4ffb-bc15-00000000000%x", i)
		r.Add(testrig.WithNode(testrig.Machine(fmt.Sprintf("worker-%x", i), "worker", id), corev1.ConditionFalse))
	}
	r.MakeClusters()
	found := Read(t.Context(), r.Access, Query{})
	counts := map[string]int{}
	for _, words := range say(found) {
		counts[words]++
	}
	if diff := cmp.Diff(map[string]int{"no server": maxByID, "unknown": 2, "orphan": 1}, counts); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	want := []string{
		"other servers of Machines unknown: the list of project " + iaasmock.DefaultProjectID + " in eu01 lacks more than " +
			"8 servers that Machines name",
	}
	if diff := cmp.Diff(want, found.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

// Of two Machines with one name, the server is that of the namespace.
func TestMachinesOfOneName(t *testing.T) {
	r := testrig.New(t)
	r.Server("worker-1", own("worker-1"))
	mine := testrig.InPhase(testrig.Machine("worker-1", "worker", ""), v1alpha1.MachineRunning)
	theirs := mine.DeepCopy()
	theirs.Namespace = "another" // and so the first of all
	r.Add(mine, theirs)
	r.MakeClusters()
	found := Read(t.Context(), r.Access, Query{})
	if words := say(found); words["machine worker-1"] != "" || found.Servers[0].MachineNamespace != testrig.Namespace {
		t.Errorf("got %v, the server of a Machine of %s", words, found.Servers[0].MachineNamespace)
	}
}

// A reason without a row leaves a user without help; a row without a reason helps nobody.
func TestEachReasonHasOneRemedy(t *testing.T) {
	reasons := provider.Reasons()
	for _, reason := range reasons {
		if row := fmt.Sprintf("\n| `%s` | %s | ", reason, reason.Code()); strings.Count(kubernetes.Runbooks, row) != 1 {
			t.Errorf("kubernetes/runbooks.md has no row, or several, that begin with %q", row)
		}
		if found := remedies()[string(reason)]; found.cause == "" || found.remedy == "" {
			t.Errorf("%s: got %+v", reason, found)
		}
	}
	want := remedy{"the Secret, or its key userData, is missing",
		"create it; the sidecar's log repeats userdata field not found"}
	if got := remedies()[silent]; got != want {
		t.Errorf("%s: got %+v", silent, got)
	}
	const plain = "grant it these permissions (pkg/provider/apis/README.md); check that key and projectId belong together"
	if got := remedies()[string(provider.ReasonNoPermission)].remedy; got != plain {
		t.Errorf("got %q, want %q", got, plain)
	}
	if len(remedies()) != len(reasons)+1 {
		t.Errorf("%d rows about %d reasons and silence", len(remedies()), len(reasons))
	}
}

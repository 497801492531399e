// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	goneID    = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	ofProject = "stackit://" + iaasmock.DefaultProjectID + "/"
)

// notes returns the notes of Machines and servers in words, by name.
func notes(found *list.Result) map[string]string {
	words := map[string]string{}
	add := func(name string, notes []list.Note) {
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

func own(machine string) map[string]string {
	return testrig.Labels(machine, "worker", testrig.OwnCluster)
}

func failed(machine *v1alpha1.Machine, description string) *v1alpha1.Machine {
	inPhase(machine, v1alpha1.MachineCrashLoopBackOff)
	machine.Status.LastOperation = v1alpha1.LastOperation{State: v1alpha1.MachineStateFailed, Description: description}
	return machine
}

func deleted(machine *v1alpha1.Machine) *v1alpha1.Machine {
	machine.DeletionTimestamp, machine.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x/y"}
	return machine
}

// inPhase changes the Machine's phase, removes its ProviderID, and returns the Machine.
func inPhase(made *v1alpha1.Machine, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	made.Spec.ProviderID = ""
	made.Status.CurrentStatus.Phase = phase
	return made
}

// withReady sets the Machine's conditions to a condition Ready, as the manager copies it from the Node,
// and returns the Machine.
func withReady(made *v1alpha1.Machine, ready corev1.ConditionStatus) *v1alpha1.Machine {
	made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return made
}

const quotaExceeded = "Cloud provider message - machine codes error: code = [ResourceExhausted] " +
	"message = [QuotaExceeded: Quota exceeded: creating a server: status 403]"

// stock is a cluster with something for each note.
func stock(t *testing.T) *testrig.Rig {
	t.Helper()
	r := testrig.New(t)
	// running adds a Machine whose Node is Ready, with its server.
	running := func(name, class string, labels map[string]string) {
		r.Add(withReady(testrig.Machine(name, class, r.Server(name, labels)), corev1.ConditionTrue))
	}
	running("healthy", "worker", own("healthy"))
	r.Server("twin", own("healthy"))
	running("stolen", "worker", testrig.Labels("stolen", "worker", "another"))
	running("classless", "gone", testrig.Labels("classless", "gone", testrig.OwnCluster))
	otherwise := withReady(testrig.Machine("otherwise", "worker", ""), corev1.ConditionTrue)
	otherwise.Spec.ProviderID = "openstack:///eu01/" + r.Server("otherwise", own("otherwise"))
	r.Add(otherwise)
	r.Add(withReady(testrig.Machine("lost", "worker", goneID), corev1.ConditionUnknown))
	r.Add(inPhase(testrig.Machine("new-born", "worker", ""), ""))
	r.Add(failed(testrig.Machine("stuck", "worker", ""), quotaExceeded))
	r.Add(deleted(failed(testrig.Machine("leaving", "worker", ""), quotaExceeded)))
	r.Server("orphaned", own("orphaned"))
	setStatus(r, r.Server("going", own("going")), "DELETING", "")
	setStatus(r, r.Server("broken", own("broken")), "ERROR", "No valid host\nwas found")
	two := own("two-clusters")
	two["a.io/cluster"] = "x"
	r.Server("two-clusters", two)
	r.Server("stranger", testrig.Labels("stranger", "worker", "strangers"))
	r.Server("bastion", nil)
	// A Machine of another namespace names a server, too.
	far := testrig.Machine("far", "worker", r.Server("far", own("far")))
	far.Namespace = "elsewhere"
	r.Add(far)
	return r
}

func setStatus(r *testrig.Rig, id, status, fault string) {
	if err := r.Cloud.SetServerStatus(id, status, fault); err != nil {
		r.T.Fatal(err)
	}
}

func read(t *testing.T, r *testrig.Rig, query list.Query) *list.Result {
	t.Helper()
	r.MakeClusters()
	return list.Read(t.Context(), r.Access, query)
}

func TestNotes(t *testing.T) {
	found := read(t, stock(t), list.Query{})
	want := map[string]string{
		"machine healthy": "duplicate", "server healthy": "", "server twin": "duplicate",
		"machine otherwise": "ProviderID in another form", "server otherwise": "ProviderID in another form",
		"machine stolen":    "labels of another: " + testrig.ClusterKey,
		"server stolen":     "labels of another: " + testrig.ClusterKey,
		"machine classless": "class missing", "server classless": "",
		"machine lost": "no server", "machine new-born": "stuck: nothing at all", "machine stuck": "stuck: QuotaExceeded",
		"machine leaving": "stuck deletion: QuotaExceeded", "server far": "",
		"server orphaned": "orphan", "server going": "orphan: being deleted", "server broken": "orphan, fault",
	}
	if diff := cmp.Diff(want, notes(found)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if len(found.Unknown) > 0 {
		t.Errorf("unknown: %q", found.Unknown)
	}
	facts := []string{
		`wrong    Machine shoot--demo/lost: metadata.name: Invalid value: "lost": must have at least 5 characters`,
		"12 servers read in project " + iaasmock.DefaultProjectID + " in eu01",
		"2 servers of other clusters: not classified"}
	if diff := cmp.Diff(facts, found.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	for _, machine := range found.Machines {
		if isHealthy := machine.IsHealthy(); isHealthy {
			t.Errorf("%s is called healthy", machine.Name)
		}
		for _, note := range machine.Notes {
			row := report.RowOf(string(provider.ReasonQuotaExceeded))
			if strings.HasPrefix(string(note.Kind), "stuck") && note.About == "QuotaExceeded" &&
				(note.Remedy != row.Remedy || note.Cause != row.Cause) {
				t.Errorf("%s: got %+v, want the runbook's remedy", machine.Name, note)
			}
		}
	}
}

// What a Machine's note says, in less usual cases than those of TestNotes.
func TestNotesOfOneMachine(t *testing.T) {
	said := func(description, code string) func(*testrig.Rig, *v1alpha1.Machine) {
		return func(_ *testrig.Rig, m *v1alpha1.Machine) {
			failed(m, description).Status.LastOperation.ErrorCode = code
		}
	}
	const another = "ProviderID in another form"
	for name, row := range map[string]struct {
		// change is made of a Running Machine whose server is gone.
		change      func(*testrig.Rig, *v1alpha1.Machine)
		words, says string
	}{
		"its server is gone": {func(*testrig.Rig, *v1alpha1.Machine) {}, "no server",
			"server " + goneID + ": not found by GET"},
		"two servers": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = ""
			r.Server(m.Name, own(m.Name))
			r.Server(m.Name, own(m.Name))
		}, "duplicate", "the server of Machine shoot--demo/worker-1 is "},
		"its ID in upper case": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = ofProject + strings.ToUpper(r.Server(m.Name, own(m.Name)))
		}, another, "but the driver lists " + ofProject},
		"a ProviderID of one part": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + r.Server(m.Name, own(m.Name))
		}, another, "the manager deletes this running server as an orphan"},
		"OpenStack's, and a server that the driver does not list": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "openstack:///eu01/" + r.Server(m.Name, nil)
		}, "", ""},
		"the server of another Machine": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			id := r.Server("x-right", own("x-right"))
			r.Add(withReady(testrig.Machine("x-right", "worker", id), corev1.ConditionTrue))
			m.Spec.ProviderID = ofProject + id
		}, "labels of another", "is that of Machine shoot--demo/x-right"},
		"another project's server": {func(_ *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "stackit://" + testrig.OtherProject + "/" + goneID
		}, "unknown", "belongs to project " + testrig.OtherProject},
		"a Node that is Ready": {func(_ *testrig.Rig, m *v1alpha1.Machine) { withReady(m, corev1.ConditionTrue) },
			"unknown", "not found by GET in project " + iaasmock.DefaultProjectID + " in eu01, but its Node was"},
		"no ProviderID": {func(_ *testrig.Rig, m *v1alpha1.Machine) { m.Spec.ProviderID = "" }, "no server",
			"it has no ProviderID, and no server"},
		"a text with a code beside it": {said("no code", "Internal"), "stuck: Internal", "no code"},
		"a text without a code":        {said("no code", ""), "stuck: Unknown", "no code"},
		"about to be made": {func(_ *testrig.Rig, m *v1alpha1.Machine) {
			inPhase(m, "").CreationTimestamp = metav1.Now()
		}, "", ""},
		"made, and nothing is said": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			inPhase(m, "")
			r.Server(m.Name, own(m.Name))
		}, "", ""},
		"no Secret of its class": {func(r *testrig.Rig, _ *v1alpha1.Machine) { r.Objects = r.Objects[1:] },
			"unknown", "its server was not read"},
		"a project that looks empty": {func(r *testrig.Rig, _ *v1alpha1.Machine) {
			r.Cloud.Inject(iaasmock.Fault{EmptyProject: true})
		}, "unknown", "the API shows no server at all in project"},
		"a list lacks its server": {func(r *testrig.Rig, m *v1alpha1.Machine) {
			m.Spec.ProviderID = ofProject + r.Server(m.Name, own(m.Name))
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: 1})
		}, "", ""},
		"a GET fails": {func(r *testrig.Rig, _ *v1alpha1.Machine) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: 403})
		}, "unknown", "its server was not read"},
	} {
		t.Run(name, func(t *testing.T) {
			r, machine := testrig.New(t), testrig.Machine("worker-1", "worker", goneID)
			r.Server("other", own("other"))
			row.change(r, machine)
			r.Add(machine)
			found := read(t, r, list.Query{})
			text := ""
			for _, note := range found.Machines[0].Notes {
				text += note.Reason + " " + note.Remedy
			}
			if words := notes(found)["machine worker-1"]; words != row.words || !strings.Contains(text, row.says) {
				t.Errorf("got %q: %s\nwant %q: %s", words, text, row.words, row.says)
			}
			if isUnknown := strings.HasPrefix(row.words, "unknown"); isUnknown != (len(found.Unknown) > 0) {
				t.Errorf("unknown: %q", found.Unknown)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	const none, withNode = "", "worker-1"
	for name, row := range map[string]struct {
		phase v1alpha1.MachinePhase
		ready corev1.ConditionStatus
		node  string
		age   time.Duration
		want  list.Readiness
	}{
		"ready":                        {"Running", "True", withNode, time.Hour, list.Ready},
		"not ready":                    {"Running", "False", withNode, time.Hour, list.NotReady},
		"nothing is heard of the Node": {"Running", "Unknown", withNode, time.Hour, list.NotReady},
		"the Node is gone":             {"Unknown", "True", withNode, time.Hour, list.NotReady},
		"failed":                       {"Failed", "True", withNode, time.Hour, list.NotReady},
		"booting":                      {"Pending", "", withNode, 19 * time.Minute, list.Booting},
		"past its creation timeout":    {"Pending", "", withNode, 21 * time.Minute, list.NeverJoined},
		"never joined, and failed":     {"Failed", "", withNode, time.Hour, list.NeverJoined},
		"no target cluster":            {"Available", "", none, time.Minute, list.NoNode},
		"being created":                {"", "", none, time.Minute, list.NoNode},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			machine := testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1")))
			machine.CreationTimestamp = metav1.NewTime(time.Now().Add(-row.age))
			machine.Status.CurrentStatus.Phase = row.phase
			machine.Labels[v1alpha1.NodeLabelKey] = row.node
			if row.ready != "" {
				withReady(machine, row.ready)
			}
			r.Add(machine)
			got := read(t, r, list.Query{}).Machines[0]
			if got.Ready != row.want || got.IsHealthy() != (row.want == list.Ready) {
				t.Errorf("got %q, healthy %t, want %q", got.Ready, got.IsHealthy(), row.want)
			}
		})
	}
}

// A Machine may have a creation timeout of its own.
func TestBootingUntilItsOwnTimeout(t *testing.T) {
	r := testrig.New(t)
	machine := testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1")))
	machine.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
		MachineCreationTimeout: &metav1.Duration{Duration: 2 * time.Hour}}
	r.Add(machine)
	if got := read(t, r, list.Query{}).Machines[0].Ready; got != list.Booting {
		t.Errorf("got %q", got)
	}
}

// What the line for healthy Machines must not hide.
func TestAFailedOperationIsNotHealthy(t *testing.T) {
	r := testrig.New(t)
	machine := withReady(testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1"))), "True")
	machine.Status.LastOperation = v1alpha1.LastOperation{State: v1alpha1.MachineStateFailed, Description: "x"}
	r.Add(machine)
	if slices.ContainsFunc(read(t, r, list.Query{}).Machines, (*list.Machine).IsHealthy) {
		t.Error("it is called healthy")
	}
}

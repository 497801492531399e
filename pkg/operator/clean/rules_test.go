// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// situation is a cluster with three servers that Machines and Nodes name, and one that none
// does, before a row of the table changes it.
type situation struct {
	*rig
	options clean.Options
	// nodes are the target cluster's; targetless is without one.
	nodes      []client.Object
	targetless bool
	// ageless hides when servers were created.
	ageless bool
	// targetFuncs make reads of the target cluster fail.
	targetFuncs interceptor.Funcs
	// ids are of the servers, by name.
	ids map[string]string
}

const lost = "lost-1"

func newSituation(t *testing.T) *situation {
	s := &situation{rig: &rig{testrig.New(t)}, ids: map[string]string{}, options: clean.Options{
		ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster, Max: 10,
	}}
	for i := range 3 {
		name := fmt.Sprintf("worker-%d", i)
		s.makeServer(name)
		s.Add(testrig.Machine(name, "worker", s.ids[name]))
		s.nodes = append(s.nodes, testrig.Node(name, s.ids[name], corev1.ConditionTrue))
	}
	s.makeServer(lost)
	return s
}

func (s *situation) makeServer(name string) {
	s.ids[name] = s.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster))
}

// addAbroad adds a class of another region, and a server there.
func (s *situation) addAbroad(name string) (serverID string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "abroad"}, Data: map[string][]byte{
		"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.SecondRegion), "userData": nil,
	}}
	class := testrig.Class("abroad", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
	class.SecretRef.Name = secret.Name
	s.Add(secret, class)
	id, err := s.TryServerAt(s.T.Context(), iaasmock.DefaultProjectID, iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID,
		name, testrig.Labels(name, class.Name, testrig.OwnCluster))
	if err != nil {
		s.T.Fatal(err)
	}
	return id
}

// addNode adds a Node that has nothing to do with any server, before it is changed.
func (s *situation) addNode(change func(*corev1.Node)) {
	node := testrig.Node("n", "", corev1.ConditionTrue)
	change(node)
	s.nodes = append(s.nodes, node)
}

// unlink takes the Machines away, and leaves servers and Nodes.
func (s *situation) unlink() {
	s.Objects = slices.DeleteFunc(s.Objects, func(object client.Object) bool {
		_, isMachine := object.(*v1alpha1.Machine)
		return isMachine
	})
}

func (s *situation) setStatus(name, status string) {
	if err := s.Cloud.SetServerStatus(s.ids[name], status, ""); err != nil {
		s.T.Fatal(err)
	}
}

func (s *situation) make() (*clean.Plan, error) {
	s.MakeClusters()
	if s.ageless {
		s.Access.Sessions = s.Access.NewSessions(withoutAges{s.Access.Transport})
	}
	s.Access.Target = nil
	if !s.targetless {
		s.Access.Target = fake.NewClientBuilder().WithScheme(account.Scheme()).WithObjects(s.nodes...).WithInterceptorFuncs(s.targetFuncs).Build()
	}
	return clean.Make(s.T.Context(), s.Access, s.options)
}

// withoutAges takes the times out of the API's answers.
type withoutAges struct{ http.RoundTripper }

var createdAt = regexp.MustCompile(`"createdAt":"[^"]*",?`)

func (w withoutAges) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(createdAt.ReplaceAll(body, nil)))
	return response, err
}

func deployment(class string, replicas int32) *v1alpha1.MachineDeployment {
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "worker"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.NodeLabelKey: "worker-0"}},
			Template: v1alpha1.MachineTemplateSpec{Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Name: class}}},
		},
	}
}

// The table of what is deleted when: what the user must say, and why it is more than --yes.
func TestWhatMustBeSaid(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *situation)
		needs  clean.Consent
		// says is a reason, of the place or of the server that is kept; "" wants none.
		says string
	}{
		"linked and proven":               {func(*situation) {}, clean.Flag, ""},
		"its class is deleted":            {func(s *situation) { s.makeServer("lost-2"); s.relabel(lost, provider.StackitMachineClassLabel, "old") }, clean.Flag, ""},
		"a Machine names it by ID":        {func(s *situation) { s.Add(testrig.Machine("other", "worker", s.ids[lost])) }, clean.Nobody, "Machine shoot--demo/other names it"},
		"a Machine has its name":          {func(s *situation) { s.Add(testrig.Machine(lost, "worker", "")) }, clean.Nobody, "Machine shoot--demo/lost-1 names it"},
		"a Ready Node has its ID":         {func(s *situation) { s.nodes = append(s.nodes, testrig.Node("n", s.ids[lost], corev1.ConditionTrue)) }, clean.Nobody, "Node n of the target cluster is this server"},
		"a Node that is not Ready has it": {func(s *situation) { s.nodes = append(s.nodes, testrig.Node("n", s.ids[lost], corev1.ConditionFalse)) }, clean.Nobody, "Node n of the target cluster is this server"},
		"a Node has its name":             {func(s *situation) { s.nodes = append(s.nodes, testrig.Node(lost, "", corev1.ConditionUnknown)) }, clean.Nobody, "Node lost-1 of the target cluster is this server"},
		"its label was edited":            {func(s *situation) { s.relabel(lost, provider.StackitMachineLabel, "lost-9") }, clean.Nobody, "its own name is not lost-9"},
		"it lacks the machine label":      {func(s *situation) { s.relabel(lost, provider.StackitMachineLabel, "") }, clean.Nobody, "it is not the manager's"},
		"another cluster's label, too":    {func(s *situation) { s.relabel(lost, "a.io/cluster", "x") }, clean.Nobody, "label of another cluster, too"},
		"too young":                       {func(s *situation) { s.options.OlderThan = time.Hour }, clean.Nobody, "it is younger than 1h0m0s"},
		"not among those named":           {func(s *situation) { s.options.ServerIDs = []string{s.ids["worker-0"]} }, clean.Nobody, "it is not among those named"},
		"a Node has its name and a domain": {func(s *situation) {
			s.nodes = append(s.nodes, testrig.Node(lost+".example.org", "", corev1.ConditionTrue))
		}, clean.Nobody, "is this server"},
		"a Node's host has its name": {func(s *situation) {
			s.addNode(func(node *corev1.Node) { node.Labels = map[string]string{corev1.LabelHostname: lost} })
		}, clean.Nobody, "Node n of the target cluster is this server"},
		"a Node's address is its name": {func(s *situation) {
			s.addNode(func(node *corev1.Node) {
				node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: strings.ToUpper(lost) + ".local"}}
			})
		}, clean.Nobody, "Node n of the target cluster is this server"},
		"a Node's machine has its ID": {func(s *situation) {
			s.addNode(func(node *corev1.Node) { node.Status.NodeInfo.SystemUUID = strings.ToUpper(s.ids[lost]) })
		}, clean.Nobody, "Node n of the target cluster is this server"},
		"a Node's name begins with its": {func(s *situation) { s.addNode(func(node *corev1.Node) { node.Name = lost + "0" }) }, clean.Flag, ""},
		"its age is not known":          {func(s *situation) { s.ageless = true }, clean.Nobody, "its age is not known"},
		"no target cluster":             {func(s *situation) { s.targetless = true }, clean.Typed, "no target cluster was looked at"},
		"another target cluster": {func(s *situation) {
			s.nodes = []client.Object{testrig.Node("n", "30000000-0000-4000-8000-000000000001", corev1.ConditionTrue)}
		}, clean.Typed, "it may be the wrong target cluster"},
		"an empty target cluster":       {func(s *situation) { s.nodes = nil }, clean.Typed, "it may be the wrong target cluster"},
		"a Node with but a name":        {func(s *situation) { s.nodes = []client.Object{testrig.Node("worker-0", "", corev1.ConditionTrue)} }, clean.Typed, "it may be the wrong target cluster"},
		"a pool wants more Machines":    {func(s *situation) { s.Add(deployment("worker", 2)) }, clean.Typed, "MachineDeployment shoot--demo/worker wants 2 Machines and has 1"},
		"a pool of no class wants more": {func(s *situation) { s.Add(deployment("old", 2)) }, clean.Typed, "MachineDeployment shoot--demo/worker wants 2 Machines and has 1"},
		"a pool has what it wants":      {func(s *situation) { s.Add(deployment("worker", 1)) }, clean.Flag, ""},
		"another cluster's pool": {func(s *situation) {
			s.Add(testrig.Class("other", map[string]any{"labels": map[string]any{testrig.ClusterKey: "x"}}), deployment("other", 9))
		}, clean.Flag, ""},
		"half of the servers":              {func(s *situation) { s.makeServer("lost-2"); s.makeServer("lost-3") }, clean.Flag, ""},
		"more than half of the servers":    {func(s *situation) { s.makeServer("lost-2"); s.makeServer("lost-3"); s.makeServer("lost-4") }, clean.Typed, "more than half of the cluster's servers: 4 of 7"},
		"half of those that are not going": {func(s *situation) { s.makeServer("lost-2"); s.setStatus("lost-2", "DELETING") }, clean.Flag, ""},
		"one is asked for, of many": {func(s *situation) {
			for i := range 4 {
				s.makeServer(fmt.Sprintf("more-%d", i))
			}
			s.options.ServerIDs = []string{s.ids[lost]}
		}, clean.Typed, "more than half of the cluster's servers: 5 of 8"},
		"others that are not the manager's": {func(s *situation) {
			for i := range 4 {
				s.makeServer(fmt.Sprintf("more-%d", i))
				s.ids["bastion"] = s.Server("bastion", map[string]string{testrig.ClusterKey: testrig.OwnCluster})
			}
		}, clean.Typed, "more than half of the cluster's servers: 5 of 8"},
		"a MachineSet wants more Machines": {func(s *situation) {
			spec := deployment("worker", 2).Spec
			s.Add(&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "worker"},
				Spec: v1alpha1.MachineSetSpec{Replicas: 2, Selector: spec.Selector, Template: spec.Template}})
		}, clean.Typed, "MachineSet shoot--demo/worker wants 2 Machines and has 1"},
		"a MachineSet elsewhere wants more": {func(s *situation) {
			spec := deployment("worker", 1).Spec
			s.Add(&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "worker"},
				Spec: v1alpha1.MachineSetSpec{Replicas: 1, Selector: spec.Selector, Template: spec.Template}})
		}, clean.Typed, "MachineSet elsewhere/worker wants 1 Machine and has 0"},
		"a pool that selects everything": {func(s *situation) {
			everything := deployment("worker", 1)
			everything.Spec.Selector = &metav1.LabelSelector{}
			s.Add(everything)
		}, clean.Typed, "MachineDeployment shoot--demo/worker wants 1 Machine and has 0"},
		"another provider's pool": {func(s *situation) {
			foreign := testrig.Class("foreign", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
			foreign.Provider = "aws"
			s.Add(foreign, deployment("foreign", 9))
		}, clean.Flag, ""},
		"more than --max":        {func(s *situation) { s.options.Max = 0 }, clean.Typed, "1 are more than --max=0"},
		"not linked":             {func(s *situation) { s.unlink() }, clean.TypedWithIDs, "no Machine of this control cluster names a server"},
		"linked by a name alone": {func(s *situation) { s.unlink(); s.Add(testrig.Machine("worker-0", "worker", "")) }, clean.TypedWithIDs, "no Machine of this control cluster names a server"},
		"linked by a form that nobody takes": {func(s *situation) {
			s.unlink()
			machine := testrig.Machine("x", "worker", "")
			machine.Spec.ProviderID = "aws:///x/" + s.ids["worker-0"]
			s.Add(machine)
		}, clean.TypedWithIDs, "no Machine of this control cluster names a server"},
		"a pool's Machine is on its way": {func(s *situation) {
			s.Add(deployment("worker", 1))
			for _, object := range s.Objects {
				if object.GetName() == "worker-0" {
					object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
					object.SetFinalizers([]string{"machine.sapcloud.io/machine-controller"})
				}
			}
		}, clean.Typed, "MachineDeployment shoot--demo/worker wants 1 Machine and has 0"},
		"not linked, one is too young": {func(s *situation) { s.unlink(); s.nodes = nil; s.options.OlderThan = time.Hour }, clean.Nobody, "it is younger than 1h0m0s"},
		"not linked, one is CREATING":  {func(s *situation) { s.unlink(); s.makeServer("new"); s.setStatus("new", "CREATING") }, clean.Nobody, "somebody works on this cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			row.change(s)
			plan, err := s.make()
			if err != nil {
				t.Fatal(err)
			}
			needs, reasons := s.needs(plan)
			if needs != row.needs || (row.says == "") != (reasons == "") || !strings.Contains(reasons, row.says) {
				t.Errorf("needs %d, want %d; says %q, want %q", needs, row.needs, reasons, row.says)
			}
			// Less than that deletes nothing that lives.
			plan.Delete(t.Context(), row.needs-1, true, func(deletion clean.Deletion) {
				if deletion.Orphan.State != "DELETING" {
					t.Errorf("deleted: %+v", deletion)
				}
			})
			if got := s.status(s.ids[lost]); got != "ACTIVE" {
				t.Errorf("the server is %q", got)
			}
		})
	}
}

// needs is what the deletion of the server that is lost takes, and why it is more than Flag.
func (s *situation) needs(plan *clean.Plan) (clean.Consent, string) {
	for _, kept := range plan.Kept {
		if kept.ID == s.ids[lost] {
			return clean.Nobody, kept.Reason
		}
	}
	if len(plan.Places) != 1 {
		s.T.Fatalf("places: %+v", plan.Places)
	}
	return plan.Places[0].Needs, strings.Join(plan.Places[0].Reasons, "; ")
}

// relabel changes a label of a server; "" takes it away.
func (s *situation) relabel(name, key, value string) {
	label := any(value)
	if value == "" {
		label = nil
	}
	_, err := s.API.API.UpdateServer(s.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, s.ids[name]).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: map[string]any{key: label}}).Execute()
	if err != nil {
		s.T.Fatal(err)
	}
}

// What is being deleted is asked again where the cluster is linked, whatever else is asked for,
// and left alone elsewhere.
func TestWhatIsBeingDeleted(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(s *situation)
		deletes bool
	}{
		"linked":               {func(*situation) {}, true},
		"linked, with a doubt": {func(s *situation) { s.targetless = true }, true},
		"not linked":           {func(s *situation) { s.unlink() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			s.setStatus(lost, "DELETING")
			row.change(s)
			plan, err := s.make()
			if err != nil {
				t.Fatal(err)
			}
			if plan.Count() != 0 {
				t.Errorf("%d are counted", plan.Count())
			}
			plan.Allow(clean.Flag)
			if got := len(plan.Orphans) == 1; got != row.deletes {
				t.Errorf("got %+v", plan.Orphans)
			}
		})
	}
}

var errList = errors.New("the list fails")

// failsFor makes lists of a kind fail.
func failsFor(list client.ObjectList) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
		if fmt.Sprintf("%T", into) == fmt.Sprintf("%T", list) {
			return errList
		}
		return c.List(ctx, into, options...)
	}
}

// What has changed since it was shown stays, whatever was said.
func TestWhatChangesUntilItsDELETE(t *testing.T) {
	for name, row := range map[string]struct{ before, after func(s *situation) }{
		"its deletion failed":  {func(s *situation) { s.setStatus(lost, "DELETING") }, func(s *situation) { s.setStatus(lost, "ACTIVE") }},
		"another class":        {func(*situation) {}, func(s *situation) { s.relabel(lost, provider.StackitMachineClassLabel, "new") }},
		"another cluster":      {func(*situation) {}, func(s *situation) { s.relabel(lost, testrig.ClusterKey, "x") }},
		"a Node has its ID":    {func(*situation) {}, func(s *situation) { s.createNode(testrig.Node("n", s.ids[lost], corev1.ConditionTrue)) }},
		"a Node has its name":  {func(*situation) {}, func(s *situation) { s.createNode(testrig.Node(lost, "", corev1.ConditionTrue)) }},
		"no Machine is shown":  {func(*situation) {}, func(s *situation) { s.deleteAll(s.Access.Control, &v1alpha1.Machine{}) }},
		"no Node is shown":     {func(*situation) {}, func(s *situation) { s.deleteAll(s.Access.Target, &corev1.Node{}) }},
		"a Machine has its ID": {func(*situation) {}, func(s *situation) { s.createMachine(testrig.Machine("m", "worker", s.ids[lost])) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			row.before(s)
			plan, err := s.make()
			if err != nil {
				t.Fatal(err)
			}
			row.after(s)
			reports := 0
			plan.Delete(t.Context(), clean.TypedWithIDs, true, func(deletion clean.Deletion) {
				reports++
				if deletion.Outcome != clean.NotDeleted || deletion.Reason == "" {
					t.Errorf("got %+v", deletion)
				}
			})
			if reports != 1 || s.Cloud.CallCounts()[deleteOperation] != 0 {
				t.Errorf("%d reports, calls: %v", reports, s.Cloud.CallCounts())
			}
		})
	}
}

func (s *situation) deleteAll(in client.Client, kind client.Object) {
	if err := in.DeleteAllOf(s.T.Context(), kind); err != nil {
		s.T.Fatal(err)
	}
}

// What somebody begins while the user thinks is asked about again.
func TestRecheck(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *situation)
		says   string
	}{
		"nothing":                       {func(*situation) {}, ""},
		"somebody works on it":          {func(s *situation) { s.makeServer("new"); s.setStatus("new", "CREATING") }, "somebody works on this cluster"},
		"another is on its way":         {func(s *situation) { s.makeServer("going"); s.setStatus("going", "DELETING") }, ""},
		"the server itself has an heir": {func(s *situation) { s.createMachine(testrig.Machine(lost, "worker", "")) }, ""}, // the last look says so
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			s.unlink()
			s.options.ServerIDs = []string{s.ids[lost]}
			plan, err := s.make()
			if err != nil {
				t.Fatal(err)
			}
			row.change(s)
			err = plan.Recheck(t.Context(), clean.TypedWithIDs)
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}

func (s *situation) createNode(node *corev1.Node) {
	if err := s.Access.Target.Create(s.T.Context(), node); err != nil {
		s.T.Fatal(err)
	}
}

func (s *situation) createMachine(machine *v1alpha1.Machine) {
	if err := s.Access.Control.Create(s.T.Context(), machine); err != nil {
		s.T.Fatal(err)
	}
}

// Only a DELETE that was refused, and no earlier one, leaves a server for certain.
func TestWhatAFailedDELETEProves(t *testing.T) {
	for name, row := range map[string]struct {
		faults []iaasmock.Fault
		wait   bool
		want   clean.Outcome
	}{
		"refused":                        {[]iaasmock.Fault{{Operation: deleteOperation, Status: 403}}, true, clean.NotDeleted},
		"executed, and the next refused": {[]iaasmock.Fault{{Operation: deleteOperation, Status: 503, Count: 1}, {Operation: deleteOperation, Status: 409}}, true, clean.Unknown},
		"not found, and nobody waits":    {[]iaasmock.Fault{{Operation: deleteOperation, Status: 404}}, false, clean.Unknown},
		"accepted, and nobody waits":     {nil, false, clean.Requested},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				r.orphan()
				plan := r.plan()
				for _, fault := range row.faults {
					r.Cloud.Inject(fault)
				}
				plan.Delete(t.Context(), clean.TypedWithIDs, row.wait, func(deletion clean.Deletion) {
					if deletion.Outcome != row.want {
						t.Errorf("got %s: %s, want %s", deletion.Outcome, deletion.Reason, row.want)
					}
				})
			})
		})
	}
}

// A server that is younger than --older-than beside one that is not, where nothing links the
// cluster: somebody may be making it.
func TestAYoungServerBesideAnOldOne(t *testing.T) {
	for name, row := range map[string]struct {
		status string
		named  bool
		needs  clean.Consent
	}{
		"nobody's":         {"ACTIVE", false, clean.Nobody},
		"a Machine's":      {"ACTIVE", true, clean.TypedWithIDs},
		"on its way":       {"DELETING", false, clean.TypedWithIDs},
		"a Machine's, new": {"CREATING", true, clean.TypedWithIDs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				r.orphan()
				<-time.After(time.Hour)
				young := r.Server("young", testrig.Labels("young", "worker", testrig.OwnCluster))
				if err := r.Cloud.SetServerStatus(young, row.status, ""); err != nil {
					t.Fatal(err)
				}
				if row.named {
					r.Add(testrig.Machine("young", "worker", ""))
				}
				r.MakeClusters()
				plan, err := clean.Make(t.Context(), r.Access, clean.Options{
					ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster, OlderThan: time.Minute, Max: 10,
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := plan.Places[0].Needs; got != row.needs {
					t.Errorf("got %d, want %d: %q", got, row.needs, plan.Places[0].Reasons)
				}
				if asked := len(plan.Orphans) == 2; asked != (row.status == "DELETING") { // whatever its age
					t.Errorf("got %+v", plan.Orphans)
				}
			})
		})
	}
}

// What cannot be read makes no plan.
func TestWhatCannotBeRead(t *testing.T) {
	for name, list := range map[string]client.ObjectList{
		"Machines": &v1alpha1.MachineList{}, "MachineSets": &v1alpha1.MachineSetList{},
		"MachineDeployments": &v1alpha1.MachineDeploymentList{}, "MachineClasses": &v1alpha1.MachineClassList{}, "Nodes": &corev1.NodeList{},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			s.Funcs.List, s.targetFuncs.List = failsFor(list), failsFor(list)
			if plan, err := s.make(); err == nil || !errors.Is(err, errList) {
				t.Errorf("%+v, %v", plan, err)
			}
		})
	}
}

// Where nothing is shown, that must be true.
func TestNothingIsListed(t *testing.T) {
	emptyAbroad := iaasmock.Fault{Operation: "ListServers", EmptyList: true, Match: func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/regions/"+iaasmock.SecondRegion+"/")
	}}
	for name, row := range map[string]struct {
		change func(s *situation)
		says   string
	}{
		"an empty moment": {func(s *situation) { s.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true}) },
			"which Machine shoot--demo/worker-0 names, is there"},
		"an empty moment in another region": {func(s *situation) {
			id := s.addAbroad("worker-9")
			s.Add(testrig.Machine("worker-8", "abroad", ""), testrig.Machine("worker-9", "abroad", id))
			s.Cloud.Inject(emptyAbroad)
		}, "which Machine shoot--demo/worker-9 names, is there"},
		"one of the servers there is gone": {func(s *situation) {
			s.Add(testrig.Machine("worker-8", "abroad", "6b3c9e1c-8c1c-4f0e-9d6b-0c9f3d2a7e11"), testrig.Machine("worker-9", "abroad", s.addAbroad("worker-9")))
			s.Cloud.Inject(emptyAbroad)
		}, "which Machine shoot--demo/worker-9 names, is there"},
		"the servers are gone": {func(s *situation) {
			for _, id := range s.ids {
				if err := s.Cloud.RemoveServer(id); err != nil {
					s.T.Fatal(err)
				}
			}
		}, ""},
		"a mistyped cluster": {func(s *situation) {
			s.options.ClusterValue = "shoot--demmo"
			s.Access.SecretName = "credentials"
		}, "neither a MachineClass nor a server carries kubernetes.io/cluster=shoot--demmo (looked at: project " + iaasmock.DefaultProjectID},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			row.change(s)
			plan, err := s.make()
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Fatalf("%+v, %v, want %q", plan, err, row.says)
			}
			if err == nil && (len(plan.Orphans) != 0 || len(plan.Looked()) != 1 || !strings.Contains(plan.Looked()[0], "0 servers, by Secret")) {
				t.Errorf("got %+v, %q", plan.Orphans, plan.Looked())
			}
		})
	}
}

// In a large cluster the last look takes its time.
func TestTheLastLookMayTakeAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCleanRig(t)
		r.orphan()
		r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			select {
			case <-time.After(8 * time.Second):
				return c.List(ctx, into, options...)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if last := r.clean(t.Context(), r.plan()); last.Outcome != clean.Gone {
			t.Errorf("got %s: %s", last.Outcome, last.Reason)
		}
	})
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/deleteserver"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	deleteOperation = "DeleteServer"
	getOperation    = "GetServer"
	lost            = "lost-1"
	hour            = time.Hour

	gone       = deleteserver.Gone
	stillThere = deleteserver.StillThere
	refused    = deleteserver.Refused
	notFound   = deleteserver.NotFound
	unknown    = deleteserver.Unknown
)

// rig is a cluster with a server that has a Machine and a Ready Node, and one without either, both of
// them two hours old. It is in virtual time, without a network: time stands still while a goroutine
// waits for one.
type rig struct {
	*testrig.Rig
	nodes []client.Object
	wire  *inMemory
	// ids are of the servers, by name.
	ids map[string]string
	// unlisted is what no cluster lists; nil for nothing.
	unlisted client.ObjectList
}

func newRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(5 * time.Second), iaasmock.WithoutAuthentication(),
	}, options...)...)
	wire := &inMemory{Handler: conformance.Watch(t, cloud)}
	r := &rig{Rig: testrig.NewOver(t, cloud, "http://iaas.invalid", wire), wire: wire, ids: map[string]string{}}
	r.Funcs.List = r.list
	r.make("worker-0")
	r.make(lost)
	r.Add(testrig.Machine("worker-0", "worker", r.ids["worker-0"]))
	r.nodes = []client.Object{testrig.Node("worker-0", r.ids["worker-0"], corev1.ConditionTrue)}
	<-time.After(2 * time.Hour)
	t.Cleanup(func() { <-time.After(10 * time.Minute) }) // what is under way ends in its own time
	return r
}

func (r *rig) list(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
	if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", r.unlisted) {
		return errors.New("no such resource")
	}
	return c.List(ctx, list, o...)
}

func (r *rig) make(name string) {
	r.T.Helper()
	r.ids[name] = r.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster))
}

// node adds a Node that has nothing to do with any server, before it is changed.
func (r *rig) node(status corev1.ConditionStatus, change func(*corev1.Node)) {
	node := testrig.Node("n", "", status)
	change(node)
	r.nodes = append(r.nodes, node)
}

// update changes the lost server as somebody else would.
func (r *rig) update(payload iaas.UpdateServerPayload) {
	r.T.Helper()
	request := r.API.API.UpdateServer(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, r.ids[lost])
	_, err := request.UpdateServerPayload(payload).Execute()
	if err != nil {
		r.T.Error(err)
	}
}

func (r *rig) label(key string, value any) {
	r.update(iaas.UpdateServerPayload{Labels: map[string]any{key: value}})
}

func (r *rig) setStatus(status string) {
	if err := r.Cloud.SetServerStatus(r.ids[lost], status, ""); err != nil {
		r.T.Error(err)
	}
}

// setClock sets this computer's clock, ahead of the API's or behind it.
func (r *rig) setClock(ahead time.Duration) {
	r.Access.Clock = clocktesting.NewFakeClock(time.Now().Add(ahead))
}

func (r *rig) metadata(key, value string) {
	r.update(iaas.UpdateServerPayload{Metadata: map[string]any{key: value}})
}

// deleteBySomebody asks for the deletion of the lost server as somebody else would.
func (r *rig) deleteBySomebody() {
	r.T.Helper()
	request := r.API.API.DeleteServer(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, r.ids[lost])
	if err := request.Execute(); err != nil {
		r.T.Error(err)
	}
}

// appear makes the Machine of the lost server, join its Ready Node.
func (r *rig) appear() { r.create(r.Access.Control, testrig.Machine(lost, "worker", "")) }

func (r *rig) join() { r.create(r.Access.Target, testrig.Node("n", r.ids[lost], corev1.ConditionTrue)) }

// leave deletes the Node of the other server.
func (r *rig) leave() {
	if err := r.Access.Target.Delete(r.T.Context(), r.nodes[0]); err != nil {
		r.T.Error(err)
	}
}

// declass deletes the only MachineClass.
func (r *rig) declass() {
	if err := r.Access.Control.Delete(r.T.Context(), testrig.Class("worker", nil)); err != nil {
		r.T.Error(err)
	}
}

func (r *rig) create(in client.Client, object client.Object) {
	if err := in.Create(r.T.Context(), object); err != nil {
		r.T.Error(err)
	}
}

func (r *rig) addMachine(name, providerID string) { r.Add(named(name, testrig.Namespace, providerID)) }

func named(name, namespace, providerID string) *v1alpha1.Machine {
	machine := testrig.Machine(name, "worker", "")
	machine.Namespace, machine.Spec.ProviderID = namespace, providerID
	return machine
}

func (r *rig) hasID(node *corev1.Node) { node.Spec.ProviderID = "openstack:///eu01/" + r.ids[lost] }

func (r *rig) hasUUID(node *corev1.Node) {
	node.Status.NodeInfo.SystemUUID = strings.ToUpper(r.ids[lost])
}

func hasAddress(node *corev1.Node, kind corev1.NodeAddressType, address string) {
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "::1"},
		{Type: kind, Address: address}}
}

// address is one of the lost server's.
func (r *rig) address(isIPv6 bool) string {
	r.T.Helper()
	nics, err := r.API.API.ListServerNICs(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, r.ids[lost]).
		Execute()
	if err != nil || len(nics.GetItems()) == 0 {
		r.T.Fatal("no NIC: ", err)
	}
	if isIPv6 {
		return nics.GetItems()[0].GetIpv6()
	}
	return nics.GetItems()[0].GetIpv4()
}

// state is that of the server; "" if there is none.
func (r *rig) state(name string) string {
	server, _ := r.Cloud.Server(r.ids[name])
	return server.Status
}

// tryLook looks at the servers.
func (r *rig) tryLook(names ...string) (*deleteserver.Plan, error) {
	r.T.Helper()
	r.MakeClusters()
	r.Access.Target = fake.NewClientBuilder().WithScheme(account.Scheme()).WithObjects(r.nodes...).
		WithInterceptorFuncs(interceptor.Funcs{List: r.list}).Build()
	ids, told := []string{}, 0
	for _, name := range names {
		ids = append(ids, r.ids[name])
	}
	plan, err := deleteserver.Look(r.T.Context(), r.Access, ids, func(read int) { told = read })
	if err == nil && told != len(ids) {
		r.T.Errorf("%d of %d reads were told", told, len(ids))
	}
	return plan, err
}

func (r *rig) look(names ...string) *deleteserver.Plan {
	r.T.Helper()
	plan, err := r.tryLook(names...)
	if err != nil {
		r.T.Fatal(err)
	}
	return plan
}

// delete deletes what is left of the plan. What is said to be gone must be gone, and what is said to be
// refused must have got no DELETE that was accepted.
func (r *rig) delete(ctx context.Context, plan *deleteserver.Plan) {
	r.T.Helper()
	left, reports := len(plan.ToDelete()), 0
	plan.Delete(ctx, func(server *deleteserver.Server) {
		reports++
		now, there := r.Cloud.Server(server.ID)
		if there && server.Outcome == gone || server.Outcome == refused && now.Status != server.Shown.Status {
			r.T.Errorf("server %s is %q, and reported %s: %s", server.ID, now.Status, server.Outcome, server.Reason)
		}
	})
	if reports != left || len(plan.ToDelete()) > 0 {
		r.T.Fatalf("%d reports of %d servers", reports, left)
	}
}

// expect compares what became of one server.
func expect(t *testing.T, server *deleteserver.Server, outcome deleteserver.Outcome, says string) {
	t.Helper()
	if server.Outcome != outcome || !strings.Contains(server.Reason, says) || (says == "") != (server.Reason == "") {
		t.Errorf("%s: %s; want %s: %s", server.Outcome, server.Reason, outcome, says)
	}
}

// inMemory lets the handler answer, which sees the request's body as a server does.
type inMemory struct {
	http.Handler
	// dateless hides the Date of answers, ageless when servers were made.
	dateless, ageless bool
}

func (m *inMemory) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil { // as net/http's server does when the client has left
			response, err = nil, errors.New("connection reset")
		}
	}()
	answer, received := httptest.NewRecorder(), request.Clone(request.Context())
	if received.Body == nil {
		received.Body = http.NoBody
	}
	if !m.dateless {
		answer.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	m.ServeHTTP(answer, received)
	if m.ageless {
		answer.Body = bytes.NewBuffer(createdAt.ReplaceAll(answer.Body.Bytes(), nil))
	}
	return answer.Result(), nil
}

var createdAt = regexp.MustCompile(`"createdAt":"[^"]*",`)

// What is refused, and why.
func TestRefuses(t *testing.T) {
	young := func(r *rig) { r.ids[lost] = ""; r.make(lost) }
	label := func(key string, value any) func(*rig) { return func(r *rig) { r.label(key, value) } }
	withNode := func(change func(*rig, *corev1.Node)) func(*rig) {
		return func(r *rig) { r.node(corev1.ConditionUnknown, func(n *corev1.Node) { change(r, n) }) }
	}
	const (
		tag  = "kubernetes.io-cluster-shoot"
		node = "Node n of the target cluster runs on this server: restore its Machine, or"
	)
	for name, row := range map[string]struct {
		prepare func(*rig)
		says    string
	}{
		"a Machine names it by ID": {func(r *rig) { r.addMachine("other", r.ids[lost]) },
			"kubectl -n shoot--demo delete machine other"},
		"a Machine has its name": {func(r *rig) { r.addMachine(lost, "") }, "Machine shoot--demo/lost-1 names it"},
		"a Machine in another namespace": {func(r *rig) { r.Add(named("other", "elsewhere", "stackit://"+r.ids[lost])) },
			"Machine elsewhere/other names it"},
		"it is a Machine's second": {func(r *rig) { r.Add(testrig.Machine(lost, "worker", r.ids["worker-0"])) },
			"second server of Machine shoot--demo/lost-1"},
		"another cluster's Machine has its name": {
			func(r *rig) { r.Add(named(lost, "elsewhere", "aws:///eu-central-1/i-0abc")) },
			"Machine elsewhere/lost-1 has the server's name, but its ProviderID and class suggest that the server is "},
		"another cluster's new Machine has its name": {func(r *rig) { r.Add(named(lost, "elsewhere", "")) },
			"find the server's owner"},
		"it lacks the machine label":      {label(provider.StackitMachineLabel, ""), "its owner is unknown"},
		"it carries no cluster's label":   {label(testrig.ClusterKey, nil), "it has no cluster label"},
		"it is another cluster's":         {label(testrig.ClusterKey, "x"), "its label is kubernetes.io/cluster=x"},
		"it is of two clusters":           {label("a.io/cluster", "x"), "its label is a.io/cluster=x,kubernetes.io/cluster="},
		"its machine label was edited":    {label(provider.StackitMachineLabel, "lost-9"), "its name is not lost-9"},
		"it has OpenStack's tag":          {label(tag, "1"), "OpenStack's tag " + tag},
		"OpenStack's tag in metadata":     {func(r *rig) { r.metadata(tag, "1") }, "OpenStack's tag " + tag},
		"it is young":                     {young, "it is only 0s old"},
		"it is young and in ERROR":        {func(r *rig) { young(r); r.setStatus("ERROR") }, "it is only 0s old"},
		"it is young and going":           {func(r *rig) { young(r); r.setStatus("DELETING") }, "it is only 0s old"},
		"our clock is ahead":              {func(r *rig) { young(r); r.setClock(24 * hour) }, "it is only 0s old"},
		"an answer without a Date":        {func(r *rig) { r.wire.dateless = true }, "its age is unknown"},
		"an answer without creation time": {func(r *rig) { r.wire.ageless = true }, "its age is unknown"},
		"the server's addresses cannot be read": {
			func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Status: 500}) },
			"the server's addresses cannot be read"},
		"its addresses are an empty list": {
			func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", EmptyList: true}) },
			"the server's addresses cannot be read: the API returned none"},
		"a Node has its ID":   {withNode((*rig).hasID), node},
		"a Node has its UUID": {withNode((*rig).hasUUID), node},
		"a Node has its name": {withNode(func(_ *rig, n *corev1.Node) { n.Name = lost + ".example.org" }),
			"Node lost-1.example.org of the target"},
		"a Node has its host": {withNode(func(_ *rig, n *corev1.Node) { hasAddress(n, corev1.NodeHostName, lost) }), node},
		"a Node has its address": {
			withNode(func(r *rig, n *corev1.Node) { hasAddress(n, corev1.NodeInternalIP, r.address(false)) }), node},
		"a Node has its IPv6 address, in another form": {withNode(func(r *rig, n *corev1.Node) {
			hasAddress(n, corev1.NodeExternalIP, strings.ToUpper(netip.MustParseAddr(r.address(true)).StringExpanded()))
		}), node},
		"a Node has its address, mapped to IPv6": {withNode(func(r *rig, n *corev1.Node) {
			hasAddress(n, corev1.NodeInternalIP, "::ffff:"+r.address(false))
		}), node},
		"a Ready Node has its ID": {func(r *rig) { r.node(corev1.ConditionTrue, r.hasID) }, node},
		"no Node is left": {func(r *rig) { r.nodes = nil },
			"none of the 0 Nodes of the target cluster runs on a server of kubernetes.io/cluster="},
		"the target is another cluster": {func(r *rig) {
			r.nodes = []client.Object{testrig.Node("worker-0", testrig.OtherProject, corev1.ConditionTrue)}
		},
			"none of the 1 Nodes of the target cluster runs on a server of kubernetes.io/cluster="},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				row.prepare(r)
				plan := r.look(lost)
				expect(t, plan.Servers[0], refused, row.says)
				r.delete(t.Context(), plan)
				if sent := r.Cloud.CallCounts()[deleteOperation]; sent > 0 {
					t.Errorf("%d DELETEs", sent)
				}
			})
		})
	}
}

func TestDeletes(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"an orphan":                     func(*rig) {},
		"of a class that is gone":       func(r *rig) { r.label(provider.StackitMachineClassLabel, "old") },
		"with one value under two keys": func(r *rig) { r.label("a.io/cluster", testrig.OwnCluster) },
		"in ERROR":                      func(r *rig) { r.setStatus("ERROR") },
		"that is going already":         func(r *rig) { r.deleteBySomebody() },
		"with a name that a Node has begun": func(r *rig) {
			r.node(corev1.ConditionTrue, func(n *corev1.Node) { n.Name = lost + "0" })
		},
		"of a class in another namespace": func(r *rig) {
			r.label(testrig.ClusterKey, "x")
			class := testrig.Class("other", map[string]any{"labels": map[string]any{testrig.ClusterKey: "x"}})
			class.Namespace = "elsewhere"
			r.Add(class)
			id := r.Server("worker-1", testrig.Labels("worker-1", "other", "x"))
			r.nodes = append(r.nodes, testrig.Node("worker-1", id, corev1.ConditionTrue))
		},
		"while our clock is behind": func(r *rig) { r.setClock(-24 * hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, iaasmock.WithDeleteDuration(time.Minute))
				prepare(r)
				plan := r.look(lost, "worker-0")
				r.delete(t.Context(), plan)
				expect(t, plan.Servers[0], gone, "")
				expect(t, plan.Servers[1], refused, "names it")
				if r.state("worker-0") != "ACTIVE" {
					t.Error("the other server is", r.state("worker-0"))
				}
			})
		})
	}
}

// An ID that the first look does not show is never gone, whatever is there.
func TestNotFound(t *testing.T) {
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
	}{
		"answered 404": {iaasmock.Fault{Operation: getOperation, Status: 404},
			notFound, "no server with this ID found in project " + iaasmock.DefaultProjectID + " in eu01"},
		"empty project": {iaasmock.Fault{EmptyProject: true}, notFound, "no server with this ID found in "},
		"out of order":  {iaasmock.Fault{Operation: getOperation, Status: 500}, unknown, "reading a server"},
		"not allowed":   {iaasmock.Fault{Operation: getOperation, Status: 403}, unknown, "NoPermission"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Cloud.Inject(row.fault)
				plan := r.look(lost)
				expect(t, plan.Servers[0], row.outcome, row.says)
				if left := plan.ToDelete(); len(left) > 0 {
					t.Error("left to delete:", left[0].ID)
				}
			})
		})
	}
}

// Nobody is an orphan where not all can be read.
func TestNothingIsDeletedWhereNotAllIsRead(t *testing.T) {
	lists := func(what client.ObjectList) func(*rig) { return func(r *rig) { r.unlisted = what } }
	for name, prepare := range map[string]func(*rig){
		"Machines":       lists(&v1alpha1.MachineList{}),
		"MachineClasses": lists(&v1alpha1.MachineClassList{}),
		"Nodes":          lists(&corev1.NodeList{}),
		"servers": func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 403})
		},
		"the credentials": func(r *rig) { r.Access.SecretName = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				prepare(r)
				if _, err := r.tryLook(lost); err == nil {
					t.Error("no error")
				}
			})
		})
	}
}

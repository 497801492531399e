// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
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
	// ids are of the servers, by name.
	ids map[string]string
	// unlisted is what no cluster lists; nil for nothing.
	unlisted client.ObjectList
	// meanwhile is called while MachineClasses are listed; nil for nothing.
	meanwhile func(*rig)
}

func newRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(5 * time.Second), iaasmock.WithoutAuthentication(),
	}, options...)...)
	wire := inMemory{conformance.Watch(t, cloud)}
	r := &rig{Rig: testrig.NewOver(t, cloud, "http://iaas.invalid", wire), ids: map[string]string{}}
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
	if _, isClasses := list.(*v1alpha1.MachineClassList); isClasses && r.meanwhile != nil {
		r.meanwhile(r)
	}
	return c.List(ctx, list, o...)
}

func (r *rig) make(name string) {
	r.T.Helper()
	r.ids[name] = r.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster))
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

func (r *rig) metadata(key, value string) {
	r.update(iaas.UpdateServerPayload{Metadata: map[string]any{key: value}})
}

// appear makes the Machine of the lost server, join its Ready Node.
func (r *rig) appear() { r.create(r.Access.Control, testrig.Machine(lost, "worker", "")) }

func (r *rig) join() { r.create(r.Access.Target, testrig.Node("n", r.ids[lost], corev1.ConditionTrue)) }

// leave deletes the Node of the other server, declass the only MachineClass.
func (r *rig) leave() { r.remove(r.Access.Target, r.nodes[0]) }

func (r *rig) declass() { r.remove(r.Access.Control, testrig.Class("worker", nil)) }

func (r *rig) remove(from client.Client, object client.Object) {
	if err := from.Delete(r.T.Context(), object); err != nil {
		r.T.Error(err)
	}
}

func (r *rig) create(in client.Client, object client.Object) {
	if err := in.Create(r.T.Context(), object); err != nil {
		r.T.Error(err)
	}
}

// judge judges the servers.
func (r *rig) judge(names ...string) (*deleteserver.Deletion, []*deleteserver.Server, error) {
	r.T.Helper()
	r.MakeClusters()
	r.Access.Target = fake.NewClientBuilder().WithScheme(account.Scheme()).WithObjects(r.nodes...).
		WithInterceptorFuncs(interceptor.Funcs{List: r.list}).Build()
	deletion, _, err := deleteserver.New(r.T.Context(), r.Access)
	if err != nil {
		return nil, nil, err
	}
	var servers []*deleteserver.Server
	for _, name := range names {
		server, err := deletion.Judge(r.T.Context(), r.ids[name])
		if err != nil {
			return nil, nil, err
		}
		servers = append(servers, server)
	}
	return deletion, servers, nil
}

// delete deletes servers that were judged. What is said to be gone must be gone, and what is said to be refused must
// have got no DELETE that was accepted.
func (r *rig) delete(ctx context.Context, deletion *deleteserver.Deletion, servers ...*deleteserver.Server) {
	r.T.Helper()
	for _, server := range servers {
		deletion.Delete(ctx, server)
		now, there := r.Cloud.Server(server.ID)
		if there && server.Outcome == gone || server.Outcome == refused && now.Status != server.Evidence.Server.Status {
			r.T.Errorf("server %s is %q, and reported %s: %s", server.ID, now.Status, server.Outcome, server.Reason)
		}
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
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil { // as net/http's server does when the client has left
			response, err = nil, errors.New("connection reset")
		}
	}()
	answer, received := httptest.NewRecorder(), request.Clone(request.Context())
	if received.Body == nil {
		received.Body = http.NoBody
	}
	answer.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	m.ServeHTTP(answer, received)
	return answer.Result(), nil
}

// in runs a test in virtual time, with a rig.
func in(t *testing.T, name string, test func(*testing.T, *rig)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
	})
}

func TestJudge(t *testing.T) {
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
	}{
		"an orphan": {iaasmock.Fault{Operation: "ListQuotas", Status: 500}, "", ""},
		"answered 404": {iaasmock.Fault{Operation: getOperation, Status: 404}, notFound,
			"no server with this ID in project "},
		"empty project": {iaasmock.Fault{EmptyProject: true}, notFound, "no server with this ID in "},
		"out of order":  {iaasmock.Fault{Operation: getOperation, Status: 500}, unknown, "reading a server"},
		"not allowed":   {iaasmock.Fault{Operation: getOperation, Status: 403}, unknown, "NoPermission"},
		"addresses cannot be read": {iaasmock.Fault{Operation: "ListServerNICs", Status: 500}, refused,
			"its addresses cannot be read"},
		"no addresses": {iaasmock.Fault{Operation: "ListServerNICs", EmptyList: true}, refused, "returned no addresses"},
	} {
		in(t, name, func(t *testing.T, r *rig) {
			r.Cloud.Inject(row.fault)
			_, servers, err := r.judge(lost)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, servers[0], row.outcome, row.says)
		})
	}
}

// Nobody is an orphan where not all can be read.
func TestNothingIsJudgedWhereNotAllIsRead(t *testing.T) {
	lists := func(what client.ObjectList) func(*rig) { return func(r *rig) { r.unlisted = what } }
	for name, prepare := range map[string]func(*rig){
		"Machines":        lists(&v1alpha1.MachineList{}),
		"MachineClasses":  lists(&v1alpha1.MachineClassList{}),
		"Nodes":           lists(&corev1.NodeList{}),
		"servers":         func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 403}) },
		"the credentials": func(r *rig) { r.Access.SecretName = "other" },
	} {
		in(t, name, func(t *testing.T, r *rig) {
			prepare(r)
			if _, _, err := r.judge(lost); err == nil {
				t.Error("no error")
			}
		})
	}
}

// Right before each DELETE the server, the Machines and the Nodes are judged again.
func TestJudgesAgain(t *testing.T) {
	const changed = "changed since it was shown"
	fault := func(fault iaasmock.Fault) func(*rig) { return func(r *rig) { r.Cloud.Inject(fault) } }
	for name, row := range map[string]struct {
		change  func(*rig)
		outcome deleteserver.Outcome
		says    string
	}{
		"a Machine appears": {(*rig).appear, refused, "Machine shoot--demo/lost-1 names it"},
		"a Machine appears meanwhile": {func(r *rig) { r.meanwhile = (*rig).appear }, refused,
			"Machine shoot--demo/lost-1 names it"},
		"a Node appears meanwhile": {func(r *rig) { r.meanwhile = (*rig).join }, refused, "Node n of the target"},
		"a Node appears":           {(*rig).join, refused, "Node n of the target cluster names it"},
		"the last other Node goes": {(*rig).leave, refused, "none of the 0 Nodes"},
		"the MachineClass goes":    {(*rig).declass, refused, "no MachineClass of the control cluster"},
		"its class label changes":  {func(r *rig) { r.label(provider.StackitMachineClassLabel, "x") }, refused, changed},
		"its metadata changes":     {func(r *rig) { r.metadata("a", "b") }, refused, changed},
		"Machines cannot be read": {func(r *rig) { r.unlisted = &v1alpha1.MachineList{} }, refused,
			"cannot identify orphans"},
		"it cannot be read": {fault(iaasmock.Fault{Operation: getOperation, Status: 502}), unknown, "reading a server"},
		"it is not shown":   {fault(iaasmock.Fault{Operation: getOperation, Status: 404}), notFound, "no server with"},
		"no addresses": {fault(iaasmock.Fault{Operation: "ListServerNICs", Status: 502}), refused,
			"addresses cannot be read"},
	} {
		in(t, name, func(t *testing.T, r *rig) {
			deletion, servers, err := r.judge(lost)
			if err != nil {
				t.Fatal(err)
			}
			row.change(r)
			r.delete(t.Context(), deletion, servers...)
			expect(t, servers[0], row.outcome, row.says)
			if sent := r.Cloud.CallCounts()[deleteOperation]; sent > 0 {
				t.Errorf("%d DELETEs", sent)
			}
		})
	}
}

// What is reported gone is gone, and what is there is reported with its state.
func TestOutcomes(t *testing.T) {
	deletes := func(fault iaasmock.Fault) []iaasmock.Fault {
		fault.Operation = deleteOperation
		return []iaasmock.Fault{fault}
	}
	hangs := iaasmock.Fault{Operation: deleteOperation, NeverGone: true}
	old := iaasmock.Fault{Operation: "ListServers", Stale: 30 * time.Second}
	const active, deleting = "it is ACTIVE: ", "it is DELETING: "
	for name, row := range map[string]struct {
		faults  []iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
	}{
		"nothing":                            {nil, gone, ""},
		"a DELETE does nothing":              {deletes(iaasmock.Fault{Status: 204, Count: 1}), stillThere, active},
		"the answer to a DELETE is lost":     {deletes(iaasmock.Fault{Status: 504, Executed: true, Count: 1}), gone, ""},
		"every DELETE is answered 404":       {deletes(iaasmock.Fault{Status: 404}), stillThere, active},
		"every DELETE is answered 503":       {deletes(iaasmock.Fault{Status: 503}), stillThere, active},
		"every DELETE is answered 403":       {deletes(iaasmock.Fault{Status: 403}), stillThere, active},
		"a DELETE is answered 403, and done": {deletes(iaasmock.Fault{Status: 403, Executed: true}), gone, ""},
		"every DELETE ends in ERROR":         {deletes(iaasmock.Fault{FinalStatus: "ERROR"}), stillThere, "it is ERROR: "},
		"it hangs in DELETING":               {[]iaasmock.Fault{hangs}, stillThere, deleting},
		"lists are old":                      {[]iaasmock.Fault{old}, gone, ""},
	} {
		in(t, name, func(t *testing.T, r *rig) {
			deletion, servers, err := r.judge(lost, "worker-0")
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range row.faults {
				r.Cloud.Inject(fault)
			}
			r.delete(t.Context(), deletion, servers[0])
			expect(t, servers[0], row.outcome, row.says)
			expect(t, servers[1], refused, "names it, by its ProviderID")
			if other, _ := r.Cloud.Server(r.ids["worker-0"]); other.Status != "ACTIVE" {
				t.Error("the other server is", other.Status)
			}
		})
	}
}

// A server of another region is found and deleted there, and its cluster's Nodes may be servers of this one.
func TestDeletesInEachRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		secret := r.Objects[0].DeepCopyObject().(*corev1.Secret)
		secret.Name, secret.Data["region"] = "abroad", []byte(iaasmock.SecondRegion)
		class := testrig.Class("abroad", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
		class.SecretRef.Name = "abroad"
		r.Add(secret, class)
		abroad := func(name string, labels map[string]string) string {
			return r.ServerAt(iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID, name, labels)
		}
		r.ids["abroad"] = abroad("abroad", testrig.Labels("abroad", "worker", testrig.OwnCluster))
		abroad("another", nil)
		<-time.After(2 * time.Hour)
		deletion, servers, err := r.judge("abroad")
		if err != nil {
			t.Fatal(err)
		}
		r.delete(t.Context(), deletion, servers...)
		expect(t, servers[0], gone, "")
	})
}

func TestInterrupted(t *testing.T) {
	for after, says := range map[time.Duration]string{
		0: "interrupted, no DELETE was sent", 2 * time.Second: "interrupted, a DELETE may have been accepted",
	} {
		in(t, says, func(t *testing.T, r *rig) {
			deletion, servers, err := r.judge(lost)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			r.delete(ctx, deletion, servers...)
			expect(t, servers[0], unknown, says)
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestQueries(t *testing.T) {
	for name, row := range map[string]struct {
		query list.Query
		// has and not are Machines and servers that are shown, and that are not.
		has, not []string
		// named is how many servers the first Machine has or names.
		named int
	}{
		"a namespace": {list.Query{}, []string{"machine healthy", "server orphaned"}, []string{"machine far",
			"server bastion"}, 1},
		"all namespaces": {list.Query{AllNamespaces: true}, []string{"machine far", "machine healthy"}, nil, 1},
		"one Machine": {list.Query{Machine: "healthy"}, []string{"machine healthy", "server healthy", "server twin"},
			[]string{"server orphaned", "machine lost"}, 2},
		"one whose server is another's": {list.Query{Machine: "stolen"}, []string{"server stolen"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			found := read(t, stock(t), row.query)
			words := notes(found)
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
			if len(found.Machines[0].Servers) != row.named {
				t.Errorf("got %+v, want the %d servers that it names", found.Machines[0].Servers, row.named)
			}
		})
	}
}

// A server is described whoever it belongs to, with what no list has of it.
func TestOneServer(t *testing.T) {
	logged := slices.Repeat([]string{"the end"}, 50)
	fails := func(operation string) func(*testrig.Rig) {
		return func(r *testrig.Rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusForbidden})
		}
	}
	nothing := func(*testrig.Rig) {}
	for name, row := range map[string]struct {
		labels  map[string]string
		change  func(*testrig.Rig)
		notes   string
		log     []string
		unknown string
	}{
		"a Machine's": {own("worker-1"), func(r *testrig.Rig) {
			r.Add(inPhase(testrig.Machine("worker-1", "worker", ""), v1alpha1.MachineRunning))
		}, "", logged, ""},
		"an orphan":            {own("worker-1"), nothing, "orphan", logged, ""},
		"of another cluster":   {testrig.Labels("worker-1", "worker", "x"), nothing, "not managed here", logged, ""},
		"nobody's":             {nil, nothing, "not managed here", logged, ""},
		"its NICs are refused": {own("worker-1"), fails("ListServerNICs"), "orphan", logged, "addresses of server"},
		"its log is refused": {own("worker-1"), fails("GetServerLog"), "orphan", []string{list.Unknown},
			"console log of server"},
		"a list lacks it": {own("worker-1"), func(r *testrig.Rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: 1})
		}, "orphan", logged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			r.Server("first", own("first"))
			id := r.Server("worker-1", row.labels)
			if err := r.Cloud.SetConsoleLog(id, strings.Repeat("before\n", 100)+strings.Join(logged, "\n")+"\n"); err != nil {
				t.Fatal(err)
			}
			row.change(r)
			for _, asked := range []string{id, strings.ToUpper(id), "worker-1"} {
				if name == "a list lacks it" && asked == "worker-1" {
					continue // it is found by its ID alone
				}
				found := read(t, r, list.Query{Server: asked})
				if len(found.Servers) != 1 || len(found.Machines) > 0 || found.Servers[0].Name != id {
					t.Fatalf("%s: got %+v, want one server", asked, found)
				}
				server := found.Servers[0]
				if notes(found)["server worker-1"] != row.notes || len(server.Addresses) == 0 {
					t.Errorf("got %+v", server)
				}
				if diff := cmp.Diff(row.log, server.ConsoleLog); diff != "" {
					t.Errorf("console log (-want +got):\n%s", diff)
				}
				text := strings.Join(found.Unknown, " ")
				if !strings.HasPrefix(text, row.unknown) || (text == "") != (row.unknown == "") {
					t.Errorf("unknown %q", text)
				}
			}
		})
	}
}

// What is down hides nothing else, and nothing is called an orphan that may have a Machine.
func TestOutages(t *testing.T) {
	ofAPI := "servers of project " + iaasmock.DefaultProjectID + " in eu01 unknown: "
	inject := func(fault iaasmock.Fault) func(*testrig.Rig) {
		return func(r *testrig.Rig) { r.Cloud.Inject(fault) }
	}
	// lists makes lists of these kinds fail, of all kinds without any.
	lists := func(err error, everywhere bool, kinds ...string) func(*testrig.Rig) {
		return func(r *testrig.Rig) {
			if everywhere {
				r.Access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01"}
			}
			r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
				kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1alpha1.")
				isAll := (&client.ListOptions{}).ApplyOptions(o).Namespace == ""
				if (kinds == nil || slices.Contains(kinds, kind)) && (everywhere || isAll) {
					return err
				}
				return c.List(ctx, into, o...)
			}
		}
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	refused := &url.Error{Op: "Get", URL: "https://x", Err: dial}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("not you"))
	noCRD := apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, "")
	for name, row := range map[string]struct {
		cause func(r *testrig.Rig)
		// unknown is all of the Result's Unknown, each by how it begins; facts is how Facts begin.
		unknown []string
		facts   string
		// state and ready are of the Machine worker-1, "gone" where it is not shown.
		state, ready string
		servers      int
		// orphan is the note of the server without a Machine.
		orphan string
	}{
		"nothing": {func(*testrig.Rig) {}, nil, "2 servers read", "ACTIVE", "yes", 2, "orphan"},
		"the API hangs": {inject(iaasmock.Fault{Delay: time.Minute}), []string{ofAPI}, "", "unknown", "yes",
			0, ""},
		"the API answers 503": {inject(iaasmock.Fault{Status: http.StatusServiceUnavailable}), []string{ofAPI}, "",
			"unknown", "yes",
			0, ""},
		"the API refuses the token": {inject(iaasmock.Fault{Status: http.StatusUnauthorized}),
			[]string{ofAPI + "CredentialsRefused"}, "", "unknown", "yes", 0, ""},
		"the cluster refuses": {lists(refused, true),
			[]string{"MachineClasses, Machines unknown: the cluster with the Machines: dial: "}, "2 servers read",
			"gone", "", 2, "unknown"},
		"Machines are forbidden": {lists(forbidden, true, "MachineList"), []string{"Machines unknown: "},
			"cannot identify",
			"gone", "", 2, "unknown"},
		"the CRD is missing": {lists(noCRD, true, "MachineList"), []string{"Machines unknown: "}, "2 servers", "gone", "",
			2, "unknown"},
		"rights in one namespace": {lists(forbidden, false, "MachineList"), nil, "cannot identify", "ACTIVE", "yes", 2,
			"unknown"},
		"no cluster is reached": {func(r *testrig.Rig) {
			r.Clusterless, r.Access.ControlError = true, errors.New("no such context")
		}, []string{"Machines, servers unknown: no such context"}, "", "gone", "", 0, ""},
		"the Secret is missing": {func(r *testrig.Rig) { r.Objects = r.Objects[1:] },
			[]string{"servers unknown: MachineClass worker: Secret shoot--demo/credentials does"}, "", "unknown", "yes", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			r.Add(withReady(testrig.Machine("worker-1", "worker", r.Server("worker-1", own("worker-1"))),
				corev1.ConditionTrue))
			r.Server("orphaned", own("orphaned"))
			r.Access.ReadTimeout = 5 * time.Second
			row.cause(r)
			found := read(t, r, list.Query{})
			if !slices.EqualFunc(found.Unknown, row.unknown, strings.HasPrefix) {
				t.Errorf("unknown %q\nwant    %q", found.Unknown, row.unknown)
			}
			if facts := strings.Join(found.Facts, "; "); !strings.HasPrefix(facts, row.facts) {
				t.Errorf("facts %q, want %q", facts, row.facts)
			}
			state, ready := "gone", ""
			for _, machine := range found.Machines {
				state, ready = machine.State, string(machine.Ready)
			}
			if state != row.state || ready != row.ready || len(found.Servers) != row.servers ||
				notes(found)["server orphaned"] != row.orphan {
				t.Errorf("state %q, ready %q, %d servers, %v", state, ready, len(found.Servers), notes(found))
			}
		})
	}
}

// With two keys for one project and region, each server is shown once, and a key that may not read is told.
func TestTwoKeysOfOnePlace(t *testing.T) {
	r := testrig.New(t)
	r.Server("worker-1", own("worker-1"))
	r.Access.Sessions.Config.NoAuth = false
	second := r.Objects[0].DeepCopyObject().(*corev1.Secret)
	class := testrig.Class("second", nil)
	second.Name, class.SecretRef.Name = "second", "second"
	for _, secret := range []*corev1.Secret{r.Objects[0].(*corev1.Secret), second} {
		key, err := r.Cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		if err != nil {
			t.Fatal(err)
		}
		secret.Data["serviceAccountKey"] = key
	}
	r.Access.Sessions.Config.TokenURL = r.Access.Sessions.Config.Endpoint + "/oauth/v2/token"
	r.Add(second, class)
	r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden, Count: 1})
	found := read(t, r, list.Query{})
	if len(found.Servers) != 1 || len(found.Unknown) != 1 {
		t.Errorf("got %d servers, unknown %v", len(found.Servers), found.Unknown)
	}
}

// A Machine that is made while the servers are read is there before its server.
func TestMachinesAreReadAfterTheServers(t *testing.T) {
	r := testrig.New(t)
	id := r.Server("new", own("new"))
	r.Funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
		if _, ok := into.(*v1alpha1.MachineList); ok && r.Cloud.CallCounts()["ListServers"] > 0 {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, testrig.Machine("new", "worker", id))); err != nil {
				return err
			}
		}
		return c.List(ctx, into, o...)
	}
	if words := notes(read(t, r, list.Query{})); words["server new"] != "" {
		t.Errorf("got %v", words)
	}
}

// With credentials that the user names, a Machine's server may be in another project.
func TestAnAccountThatIsNotTheClasses(t *testing.T) {
	r := testrig.New(t)
	r.Server("other", own("other"))
	elsewhere := testrig.Machine("worker-1", "worker", "")
	elsewhere.Spec.ProviderID = "stackit://" + testrig.OtherProject + "/" + goneID
	r.Add(elsewhere, testrig.Machine("worker-2", "worker", goneID))
	r.Access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01"}
	found := read(t, r, list.Query{})
	if words := notes(found); words["machine worker-1"] != "unknown" || words["machine worker-2"] != "no server" {
		t.Errorf("got %v", words)
	}
	want := []string{"server of Machine shoot--demo/worker-1 unknown: its server was not read"}
	if diff := cmp.Diff(want, found.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

// Of two Machines with one name, the server is that of the namespace.
func TestMachinesOfOneName(t *testing.T) {
	r := testrig.New(t)
	r.Server("worker-1", own("worker-1"))
	mine := inPhase(testrig.Machine("worker-1", "worker", ""), v1alpha1.MachineRunning)
	theirs := mine.DeepCopy()
	theirs.Namespace = "another" // and so the first of all
	r.Add(mine, theirs)
	found := read(t, r, list.Query{})
	if words := notes(found); words["machine worker-1"] != "" || found.Servers[0].MachineNamespace != testrig.Namespace {
		t.Errorf("got %v, the server of a Machine of %s", words, found.Servers[0].MachineNamespace)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What a call does, step by step: for a Machine with a networkId in a class with a cluster label, an API that answers
// at once, and a sidecar that has led for an hour, unless the row says otherwise. Times are whole seconds since the
// call began, with the number of calls if there are many; "name" is a list of the servers with the Machine's labels,
// "cluster" one of the cluster's, "project" one without a selector.
func TestWhatACallDoesStepByStep(t *testing.T) {
	const boots = 30 * time.Second
	type made = *v1alpha1.Machine
	m1 := func(*rig) made { return machine("m1") }
	running := func(r *rig) made {
		m := machine("m1")
		m = withID(m, r.mustCreate(m).ProviderID)
		<-time.After(time.Minute)
		return m
	}
	unknown := func(r *rig) made { // to this process
		m := withID(machine("m1"), r.makeRunning("m1"))
		<-time.After(time.Minute)
		r.restart()
		return m
	}
	deletedByHand := func(r *rig) made {
		m := unknown(r)
		r.removeServer(serverOf(m))
		return m
	}
	stranger := func(r *rig) made {
		r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		<-time.After(time.Minute)
		return machine("m1")
	}
	older := func(prepare func(*rig) made) func(*rig) made { // than this leadership
		return func(r *rig) made {
			m := prepare(r)
			r.restartNow()
			<-time.After(time.Minute)
			return m
		}
	}
	ofOpenStack := func(servers int) func(*rig) made {
		return func(r *rig) made {
			for range servers {
				r.fromOpenStack("m1")
			}
			<-time.After(time.Minute)
			return migrated(machine("m1"))
		}
	}
	create := func(r *rig, m made) error { return r.createErr(m) }
	remove := func(r *rig, m made) error { return r.remove(m) }
	status := func(r *rig, m made) error { return r.statusErr(m) }
	lost := iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true}
	none := iaasmock.Fault{Operation: "CreateServer", Count: 1, DropBefore: true}
	hidden := iaasmock.Fault{Operation: "ListServers", EmptyList: true, Duration: 8 * time.Second}
	broken := iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError,
		ErrorMessage: "No valid host was found."}
	after := func(post iaasmock.Fault) func(*rig) made { // 5 s after a POST whose answer was lost
		return func(r *rig) made {
			r.cloud.Inject(post)
			m := machine("m1")
			_ = r.createErr(m)
			<-time.After(5 * time.Second)
			return m
		}
	}
	ended := func(r *rig, ago time.Duration) made { // a server in ERROR
		r.cloud.Inject(broken)
		m := machine("m1")
		_ = r.createErr(m)
		<-time.After(ago)
		return m
	}
	for name, row := range map[string]struct {
		prepare func(r *rig) made
		faults  []iaasmock.Fault
		call    func(r *rig, m made) error
		does    string
		answers provider.Reason // "" is OK
	}{
		"a server is created, its NIC lacks an allowedAddress": {func(r *rig) made {
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			return machine("m1")
		}, nil, create,
			"name 0, POST 0, GET 8 12 16 20 24 28 32, NICs 33, PATCH NIC 33; answers at 33", ""},
		"the POST's answer is lost": {m1, []iaasmock.Fault{lost}, create,
			"name 0, POST 0; answers at 0", provider.ReasonAPIFailed},
		"after a POST that made a server": {after(lost), []iaasmock.Fault{hidden}, create,
			"name 0 4 8, GET 8 12 16 20 24 28, NICs 28; answers at 28", ""},
		"after a POST that made none": {after(none), nil, create,
			"name 0 4 8 12 16 20 24 25, POST 25, GET 33 37 41 45 49 53 57, NICs 58; answers at 58", ""},
		"a predecessor may have sent a POST": {func(r *rig) made { m := machine("m1"); r.restartNow(); return m },
			nil, create,
			"name 0 4 8 12 16 20 24 28, project 30, POST 30, GET 38 42 46 50 54 58 62, NICs 63; answers at 63",
			""},
		"a server ends in ERROR for lack of a host": {m1, []iaasmock.Fault{broken}, create,
			"name 0, POST 0, GET 8 12 16 20 24 28 32, DELETE 32, GET 33; answers at 33", provider.ReasonNoCapacity},
		"after ERROR, at once": {func(r *rig) made { return ended(r, 5*time.Second) }, nil, create,
			"; answers at 0", provider.ReasonNoCapacity},
		"after ERROR, two minutes later": {func(r *rig) made { return ended(r, 2*time.Minute) }, nil, create,
			"name 0, POST 0, GET 9 13 17 21 25 29 34, NICs 34; answers at 34", ""},
		"STACKIT's own driver made the server": {unknown, nil, status,
			"GET 0, NICs 0; answers at 0", ""},
		"STACKIT's own driver made the server, which is to go": {unknown, nil, remove,
			"name 0, DELETE 0, GET 3 6 9; answers at 9", ""},
		"a server was deleted by hand": {deletedByHand, nil, status,
			"GET 0; answers at 0", provider.ReasonNoServer},
		"a server that was deleted by hand is to go": {deletedByHand, nil, remove,
			"name 0, GET 0 15; answers at 15", ""},
		"a server is deleted": {running, nil, remove,
			"name 0, DELETE 0, GET 5 8 11; answers at 11", ""},
		"a server is deleted while CREATING": {func(r *rig) made {
			m := machine("m1")
			_ = r.createFor(m, 9500*time.Millisecond)
			return withID(m, providerIDOf(r.onlyServer().ID))
		}, nil, remove,
			"name 0, DELETE 0, GET 5 8 11; answers at 11", ""},
		"a server is deleted by hand while it boots": {func(r *rig) made {
			m := machine("m1")
			time.AfterFunc(18*time.Second, func() { r.removeServer(r.serverNamed("m1")) })
			return m
		}, nil, create, "name 0, POST 0, GET 8 12 16 20 35; answers at 35", provider.ReasonInterrupted},
		"a DELETE does nothing": {running, []iaasmock.Fault{once(noEffect)}, remove,
			"name 0, DELETE 0, GET 5 8 11 14 17, DELETE 17, GET 20 23 26; answers at 26", ""},
		"DELETEs are refused for a moment": {running,
			[]iaasmock.Fault{deletes(fault{Status: 403, Duration: 8 * time.Second})}, remove,
			"name 0, DELETE 0, GET 4 8 12 16, DELETE 16, GET 21 24 27; answers at 27", ""},
		"a server stays in DELETING": {running, []iaasmock.Fault{once(deletes(fault{NeverGone: true}))}, remove,
			"name 0, DELETE 0, GET 5 8 11 … 128 (20), DELETE 128, GET 132 135 138; answers at 138", ""},
		"a stranger has the name of a new Machine": {stranger, nil, create,
			"name 0, POST 0, GET 8 12 16 20 24 28 32, NICs 33; answers at 33", ""},
		"a stranger has the name of an older Machine": {older(stranger), nil, create,
			"project 0; answers at 0", provider.ReasonNotOurs},
		"from OpenStack, without an ID": {ofOpenStack(1), nil, create,
			"project 0, GET 0, NICs 0; answers at 0", ""},
		"from OpenStack, without an ID, two of the name": {ofOpenStack(2), nil, create,
			"project 0; answers at 0", provider.ReasonNotTakenOver},
		"an orphan": {func(r *rig) made { return orphan("m1", serverOf(unknown(r))) }, nil,
			func(r *rig, m made) error { return r.delete(m) }, "GET 0, DELETE 0; answers at 0", ""},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(boots), iaasmock.WithDeleteDuration(8*time.Second))
			m := row.prepare(r)
			r.makeServer("other", nil)
			for _, fault := range row.faults {
				r.cloud.Inject(fault)
			}
			r.cloud.ResetCalls()
			began := time.Now()
			err := row.call(r, m)
			did := fmt.Sprintf("%s; answers at %s", r.trace(), seconds(time.Since(began)))
			if did != row.does || reasonOf(err) != row.answers {
				t.Errorf("%s\n%s: %v; want\n%s: %s", name, did, err, row.does, row.answers)
			}
		})
	}
}

// serverNamed returns the ID of the only server of a name.
func (r *rig) serverNamed(name string) (id string) {
	for _, server := range r.cloud.Servers() {
		if server.Name == name {
			id = server.ID
		}
	}
	return id
}

// seconds is a time as the rows have it: reads wait 125 ms for their turn.
func seconds(d time.Duration) string { return fmt.Sprint(int(d.Seconds() + 0.3)) }

// trace is what calls there were since the first one, each with its time in seconds.
func (r *rig) trace() string {
	type run struct {
		step string
		at   []string
	}
	var runs []run
	var began time.Time
	for _, call := range r.cloud.Calls() {
		if call.Operation == "Token" {
			continue
		}
		if began.IsZero() {
			began = call.StartedAt
		}
		if step := stepOf(&call); len(runs) == 0 || runs[len(runs)-1].step != step {
			runs = append(runs, run{step: step})
		}
		last := &runs[len(runs)-1]
		last.at = append(last.at, seconds(call.StartedAt.Sub(began)))
	}
	var steps []string
	for _, run := range runs {
		at := strings.Join(run.at, " ")
		if n := len(run.at); n > 8 {
			at = fmt.Sprintf("%s … %s (%d)", strings.Join(run.at[:3], " "), run.at[n-1], n)
		}
		steps = append(steps, run.step+" "+at)
	}
	return strings.Join(steps, ", ")
}

// stepOf names a call.
func stepOf(call *iaasmock.Call) string {
	selector := call.Query.Get("label_selector")
	switch {
	case call.Operation == "ListServers" && strings.Contains(selector, provider.StackitMachineLabel+"="):
		return "name"
	case call.Operation == "ListServers" && selector != "":
		return "cluster"
	case call.Operation == "ListServers":
		return "project"
	case strings.Contains(call.Operation, "Nic"), strings.Contains(call.Operation, "NIC"):
		if call.Method == http.MethodGet {
			return "NICs"
		}
		return call.Method + " NIC"
	default:
		return call.Method
	}
}

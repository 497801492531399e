// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Whose a server is: what an answer, a label, an ID and a Secret do not say.

// A server that a predecessor made has the Machine's name, and its labels show late.
func TestLabelsThatShowLateAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		id := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		r.restartNow()
		done := r.startCreate(m)
		<-time.After(20 * time.Second)
		r.relabel(id, map[string]any{provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a",
			clusterLabel: "shoot-a"})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.wantOnly(id)
	})
}

// The foreign ID asks for a human, which takes the manager 10 minutes; the machine's own server, whose DELETE met a
// 503, goes with the same call.
func TestAForeignIDDoesNotPutOffTheOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign, own := r.makeServer("m2", nil), r.makeServer("m1", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: own, Duration: 20 * time.Second,
			Status: http.StatusServiceUnavailable})
		m := withID(r.deleted(machine("m1")), providerIDOf(foreign))
		wantCode(t, r.delete(m), codes.FailedPrecondition)
		r.wantOnly(foreign)
	})
}

// A server of the Machine's name that lacks the machine label may be its own, from before there were labels, or one
// that somebody edited: nothing is made beside it.
func TestAServerFromBeforeLabelsIsNoNone(t *testing.T) {
	const machineLabel, classLabel = provider.StackitMachineLabel, provider.StackitMachineClassLabel
	const refused, made = codes.FailedPrecondition, codes.OK
	type labels = map[string]any
	for name, row := range map[string]struct {
		labels labels
		want   codes.Code
	}{
		"no label at all":           {nil, refused},
		"only its class label":      {labels{classLabel: "class-a"}, refused},
		"no machine label":          {labels{clusterLabel: "shoot-a", classLabel: "class-a"}, refused},
		"another machine's":         {labels{machineLabel: "m2", classLabel: "class-a"}, made},
		"another cluster's, by key": {labels{"example.org/cluster": "c", classLabel: "class-a"}, made},
		"another cluster's machine, by key": {
			labels{"example.org/cluster": "c", classLabel: "class-a", machineLabel: "m1"}, made},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			r.makeServer("m1", func(labels map[string]any) { clear(labels); maps.Copy(labels, row.labels) })
			r.restartNow()
			_, err := r.createAsManager(m)
			wantCode(t, err, row.want)
			servers := 2
			if row.want != codes.OK {
				servers = 1
				wantReason(t, err, provider.ReasonNotOurs)
				wantReason(t, insist(func() error { return r.remove(m) }), provider.ReasonNotOurs)
			}
			if got := len(r.cloud.Servers()); got != servers {
				t.Errorf("%d servers, want %d", got, servers)
			}
		})
	}
}

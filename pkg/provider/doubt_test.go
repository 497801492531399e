// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the driver does not take for granted.

// A server without labels hangs in DELETING, GETs answer 404 by chance now and then, and lists of the
// project fail: those by the machine label say nothing about it.
func TestAListThatCannotShowTheServerProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector,
			Status: http.StatusRequestEntityTooLarge})
		for _, after := range []time.Duration{4 * time.Minute, 13 * time.Minute} {
			fault := randomNotFound
			fault.After = after
			r.cloud.Inject(fault)
		}
		<-time.After(time.Minute)
		for range 3 {
			err := r.delete(r.deleted(withID(migrated(machine("m1")), providerIDOf(id))))
			wantReason(t, err, provider.ReasonTimedOut)
			<-time.After(5 * time.Second)
		}
	})
}

// An orphan whose GET fails was not deleted.
func TestAnOrphanThatCannotBeReadIsNoSuccess(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"503":                     {Status: http.StatusServiceUnavailable},
		"403":                     {Status: http.StatusForbidden},
		"a 404 about the project": {Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			id := r.makeServer("m1", nil)
			fault.Operation = "GetServer"
			r.cloud.Inject(fault)
			if err := r.delete(orphan("m1", id)); err == nil {
				t.Error("the manager is told that the orphan is deleted")
			}
			r.wantCalls("ListServers", 0)
		})
	}
}

// Two Machines whose servers show no labels are asked for again and again: the class's hour is that of the later one.
func TestAClassWaitsAnHourForTheLabelsOfTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", DropLabels: true})
		var asked []*v1alpha1.Machine
		for _, name := range []string{"m1", "m2"} {
			m := machine(name)
			wantReason(t, r.createErr(m), provider.ReasonLabelsMissing)
			asked = append(asked, m)
			for range 21 {
				<-time.After(3 * time.Minute)
				for _, m := range asked {
					wantReason(t, r.remove(m), provider.ReasonLabelsMissing)
				}
			}
		}
		remove()
		r.mustCreate(machine("m3"))
	})
}

// A server that hangs in DELETING slid out of lists that are cut off; GETs fail for half a minute.
func TestListsThatAreCutOffWhileGETsFailProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		stay := machines(6)
		together(stay, func(m *v1alpha1.Machine) error { return r.createErr(m) })
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: 100 * time.Second, Status: 200,
			Match: func(request *http.Request) bool {
				return !strings.Contains(request.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
			}, Body: `{"items":[{"id":"` + someServerID + `","name":"x","status":"ACTIVE","machineType":"c2i.2",` +
				`"labels":{"kubernetes.io/cluster":"shoot-a"}}]}`})
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", After: 130 * time.Second, Duration: 40 * time.Second, Status: 503})
		if err := r.remove(m); err == nil {
			t.Error("the manager is told that the server is gone")
		}
	})
}

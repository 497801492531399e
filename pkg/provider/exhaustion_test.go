// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Every event of a class makes the manager call for all of its machines: the class is not asked for again for a
// minute, unless it is corrected. ResourceExhausted is the only code that lets the autoscaler try another pool.
func TestAnExhaustedClassIsNotEvenLookedUp(t *testing.T) {
	const machineType = "c2i.2"
	refused := iaasmock.Fault{Status: http.StatusForbidden, Body: quotaExceeded}
	noHost := iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found."}
	for name, row := range map[string]struct {
		machineType string
		fault       iaasmock.Fault
		// prepare lets the first machine be older than others, if it is not nil.
		prepare func(r *rig, m *v1alpha1.Machine)
	}{
		"the POST is refused":                {machineType, refused, nil},
		"the server finds no host":           {machineType, noHost, nil},
		"there is no such machine type":      {"c9i.999", iaasmock.Fault{}, nil},
		"a machine is older than leadership": {machineType, refused, func(r *rig, _ *v1alpha1.Machine) { r.restartNow() }},
		"a machine is older than an hour": {machineType, refused, func(r *rig, m *v1alpha1.Machine) {
			began := time.Now().Add(-24 * time.Hour)
			r.restart(provider.WithActingSince(func() time.Time { return began }), provider.WithTargetCluster(false))
			m.CreationTimestamp.Time = m.CreationTimestamp.Add(-61 * time.Minute)
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["machineType"] = row.machineType })
			asked := []*v1alpha1.Machine{machine("m1"), machine("m2"), machine("m3")}
			if row.prepare != nil {
				row.prepare(r, asked[0])
			}
			if row.machineType == machineType {
				row.fault.Operation, row.fault.Count = "CreateServer", 1
				r.cloud.Inject(row.fault)
			}
			wantCode(t, r.createErr(asked[0]), codes.ResourceExhausted)
			if row.fault.FinalStatus != "" {
				asked = asked[1:] // its own server may be there still
			}
			r.cloud.ResetCalls()
			for _, m := range asked {
				wantCode(t, r.createErr(m), codes.ResourceExhausted)
			}
			r.wantNoCalls()
			spec := r.class.ProviderSpec
			r.setSpec(func(spec map[string]any) { spec["machineType"] = "t1.1" })
			r.mustCreate(machine("m4"))
			r.class.ProviderSpec = spec
			<-time.After(time.Minute)
			_ = r.createErr(machine("m5"))
			r.wantCalls("CreateServer", 2)
		})
	}
}

// A POST of the machine is open: its server must be found, whatever the class.
func TestAnExhaustedClassHidesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Server: "m1", Count: 1, DropAfter: true})
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true})
		done := r.startCreate(machine("m1"))
		<-time.After(time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Server: "m2", Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
		wantCode(t, r.createErr(machine("m2")), codes.ResourceExhausted)
		remove()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.mustCreate(machine("m1"))
		r.onlyServer()
	})
}

// After a failover many machines wait until it is certain: the first that is told is told for all.
func TestAnExhaustedClassIsAskedAboutBeforeEachPOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		old := machine("m1")
		r.restartNow()
		done := r.startCreate(old)
		<-time.After(20 * time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusForbidden, Body: quotaExceeded})
		wantCode(t, r.createErr(machine("m2")), codes.ResourceExhausted)
		wantCode(t, <-done, codes.ResourceExhausted)
		r.wantCalls("CreateServer", 1)
	})
}

// A gateway or a broken API may say so of a POST that made a server.
func TestNoHostWithAStatusOf500MayHaveMadeAServer(t *testing.T) {
	for name, isDeleted := range map[string]bool{"the machine is created again": false, "the machine is deleted": true} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Executed: true, Status: http.StatusInternalServerError,
				Body: `{"code":500,"msg":"No valid host was found."}`})
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 10 * time.Second, EmptyList: true})
			wantCode(t, r.createErr(m), codes.ResourceExhausted)
			if isDeleted {
				r.mustRemove(m)
				r.wantNothingLeft()
				return
			}
			r.mustCreate(m)
			r.onlyServer()
		})
	}
}

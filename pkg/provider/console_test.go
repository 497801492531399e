// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	metricNeverJoined = "stackit_never_joined_total"
	creationTimeout   = 20 * time.Minute
)

// neverJoined makes a Machine with a server that never joined, and lets its creation timeout pass.
func (r *rig) neverJoined(name, log string) *v1alpha1.Machine {
	r.t.Helper()
	m := machine(name)
	m.Spec.ProviderID = r.mustCreate(m).ProviderID
	if err := r.cloud.SetConsoleLog(serverOf(m), log, 0); err != nil {
		r.t.Fatal(err)
	}
	<-time.After(creationTimeout)
	return r.replaced(m)
}

// replaced is the Machine once the manager deleted it now: it has no conditions.
func (r *rig) replaced(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = r.deleted(m)
	m.Status.Conditions = nil
	return m
}

func serverOf(m *v1alpha1.Machine) string {
	return m.Spec.ProviderID[strings.LastIndex(m.Spec.ProviderID, "/")+1:]
}

// causes are those that were counted.
func (r *rig) causes() map[string]float64 {
	r.t.Helper()
	counted := r.series(metricNeverJoined)
	maps.DeleteFunc(counted, func(_ string, count float64) bool { return count == 0 })
	return counted
}

func (r *rig) wantCauses(want map[string]float64) {
	r.t.Helper()
	if got := r.causes(); !maps.Equal(got, want) {
		r.t.Errorf("counted %v, want %v", got, want)
	}
}

const panicked = "[    1.7] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n" +
	"password: geheim-4711\n"

func TestAServerThatNeverJoinedIsExplained(t *testing.T) {
	content, err := os.ReadFile("testdata/console/dns.log")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		unjoined := m.neverJoined("m1", string(content))
		log := logOf(t, func() { m.mustDelete(unjoined) })
		wantSaid(t, log, `machine="default/m1"`, `machineClass="class-a"`, `cause="dns"`,
			serverOf(unjoined), "lookup registry.example.com on 10.0.0.53:53: no such host")
		for _, secret := range []string{"geheim", "07401b"} {
			if strings.Contains(log, secret) {
				t.Errorf("%s is logged:\n%s", secret, log)
			}
		}
		m.wantCalls("GetServerLog", 1)
		m.wantCauses(map[string]float64{"dns": 1})
		if all := m.series(metricNeverJoined); len(all) != 14 {
			t.Errorf("%d causes begin with 0, want all 14: %v", len(all), all)
		}
	})
}

// TestOtherDeletionsMakeNoCallMore compares the calls of a deletion with those without the
// explanation: there is one read of a console log more, or none.
func TestOtherDeletionsMakeNoCallMore(t *testing.T) {
	for name, row := range map[string]struct {
		change func(r *rig, m *v1alpha1.Machine)
		counts map[string]float64
	}{
		"it had a Node": {func(_ *rig, m *v1alpha1.Machine) {
			m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, nil},
		"it was scaled down while it booted": {func(_ *rig, m *v1alpha1.Machine) {
			m.CreationTimestamp = metav1.NewTime(m.DeletionTimestamp.Add(time.Second - creationTimeout))
		}, nil},
		"it waits for longer": {func(_ *rig, m *v1alpha1.Machine) {
			m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
				MachineCreationTimeout: &metav1.Duration{Duration: time.Hour}}
		}, nil},
		"it is not known to have a server": {func(_ *rig, m *v1alpha1.Machine) { m.Spec.ProviderID = "" }, nil},
		"it is not deleted, its server is": {func(_ *rig, m *v1alpha1.Machine) { m.DeletionTimestamp = nil }, nil},
		"it is an orphan": {func(_ *rig, m *v1alpha1.Machine) {
			m.DeletionTimestamp, m.CreationTimestamp = nil, metav1.Time{}
		}, nil},
		"it joins no cluster":            {nil, nil},
		"a predecessor has explained it": {func(r *rig, m *v1alpha1.Machine) { r.deleteByHand(serverOf(m)) }, nil},
		"its server does not run": {func(r *rig, m *v1alpha1.Machine) { r.setStatus(serverOf(m), "INACTIVE", "") },
			map[string]float64{"not-running": 1}},
	} {
		bubble(t, name, func(t *testing.T) {
			m := newRig(t)
			if row.change == nil {
				m.restart(provider.WithTargetCluster(false))
			}
			unjoined := m.neverJoined("m1", panicked)
			if row.change != nil {
				row.change(m, unjoined)
			}
			m.mustDelete(unjoined)
			m.wantCalls("GetServerLog", 0)
			m.wantCauses(row.counts)
		})
	}
}

// TestTheConsoleLogHoldsUpNoDeletion: whatever becomes of the read, the DELETE follows, and the
// server is counted.
func TestTheConsoleLogHoldsUpNoDeletion(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		log   string
	}{
		"it may not be read":       {iaasmock.Fault{Status: http.StatusForbidden}, "status 403"},
		"the API does not have it": {iaasmock.Fault{Status: http.StatusNotFound}, "status 404"},
		"it does not come":         {iaasmock.Fault{NeverAnswers: true}, "deadline exceeded"},
		"it fails for ever":        {iaasmock.Fault{Status: http.StatusServiceUnavailable}, "err="},
	} {
		bubble(t, name, func(t *testing.T) {
			m := newRig(t)
			unjoined := m.neverJoined("m1", panicked)
			row.fault.Operation = "GetServerLog"
			m.cloud.Inject(row.fault)
			began := time.Now()
			var asked time.Duration
			log := logOf(t, func() {
				deleted := start(func() error { return m.delete(unjoined) })
				for m.cloud.CallCounts()["DeleteServer"] == 0 {
					<-time.After(100 * time.Millisecond)
				}
				asked = time.Since(began)
				if err := <-deleted; err != nil {
					t.Error(err)
				}
			})
			if asked > 6*time.Second {
				t.Errorf("the DELETE was sent after %s", asked)
			}
			if !strings.Contains(log, `cause="not-read"`) || !strings.Contains(log, row.log) {
				t.Errorf("%q is not in\n%s", row.log, log)
			}
			m.wantCauses(map[string]float64{"not-read": 1})
		})
	}
}

// TestAServerIsExplainedOnce: its DELETE is refused at first, and asked for again after it was
// accepted.
func TestAServerIsExplainedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		unjoined := m.neverJoined("m1", panicked)
		lift := m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusForbidden})
		if err := m.delete(unjoined); err == nil {
			t.Error("a deletion without permission succeeded")
		}
		lift()
		m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true, Count: 1})
		m.mustDelete(unjoined)
		m.wantCauses(map[string]float64{"kernel-panic": 1})
		m.wantCalls("GetServerLog", 1)
	})
}

// TestOneConsoleLogIsReadAtATime deletes many servers that never joined.
func TestOneConsoleLogIsReadAtATime(t *testing.T) {
	for name, row := range map[string]struct {
		apart time.Duration
		reads int
	}{
		"at once": {0, 1}, "one by one": {2 * time.Second, 12},
	} {
		bubble(t, name, func(t *testing.T) {
			const machines = 12
			m := newRig(t)
			var unjoined []*v1alpha1.Machine
			for i := range machines {
				made := machine(fmt.Sprintf("m%d", i))
				made.Spec.ProviderID = m.mustCreate(made).ProviderID
				unjoined = append(unjoined, made)
			}
			<-time.After(creationTimeout)
			m.cloud.Inject(iaasmock.Fault{Operation: "GetServerLog", Delay: time.Second})
			var all sync.WaitGroup
			for i, made := range unjoined {
				made = m.replaced(made)
				all.Go(func() {
					<-time.After(time.Duration(i) * row.apart)
					m.mustDelete(made)
				})
			}
			all.Wait()
			m.wantCalls("GetServerLog", row.reads)
			want := map[string]float64{"unknown": float64(row.reads), "not-read": float64(machines - row.reads)}
			maps.DeleteFunc(want, func(_ string, count float64) bool { return count == 0 })
			m.wantCauses(want)
		})
	}
}

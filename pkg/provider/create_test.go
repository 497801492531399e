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
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineMakesARunningServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.class.Provider = provider.StackitProviderName
		r.setSpec(func(spec map[string]any) {
			spec["labels"] = map[string]any{clusterLabel: "shoot-a", "team": "a", provider.StackitMachineLabel: "m2"}
		})
		response := r.mustCreate(machine("m1"))

		server := r.onlyServer()
		if server.Status != iaasmock.StatusActive || server.Name != "m1" {
			t.Errorf("server is %s %s, want m1 ACTIVE", server.Name, server.Status)
		}
		wantLabels := map[string]string{
			provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a", clusterLabel: "shoot-a",
			"team": "a",
		}
		if diff := cmp.Diff(wantLabels, server.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if want := providerIDOf(server.ID); response.ProviderID != want {
			t.Errorf("ProviderID is %s, want %s", response.ProviderID, want)
		}
		if response.NodeName != "m1" {
			t.Errorf("NodeName is %s, want m1", response.NodeName)
		}
		nic := nicOf(t, r, server)
		if diff := cmp.Diff([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nic.IPv4}},
			response.Addresses); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
	})
}

// The manager's cache may lack the ProviderID, and lists the server.
func TestCreateMachineAgainAdoptsItsServer(t *testing.T) {
	for name, row := range map[string]struct {
		lag     time.Duration
		restart func(*rig)
	}{
		"the same process, lists lag":       {20 * time.Second, func(*rig) {}},
		"the process after a restart":       {0, func(r *rig) { r.restart() }},
		"a successor, and lists lag behind": {20 * time.Second, (*rig).restartNow},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(row.lag))
			m := machine("m1")
			first := r.mustCreate(m)
			row.restart(r)
			if second := r.mustCreate(m); !cmp.Equal(first, second) {
				t.Errorf("the second call answers %+v, want %+v", second, first)
			}
			if response, err := r.initialize(m); err != nil || response.ProviderID != first.ProviderID {
				t.Errorf("InitializeMachine answers %+v, %v", response, err)
			}
			if response, err := r.status(m); err != nil || response.ProviderID != first.ProviderID {
				t.Errorf("GetMachineStatus answers %+v, %v", response, err)
			}
			r.onlyServer()
			r.wantCalls("CreateServer", 1)
		})
	}
}

// What may happen to a server between its POST and its addresses is noticed soon, and nothing is left of it.
func TestCreateMachineWhoseServerFailsOrGoes(t *testing.T) {
	const boots, bootsLate = 10 * time.Second, 2 * time.Minute
	for name, row := range map[string]struct {
		boot    time.Duration
		message string // of the server in ERROR; "" is one that is deleted
		want    codes.Code
	}{
		"no capacity":                    {bootsLate, "No valid host was found.", codes.ResourceExhausted},
		"no quota":                       {bootsLate, "Quota exceeded for volumes", codes.ResourceExhausted},
		"anything else":                  {bootsLate, "Failed to allocate the network(s)", codes.Internal},
		"failed, its addresses awaited":  {boots, "No valid host was found.", codes.ResourceExhausted},
		"deleted, its addresses awaited": {boots, "", codes.Aborted},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(row.boot), iaasmock.WithAddressDelay(24*time.Hour))
			done := r.startCreate(machine("m1"))
			<-time.After(30 * time.Second)
			if id := r.onlyServer().ID; row.message == "" {
				r.removeServer(id)
			} else {
				r.setStatus(id, iaasmock.StatusError, row.message)
			}
			happened := time.Now()
			wantCode(t, <-done, row.want)
			wantWithin(t, happened, 20*time.Second)
			<-time.After(deleteDuration)
			r.wantNothingLeft()
		})
	}
}

// Two GETs answered 404, 15 s apart, prove it.
func TestAServerDeletedByHandWhileItBootsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithBootDuration(2*time.Minute))
		m := machine("m1")
		done := r.startCreate(m)
		<-time.After(40 * time.Second)
		first := r.onlyServer().ID
		r.removeServer(first)
		happened := time.Now()
		wantCode(t, <-done, codes.Aborted)
		wantWithin(t, happened, 30*time.Second)
		if took := time.Since(happened); took < 15*time.Second {
			t.Errorf("told after %s: one 404 may be a mistake", took)
		}
		second := r.mustCreate(m).ProviderID
		if r.onlyServer(); second == providerIDOf(first) {
			t.Errorf("the answer is %s, which is gone", second)
		}
	})
}

// The autoscaler tries another pool only once it hears of this, whatever becomes of the server.
func TestNoCapacityIsToldAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		deletion iaasmock.Fault
		// posts are those of a second call, after the class's minute.
		posts int
	}{
		"the server goes":           {iaasmock.Fault{}, 1},
		"its DELETE never answers":  {iaasmock.Fault{NeverAnswers: true}, 1},
		"its DELETE answers 503":    {iaasmock.Fault{Status: http.StatusServiceUnavailable}, 0},
		"its DELETE has no effect":  {iaasmock.Fault{Status: http.StatusOK, Body: " "}, 0},
		"its deletion hangs":        {iaasmock.Fault{NeverGone: true}, 1},
		"its DELETE is not carried": {iaasmock.Fault{NeverAnswers: true, Status: http.StatusGatewayTimeout}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithDeleteDuration(5*time.Minute))
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", FinalStatus: iaasmock.StatusError,
				ErrorMessage: "No valid host was found."})
			if row.deletion.Status != 0 || row.deletion.NeverAnswers || row.deletion.NeverGone {
				row.deletion.Operation = "DeleteServer"
				r.cloud.Inject(row.deletion)
			}
			wantCode(t, r.createErr(machine("m1")), codes.ResourceExhausted)
			if took := time.Since(r.onlyServer().CreatedAt); took > bootDuration+30*time.Second {
				t.Errorf("told after %s", took)
			}
			<-time.After(2 * time.Minute)
			r.cloud.ResetCalls()
			wantCode(t, r.createErr(machine("m1")), codes.ResourceExhausted)
			r.wantCalls("CreateServer", row.posts)
			if row.posts > 0 { // never beside two
				<-time.After(2 * time.Minute)
				wantReason(t, r.createErr(machine("m1")), provider.ReasonNotReady)
				r.wantCalls("CreateServer", row.posts)
			}
		})
	}
}

// The next call sends the DELETE again, and one after it makes the next server beside the one that goes.
func TestTheDELETEOfAFailedServerIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithDeleteDuration(2*time.Minute))
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError,
			ErrorMessage: "broken"})
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, Status: http.StatusConflict})
		m := machine("m1")
		wantCode(t, r.createErr(m), codes.Internal)
		failed := r.onlyServer()
		if failed.Status != iaasmock.StatusError {
			t.Fatalf("the server is %s, want its DELETE refused", failed.Status)
		}
		wantCode(t, r.createErr(m), codes.Internal)
		r.wantCalls("DeleteServer", 2)
		if left := r.onlyServer(); left.Status != iaasmock.StatusDeleting {
			t.Errorf("the failed server is %s after the next call", left.Status)
		}
		if second := r.mustCreate(m).ProviderID; second == providerIDOf(failed.ID) {
			t.Errorf("the answer is %s, which failed", second)
		}
		<-time.After(2 * time.Minute)
		r.onlyServer()
		r.wantCalls("DeleteServer", 2)
	})
}

// What a class's servers have for themselves is still attached to one that is being deleted.
func TestAClassWithNICsOrVolumesWaitsUntilAFailedServerIsGone(t *testing.T) {
	for name, change := range map[string]func(spec map[string]any){
		"NICs":    func(spec map[string]any) { spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}} },
		"volumes": func(spec map[string]any) { spec["volumes"] = []any{iaasmock.DefaultVolumeID} },
		"a disk of its own": func(spec map[string]any) {
			delete(spec, "imageId")
			spec["bootVolume"] = map[string]any{"source": map[string]any{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithDeleteDuration(2*time.Minute))
			r.setSpec(change)
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError,
				ErrorMessage: "broken"})
			wantCode(t, r.createErr(m), codes.Internal)
			r.mustCreateAsManager(m)
			r.onlyServer()
		})
	}
}

// The manager has given it up, or is about to: a server would be thrown away.
func TestAMachineOlderThanItsCreationTimeoutGetsNoServer(t *testing.T) {
	threeMinutes := []provider.Option{provider.WithCreationTimeout(3 * time.Minute)}
	for name, row := range map[string]struct {
		age     time.Duration
		options []provider.Option
		server  bool
		isAlone bool // no MachineSet replaces it
		want    codes.Code
	}{
		"younger":                      {19 * time.Minute, nil, false, false, codes.OK},
		"older":                        {21 * time.Minute, nil, false, false, codes.FailedPrecondition},
		"older, by the sidecar's flag": {4 * time.Minute, threeMinutes, false, false, codes.FailedPrecondition},
		"older, without a target": {21 * time.Minute, []provider.Option{provider.WithTargetCluster(false)}, false,
			false, codes.OK},
		"older, with a server":        {21 * time.Minute, nil, true, false, codes.OK},
		"older, without a MachineSet": {21 * time.Minute, nil, false, true, codes.OK},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.restart(row.options...)
			m := machine("m1")
			m.CreationTimestamp.Time = m.CreationTimestamp.Add(-row.age)
			if !row.isAlone {
				m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", Controller: new(true)}}
			}
			if row.server {
				r.makeRunning("m1")
			}
			began := time.Now()
			_, err := r.create(m)
			wantCode(t, err, row.want)
			servers := 1
			if row.want != codes.OK {
				servers = 0
				if took := time.Since(began); reasonOf(err) != provider.ReasonCreationTimedOut || took > 5*time.Second {
					t.Errorf("%v after %s", err, took)
				}
			}
			if got := len(r.cloud.Servers()); got != servers {
				t.Errorf("%d servers, want %d", got, servers)
			}
		})
	}
}

const quotaExceeded = `{"code":403,"msg":"Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}`

// The DELETE of a second server, or of one whose deletion is stuck, gets no answer.
func TestCreateMachineIsNotHeldUpByWhatItDoesNotWaitFor(t *testing.T) {
	for name, prepare := range map[string]func(r *rig){
		"a second server": func(r *rig) {
			r.makeRunning("m1")
			r.makeServer("m1", nil)
			r.makeServer("m1", nil)
		},
		"a stuck deletion": func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, NeverGone: true})
			r.deleteByHand(r.makeServer("m1", nil))
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			prepare(r)
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverAnswers: true, Status: http.StatusGatewayTimeout})
			start := time.Now()
			r.mustCreate(machine("m1"))
			wantWithin(t, start, bootDuration+6*time.Second)
		})
	}
}

// Whatever lists show, nobody waits for a server that a read has shown.
func TestCreateMachineAfterAFailedServerMakesOne(t *testing.T) {
	for name, row := range map[string]struct{ lag, later time.Duration }{
		"lists are up to date":      {0, 0},
		"lists lag":                 {20 * time.Second, 0},
		"lists show what is gone":   {20 * time.Second, 5 * time.Second},
		"lists show it for a while": {20 * time.Second, 15 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(row.lag))
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError,
				ErrorMessage: "image is broken"})
			wantCode(t, r.createErr(machine("m1")), codes.Internal)
			<-time.After(row.later)
			start := time.Now()
			r.mustCreate(machine("m1"))
			<-time.After(deleteDuration)
			if waited := r.onlyServer().CreatedAt.Sub(start); waited > provider.DefaultSettle+15*time.Second {
				t.Errorf("the server was asked for after %s, want at most 15 s more than %s", waited, provider.DefaultSettle)
			}
		})
	}
}

// A list may show a server that is gone: the one that runs is not deleted for it.
func TestCreateMachineKeepsTheServerThatExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(25*time.Second))
		gone := r.makeServer("m1", nil)
		<-time.After(5 * time.Second)
		runs := r.makeServer("m1", nil)
		<-time.After(time.Minute)
		r.deleteByHand(gone)
		<-time.After(10 * time.Second)
		response := r.mustCreate(machine("m1"))
		r.wantOnly(runs)
		if response.ProviderID != providerIDOf(runs) {
			t.Errorf("%s is the answer, want %s", response.ProviderID, runs)
		}
	})
}

// A creation that looks by list deletes the others. One whose ProviderID names the server does not look.
func TestWhichOfTwoServersIsKept(t *testing.T) {
	const active, inError = iaasmock.StatusActive, iaasmock.StatusError
	for name, row := range map[string]struct {
		older, younger string // states; "" is CREATING
		byID           bool   // the ProviderID names the younger one
		kept           int
		left           int
	}{
		"the one that runs":                        {"", active, false, 1, 1},
		"the one that did not fail":                {inError, "", false, 1, 1},
		"the older one":                            {active, active, false, 0, 1},
		"the one of the ProviderID, and none goes": {active, active, true, 1, 2},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			ids, m := make([]string, 2), machine("m1")
			for i, state := range []string{row.older, row.younger} {
				if ids[i] = r.makeServer("m1", nil); state != "" {
					r.setStatus(ids[i], state, "broken")
				}
				<-time.After(time.Second)
			}
			if row.byID {
				m = withID(m, providerIDOf(ids[1]))
			}
			if got, want := r.mustCreate(m).ProviderID, providerIDOf(ids[row.kept]); got != want {
				t.Errorf("the answer is %s, want %s", got, want)
			}
			<-time.After(deleteDuration)
			if left := r.cloud.Servers(); len(left) != row.left {
				t.Errorf("%d servers are left, want %d", len(left), row.left)
			}
			r.wantCalls("CreateServer", 2) // by another's hand
		})
	}
}

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
		"the POST is refused":           {machineType, refused, nil},
		"the server finds no host":      {machineType, noHost, nil},
		"there is no such machine type": {"c9i.999", iaasmock.Fault{}, nil},
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
		done := start(func() error { _, err := r.createAsManager(machine("m1")); return err })
		<-time.After(time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Server: "m2", Count: 1, Status: http.StatusForbidden,
			Body: quotaExceeded})
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

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
		if want := providerIDOf(server.ID); response.ProviderID != want || response.NodeName != "m1" {
			t.Errorf("ProviderID and NodeName are %s and %s, want %s and m1", response.ProviderID, response.NodeName, want)
		}
		want := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: r.nicOf(server).IPv4}}
		if diff := cmp.Diff(want, response.Addresses); diff != "" {
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
			r.wantCalls("CreateServer", 1)
		})
	}
}

// The outcome of a creation in the rows of README.md. A POST is in doubt until a list that began settle later shows no
// server; whatever fails, there is one server in the end.
func TestCreations(t *testing.T) {
	lag := world{iaasmock.WithListLag(20 * time.Second)}
	const noHost = "No valid host was found."
	runSituations(t, map[string]situation{
		"3: the POST's answer is lost": {
			world: lag, faults: []fault{lost}, call: createsUntilOK, left: 1},
		"3: a 500 although the server was made": {
			world: lag, faults: []fault{posts(fault{Count: 1, Executed: true, Status: 500})}, call: createsUntilOK, left: 1},
		"3: a gateway gave up, it was made": {
			world: lag, faults: []fault{posts(fault{Count: 1, Executed: true, Status: 504, Body: "<html>"})},
			call: createsUntilOK, left: 1},
		"3: 201 without a UUID, it was made": {
			world: lag, faults: []fault{posts(fault{Count: 1, Executed: true, Status: 201, Body: someServer})},
			call: createsUntilOK, left: 1},
		"3: it is made late": {
			world: lag, faults: []fault{posts(fault{Count: 1, Delay: 25 * time.Second, DropAfter: true})},
			call: createsUntilOK, left: 1},
		"4: the POST is lost, and the next one": {
			world: lag, faults: []fault{posts(fault{Count: 2, DropBefore: true})}, call: createsUntilOK, left: 1,
			within: 2*provider.DefaultSettle + 30*time.Second},
		"4: 201 without a UUID, none was made": {
			world: lag, faults: []fault{posts(fault{Count: 1, Status: 201, Body: someServer})}, call: createsUntilOK, left: 1},
		"4: a lost POST of a Machine that is gone is no doubt": {before: func(r *rig, m made) {
			created(lost)(r, withUID(m.DeepCopy(), "first"))
			r.mustRemove(withUID(m.DeepCopy(), "first"))
			withUID(m, "second")
		}, call: creates, left: 1, within: bootDuration + 4*time.Second},
		"5: no connection": {before: notWritten(&net.OpError{Op: "dial", Err: errors.New("connection refused")}),
			call: createsUntilOK, left: 1, within: bootDuration + 25*time.Second}, // POSTs pause after failures
		"5: the proxy refuses": {before: notWritten(errors.New("Service Unavailable")),
			call: createsUntilOK, left: 1, within: bootDuration + 25*time.Second},
		"5: the API refused the POST, is told": {
			faults: []fault{refused}, call: creates, reason: provider.ReasonRequestRefused, within: time.Second},
		"5: the API refused the POST, comes again": {
			before: created(refused), call: creates, left: 1, within: bootDuration + 4*time.Second},
		"5: a conflict of the cloud's own passes": {
			before: created(posts(fault{Count: 1, Status: 409})), call: creates, left: 1, within: bootDuration + 4*time.Second},
		"6: a predecessor was killed at its POST": {world: lag, before: succeeded(booting), call: creates, left: 1},
		"6: and one of its servers is in ERROR": {world: lag, before: func(r *rig, _ made) {
			r.setStatus(r.makeServer("m1", nil), iaasmock.StatusError, "broken")
			<-time.After(20 * time.Second)
			r.own = r.makeServer("m1", nil)
			r.restartNow()
		}, call: again(creates, 0), left: 1},
		"6: the clocks differ by 5 s": {world: lag, before: func(r *rig, m made) {
			r.own = r.makeServer("m1", nil)
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(6 * time.Second))
			r.restartNow()
		}, call: creates, left: 1},
		"6: a Machine younger than the leadership waits for nothing": {before: func(r *rig, m made) {
			r.restartNow()
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(11 * time.Second))
		}, call: creates, left: 1, within: bootDuration + 4*time.Second},
		"8: no host, the server goes": {
			faults: []fault{inError(noHost)}, call: creates, reason: provider.ReasonNoCapacity, within: 30 * time.Second},
		"8: no quota for its volume": {
			faults: []fault{inError("Quota exceeded for volumes")}, call: creates, reason: provider.ReasonQuotaExceeded},
		"8: in other words": {
			faults: []fault{inError("Image is corrupt")}, call: creates, reason: provider.ReasonServerFailed},
		"8: its DELETE never answers": {
			faults: []fault{inError(noHost), deletes(fault{NeverAnswers: true, Status: 504})},
			call:   creates, reason: provider.ReasonNoCapacity, left: 1, within: 30 * time.Second},
		"8: its DELETE has no effect": {
			faults: []fault{inError(noHost), noEffect},
			call:   creates, reason: provider.ReasonNoCapacity, left: 1, within: 30 * time.Second},
		"8: no server beside one whose DELETE fails": {
			faults: []fault{inError(noHost), deletes(fault{Status: 503})},
			call:   again(creates, 2*time.Minute), reason: provider.ReasonNoCapacity, left: 1},
		"8: the next one beside one that hangs in DELETING": {
			faults: []fault{inError(noHost), deletes(fault{NeverGone: true})},
			call:   again(creates, 2*time.Minute), reason: provider.ReasonNoCapacity, left: 2},
		"8: no third one beside two of them": {
			faults: []fault{inError(noHost), deletes(fault{NeverGone: true})},
			call:   again(again(creates, 2*time.Minute), 2*time.Minute), reason: provider.ReasonNotReady, left: 2},
		"8: the next call repeats the DELETE": {
			faults: []fault{once(inError("broken")), deletes(fault{Count: 1, Status: 409})},
			call:   again(again(creates, 0), 0), left: 1,
			then: func(r *rig, _ made) { r.wantCalls("DeleteServer", 2) }},
		"8: after it, lists show it for a while": {
			world: lag, before: created(once(inError("broken"))), call: creates, left: 1, within: time.Minute},
		"8: in ERROR while its address is awaited": {
			world:  world{iaasmock.WithAddressDelay(24 * time.Hour)},
			before: happens(30*time.Second, func(r *rig, id string) { r.setStatus(id, iaasmock.StatusError, noHost) }),
			call:   creates, reason: provider.ReasonNoCapacity, within: 50 * time.Second},
		"8: the class's own NIC": {before: exclusive(func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
		}), world: slow, faults: []fault{once(inError("broken"))}, call: again(createsUntilOK, 0), left: 1},
		"8: the class's own volume": {before: exclusive(func(spec map[string]any) {
			spec["volumes"] = []any{iaasmock.DefaultVolumeID}
		}), world: slow, faults: []fault{once(inError("broken"))}, call: again(createsUntilOK, 0), left: 1},
		"8: the class's own disk": {before: exclusive(func(spec map[string]any) {
			delete(spec, "imageId")
			spec["bootVolume"] = map[string]any{"source": map[string]any{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
		}), world: slow, faults: []fault{once(inError("broken"))}, call: again(createsUntilOK, 0), left: 1},
		"11: deleted by hand while it boots": {
			world:  world{iaasmock.WithBootDuration(2 * time.Minute)},
			before: happens(40*time.Second, (*rig).removeServer),
			call:   creates, reason: provider.ReasonInterrupted, within: 70 * time.Second},
		"11: and the next call makes another": {
			world:  world{iaasmock.WithBootDuration(2 * time.Minute)},
			before: happens(40*time.Second, (*rig).removeServer), call: createsUntilOK, left: 1},
		"11: while its address is awaited": {
			world:  world{iaasmock.WithAddressDelay(24 * time.Hour)},
			before: happens(30*time.Second, (*rig).removeServer),
			call:   creates, reason: provider.ReasonInterrupted, within: 50 * time.Second},
		"11: no read shows it yet": {faults: []fault{
			gets(fault{Status: 404, Body: notFound.Body, After: 5500 * time.Millisecond, Duration: 22 * time.Second}),
			lists(fault{EmptyList: true, Duration: 28 * time.Second})}, call: creates, left: 1},
		"11: lists still show the one that goes": {
			world: world{iaasmock.WithListLag(25 * time.Second), iaasmock.WithDeleteDuration(50 * time.Second)},
			before: func(r *rig, m made) {
				running(r, m)
				r.deleteByHand(serverOf(m))
				m.Spec.ProviderID = ""
			}, call: creates, left: 1},
		"12: two servers, one runs": {
			before: two("", iaasmock.StatusActive, 1), call: creates, left: 1, within: 4 * time.Second},
		"12: two servers, one failed": {before: two(iaasmock.StatusError, "", 1), call: creates, left: 1},
		"12: two servers, the older one": {
			before: two(iaasmock.StatusActive, iaasmock.StatusActive, 0), call: creates, left: 1},
		"12: two servers, one is known, and nobody looks": {before: func(r *rig, m made) {
			two(iaasmock.StatusActive, iaasmock.StatusActive, 1)(r, m)
			m.Spec.ProviderID = providerIDOf(r.own)
		}, call: creates, left: 2, calls: 2},
		"12: the other one's DELETE never answers": {
			before: two("", iaasmock.StatusActive, 1), faults: []fault{deletes(fault{NeverAnswers: true, Status: 504})},
			call: creates, left: 2, within: 8 * time.Second},
		"16: the NICs of a server that replaces another are read again": {before: func(r *rig, m made) {
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			created()(r, m)
			r.removeServer(r.onlyServer().ID)
		}, call: createsUntilOK, left: 1, then: func(r *rig, m made) {
			nic := r.nicOf(r.onlyServer())
			if response := r.mustCreate(m); response.Addresses[0].Address != nic.IPv4 || len(nic.AllowedAddresses) != 1 {
				r.t.Errorf("the answer has %v, the server %+v", response.Addresses, nic)
			}
		}},
		"26: younger than its creation timeout": {before: owned(19*time.Minute, true), call: creates, left: 1},
		"26: older": {before: owned(21*time.Minute, true), call: creates, reason: provider.ReasonCreationTimedOut,
			within: 5 * time.Second},
		"26: older, by the sidecar's flag": {before: owned(4*time.Minute, true, provider.WithCreationTimeout(3*time.Minute)),
			call: creates, reason: provider.ReasonCreationTimedOut},
		"26: older, without a target cluster": {before: owned(21*time.Minute, true, provider.WithTargetCluster(false)),
			call: creates, left: 1},
		"26: older, without a MachineSet": {before: owned(21*time.Minute, false), call: creates, left: 1},
		"26: older, with a server": {before: func(r *rig, m made) {
			owned(21*time.Minute, true)(r, m)
			r.own = serverOf(withID(m, r.makeRunning("m1")))
		}, call: creates, left: 1},
	}, time.Minute)
}

// slow lets a deletion take longer than a call that waits for it may repeat itself.
var slow = world{iaasmock.WithDeleteDuration(40 * time.Second)}

// exclusive changes the class's spec so that its servers have something for themselves.
func exclusive(change func(spec map[string]any)) func(*rig, made) {
	return func(r *rig, _ made) { r.setSpec(change) }
}

// happens to the only server, some time after the call began.
func happens(after time.Duration, what func(r *rig, serverID string)) func(*rig, made) {
	return func(r *rig, _ made) { time.AfterFunc(after, func() { what(r, r.onlyServer().ID) }) }
}

// two: the Machine has two servers in these states ("" is CREATING), of which the call keeps one.
func two(older, younger string, kept int) func(*rig, made) {
	return func(r *rig, _ made) {
		var ids []string
		for _, state := range []string{older, younger} {
			ids = append(ids, r.makeServer("m1", nil))
			if state != "" {
				r.setStatus(ids[len(ids)-1], state, "broken")
			}
			<-time.After(time.Second)
		}
		r.own = ids[kept]
	}
}

// owned: a MachineSet has made the Machine, or nobody, that long ago.
func owned(ago time.Duration, bySet bool, options ...provider.Option) func(*rig, made) {
	return func(r *rig, m made) {
		r.restart(options...)
		m.CreationTimestamp.Time = m.CreationTimestamp.Add(-ago)
		if bySet {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", Controller: new(true)}}
		}
	}
}

// notWritten: a POST failed so before anything was written.
func notWritten(err error) func(*rig, made) {
	return func(r *rig, m made) {
		fails := r.failPOSTs(err)
		fails.Store(true)
		if reason := reasonOf(r.createErr(m)); reason != provider.ReasonAPIFailed {
			r.t.Errorf("the manager is told %q", reason)
		}
		fails.Store(false)
	}
}

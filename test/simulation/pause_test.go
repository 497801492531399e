// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// fired counts what has come out of the channel by now.
func fired(times <-chan time.Time) (count int) {
	synctest.Wait()
	for {
		select {
		case <-times:
			count++
		default:
			return count
		}
	}
}

func TestAProcessClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProcessClock(newSpreadClock())
		began := c.Now()
		timer, stopped, ticker := c.NewTimer(3*time.Second), c.NewTimer(3*time.Second), c.NewTicker(2*time.Second)
		ticks := ticker.C()
		clock.RealClock{}.Sleep(2500 * time.Millisecond)
		if got := fired(ticks); got != 1 {
			t.Errorf("%d ticks before it stops", got)
		}
		ticks = ticker.C()
		c.stop()
		clock.RealClock{}.Sleep(10 * time.Second)
		if got := c.Since(began); got != 2500*time.Millisecond {
			t.Errorf("it stands at %s", got)
		}
		if fired(timer.C())+fired(ticks) > 0 {
			t.Error("it goes on while it stands")
		}
		meanwhile := c.NewTimer(3 * time.Second)
		if !stopped.Stop() {
			t.Error("a timer that has not fired cannot be stopped")
		}
		c.resume()
		if got := c.Since(began); got != 12500*time.Millisecond {
			t.Errorf("it goes on at %s", got)
		}
		if got := [3]int{fired(timer.C()), fired(stopped.C()), fired(ticks)}; got != [3]int{1, 0, 1} {
			t.Errorf("then the timer, the stopped timer and the ticker fire %v times", got)
		}
		clock.RealClock{}.Sleep(2 * time.Second)
		if c.set(); fired(meanwhile.C()) > 0 {
			t.Error("a timer that was started while it stood fires early")
		}
		clock.RealClock{}.Sleep(time.Second)
		if fired(meanwhile.C()) != 1 {
			t.Error("a timer that was started while it stood does not fire")
		}
		timer.Reset(time.Second)
		clock.RealClock{}.Sleep(time.Second)
		if got := fired(timer.C()); got != 1 {
			t.Errorf("a timer that was set again fires %d times", got)
		}
	})
}

// stillWorld is a cluster without any Machine whose leader may stand still.
func stillWorld(t *testing.T, test func(w *world, leader *process)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		plan := Plan{Seed: 1, Clusters: 1, Pauses: 1}
		w := newWorld(&plan)
		w.run(func() Result {
			w.clusters[0].start()
			w.sleep(time.Second)
			test(w, w.clusters[0].running())
			return Result{}
		})
	})
}

func TestALostLease(t *testing.T) {
	const length, takeover, notice = 40 * time.Second, 15 * time.Second, 12 * time.Second
	stillWorld(t, func(w *world, leader *process) {
		c := w.clusters[0]
		c.standStill(leader, stillness{length: length, takeover: takeover, notice: notice, fresh: 5 * time.Second})
		c.want("late-machine", classB)
		for _, row := range []struct {
			when              string
			after             time.Duration
			leads, ended, old bool
		}{
			{"until it is taken", takeover - time.Second, true, false, true},
			{"once it is taken", 2 * time.Second, false, false, true},
			{"when the old leader goes on", length - takeover, false, false, true},
			{"when its cache has caught up", 6 * time.Second, false, false, false},
			{"when it has noticed", notice, false, true, false},
		} {
			w.sleep(row.after)
			if leads := c.running() == leader; leads != row.leads || leader.dead() != row.ended {
				t.Errorf("%s: leads: %v, ended: %v", row.when, leads, leader.dead())
			}
			if _, err := leader.manager.Machines.Get("late-machine"); (err != nil) != row.old {
				t.Errorf("%s: its cache lacks what was made meanwhile: %v", row.when, err)
			}
		}
		if leads := c.running().name; leads != "shoot-a.2" {
			t.Errorf("%s leads", leads)
		}
	})
}

func TestALeaseThatIsRenewed(t *testing.T) {
	for name, still := range map[string]stillness{
		"in time": {length: 13 * time.Second, renewal: time.Second, takeover: 15 * time.Second,
			notice: time.Second},
		"late, and nobody has taken it": {length: time.Minute, renewal: time.Second, notice: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			stillWorld(t, func(w *world, leader *process) {
				w.clusters[0].standStill(leader, still)
				w.sleep(2 * time.Minute)
				if w.clusters[0].running() != leader || leader.dead() || leader.standing() {
					t.Error("it does not go on as leader")
				}
			})
		})
	}
}

// It would act on what it remembers, without a lease, if it went on after the run.
func TestAProcessThatStandsStillWhenTheRunEnds(t *testing.T) {
	var old *process
	stillWorld(t, func(w *world, leader *process) {
		old = leader
		w.clusters[0].standStill(leader, stillness{length: time.Hour, takeover: leaseDuration, notice: renewDeadline})
		w.sleep(time.Minute)
	})
	if !old.dead() || old.standing() {
		t.Errorf("it has ended: %v, it stands still: %v", old.dead(), old.standing())
	}
}

// What has left arrives; the answer waits, and so does what would leave.
func TestRequestsOfAProcessThatStandsStill(t *testing.T) {
	const length = 20 * time.Second
	stillWorld(t, func(w *world, leader *process) {
		c := w.clusters[0]
		ask := func() (took time.Duration, err error) {
			request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, endpoint+"/v2/nothing", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			response, err := (&wire{c, leader}).RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return time.Since(began), err
		}
		w.spawn(func() {
			w.sleep(1500 * time.Microsecond) // it has arrived; the answer is on its way
			c.standStill(leader, stillness{length: length})
		})
		if took, err := ask(); err != nil || took < length {
			t.Errorf("an answer came after %s, %v", took, err)
		}
		before := w.calls
		c.standStill(leader, stillness{length: length})
		if took, err := ask(); err == nil || took < length || w.calls != before {
			t.Errorf("a request was carried out, after %s", took)
		}
	})
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// tolerated and hold of the fences in these tests. The hold is longer than an attempt
// may take: waiting is no part of it.
const (
	tolerated = 3 * time.Second
	hold      = 40 * time.Second
)

// jumpyClock is ahead of the clock below it, whose timers it uses, by how long the process stood still.
type jumpyClock struct {
	clock.WithTicker
	stood atomic.Int64
}

func (c *jumpyClock) Now() time.Time { return c.WithTicker.Now().Add(time.Duration(c.stood.Load())) }

func (c *jumpyClock) stand(by time.Duration) { c.stood.Add(int64(by)) }

func TestFence(t *testing.T) {
	type life struct {
		*jumpyClock
		fence *Fence
		// works lets time pass with a tick every 500 ms.
		works func(time.Duration)
	}
	for name, row := range map[string]struct {
		what func(life)
		// held is for how long an attempt that comes then has to wait.
		held time.Duration
	}{
		"at work":           {func(l life) { l.works(time.Minute) }, 0},
		"a short stop":      {func(l life) { l.works(time.Second); l.stand(tolerated) }, 0},
		"two short stops":   {func(l life) { l.stand(2 * time.Second); l.fence.tick(); l.stand(2 * time.Second) }, 0},
		"a pause":           {func(l life) { l.stand(tolerated + 1) }, hold},
		"a pause, long ago": {func(l life) { l.stand(4 * time.Second); l.works(hold + tickInterval) }, 0},
		"a pause, found by the ticker": {
			func(l life) { l.stand(4 * time.Second); l.works(5 * time.Second) }, hold - 5*time.Second + tickInterval},
		"a short stop after a pause": {
			func(l life) { l.stand(4 * time.Second); l.fence.tick(); l.stand(time.Second) }, hold - time.Second},
		"the clock was set back": {func(l life) { l.stand(-time.Hour) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := &jumpyClock{WithTicker: clocktesting.NewFakeClock(time.Now())}
			fence := NewFence(now, tolerated, hold)
			row.what(life{now, fence, func(d time.Duration) {
				for ; d > 0; d -= tickInterval {
					now.stand(tickInterval)
					fence.tick()
				}
			}})
			for range 2 { // what was noticed once stays
				if got := max(0, fence.tick()); got != row.held {
					t.Errorf("an attempt is held for %s, want %s", got, row.held)
				}
			}
		})
	}
}

// pausable is a process with a fence.
type pausable struct {
	*jumpyClock
	*PluginSPIImpl
	seen *arrivals
}

// inPausable runs the test in virtual time.
func inPausable(t *testing.T, test func(t *testing.T, p *pausable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now, seen := &jumpyClock{WithTicker: clock.RealClock{}}, &arrivals{}
		fence := NewFence(now, tolerated, hold)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go fence.Run(ctx)
		test(t, &pausable{now, &PluginSPIImpl{
			Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Transport: seen, Fence: fence,
			Jitter: func() float64 { return 0.5 },
		}, seen})
	})
}

// call makes an API call.
func (p *pausable) call(ctx context.Context, method string) error {
	session, err := p.Session(Credentials{ProjectID: testProject})
	if err != nil {
		return err
	}
	return apiCalls[method](ctx, session.API)
}

// pause is one that counts. It returns when it was over.
func (p *pausable) pause() time.Time {
	p.stand(tolerated + time.Second)
	return time.Now()
}

// wantHeld checks when the first attempt after a pause was sent. That time is counted
// from when the pause was noted, at the next tick if by no attempt before.
func (p *pausable) wantHeld(t *testing.T, resumed time.Time) {
	t.Helper()
	for _, sent := range p.seen.all() {
		if held := sent.at.Sub(resumed); held >= 0 {
			if held < hold || held > hold+tickInterval {
				t.Errorf("the first attempt after a pause, a %s, is sent after %s, want %s", sent.method, held, hold)
			}
			return
		}
	}
	t.Error("nothing is sent after a pause, ever")
}

func TestNoAttemptIsSentAfterAPause(t *testing.T) {
	all := []string{"GET", "POST"}
	for name, row := range map[string]struct {
		methods []string
		// asked is when the call comes, from the pause on; before it, something is done.
		asked  time.Duration
		before func(*pausable)
	}{
		"that finds it":    {all, time.Millisecond, func(*pausable) {}},
		"that comes later": {all, 2 * time.Second, func(*pausable) {}},
		"in backoff": {[]string{"GET"}, -100 * time.Millisecond, func(p *pausable) {
			p.seen.failures = 1
		}},
		"held by an earlier pause": {all, time.Second - hold, func(p *pausable) { p.pause() }},
		"in the rate limit": {all, -100 * time.Millisecond, func(p *pausable) {
			p.Limiter = rate.NewLimiter(rate.Every(10*time.Second), 1)
			p.Limiter.Allow()
		}},
	} {
		for _, method := range row.methods {
			t.Run(method+" "+name, func(t *testing.T) {
				inPausable(t, func(t *testing.T, p *pausable) {
					const when = time.Minute + tickInterval/2
					done := make(chan error)
					go func() {
						<-time.After(when + row.asked)
						row.before(p)
						done <- p.call(t.Context(), method)
					}()
					<-time.After(when)
					resumed := p.pause()
					if err := <-done; err != nil {
						t.Errorf("what was held fails: %v", err)
					}
					p.wantHeld(t, resumed)
				})
			})
		}
	}
}

// What was held queues again for the limit of the process.
func TestWhatWasHeldIsNotSentAllAtOnce(t *testing.T) {
	inPausable(t, func(t *testing.T, p *pausable) {
		p.Limiter = rate.NewLimiter(10, 1)
		p.pause()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _ = p.call(t.Context(), "DELETE") })
		}
		all.Wait()
		sent := p.seen.all()
		took, want := sent[len(sent)-1].at.Sub(sent[0].at), 49*time.Second/10
		if len(sent) != 50 || took < want-time.Millisecond {
			t.Errorf("%d attempts in %s, want 50 in %s", len(sent), took, want)
		}
	})
}

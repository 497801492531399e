// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"runtime"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestDelaysAreSpread(t *testing.T) {
	const calls = 300
	for distribution, want := range map[string]struct{ least, most time.Duration }{ // of the mean
		iaasmock.DelayUniform:  {5 * time.Second, 7 * time.Second},
		iaasmock.DelayNormal:   {5500 * time.Millisecond, 6500 * time.Millisecond},
		iaasmock.DelayLongTail: {1700 * time.Millisecond, 2400 * time.Millisecond},
	} {
		t.Run(distribution, func(t *testing.T) {
			m := instantMock(t, iaasmock.WithSeed(7))
			m.cloud.Inject(iaasmock.Fault{Delay: time.Second, DelayMax: 11 * time.Second, DelayDistribution: distribution})
			sum := time.Duration(0)
			for range calls {
				d := m.delayOf("GET", inRegion+"/servers")
				if d < time.Second || d > 11*time.Second {
					t.Fatalf("one call takes %s", d)
				}
				sum += d
			}
			if mean := sum / calls; mean < want.least || mean > want.most {
				t.Errorf("the mean is %s, want %s to %s", mean, want.least, want.most)
			}
		})
	}
}

func TestBrownOutPassesBy(t *testing.T) {
	m := instantMock(t)
	m.inject("brown-out", nil)
	m.inject("slow", nil)
	m.inject("token-slow", nil)
	if d := m.delayOf("GET", inRegion+"/servers"); d < 2500*time.Millisecond || d > 23*time.Second {
		t.Errorf("a call takes %s", d)
	}
	if d := m.delayOf("POST", "/token"); d < 12*time.Second || d > 30*time.Second {
		t.Errorf("a token takes %s", d)
	}
	m.clock.Step(time.Minute)
	if d := m.delayOf("GET", inRegion+"/servers"); d < 500*time.Millisecond || d > 3*time.Second {
		t.Errorf("after the brown-out a call takes %s", d)
	}
	if d := m.delayOf("POST", "/token"); d != 10*time.Second {
		t.Errorf("after the brown-out a token takes %s", d)
	}
}

// instantClock steps itself whenever a timer starts.
type instantClock struct{ *clocktesting.FakeClock }

func (c instantClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}

// instantMock is for one call at a time.
func instantMock(t *testing.T, opts ...iaasmock.Option) *mock {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	m := openMock(t, append(opts, iaasmock.WithClock(instantClock{clock}))...)
	m.clock = clock
	return m
}

// delayOf makes a call and returns how long it took.
func (m *mock) delayOf(method, path string) time.Duration {
	m.t.Helper()
	m.status(method, path, nil)
	calls := m.cloud.Calls()
	return calls[len(calls)-1].Duration
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("after 10 seconds not yet: %s", what)
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTheUsualBootIsThatOfTheFast(t *testing.T) {
	b, key := newBoots(clock.RealClock{}), classKey{class: "class-a"}
	for i, row := range []struct{ took, usual time.Duration }{
		{60 * time.Second, 60 * time.Second},
		{20 * time.Second, 20 * time.Second},
		{120 * time.Second, 30 * time.Second},
		{25 * time.Second, 25 * time.Second},
	} {
		b.note(key, row.took)
		if got := b.usual[key].took; got != row.usual {
			t.Errorf("after boot %d of %s the usual is %s, want %s", i, row.took, got, row.usual)
		}
	}
	if got := b.lull(key, time.Time{}); got.from.Before(got.to) {
		t.Error("a server that was made nobody knows when has a lull")
	}
	if got := b.lull(classKey{class: "class-b"}, time.Unix(1e9, 0)); got.from.Before(got.to) {
		t.Errorf("a class of which nothing is known has a lull of %s", got.to.Sub(got.from))
	}
}

func TestBootsOfClassesThatAreNoMoreAreForgotten(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	b := newBoots(now)
	b.note(classKey{class: "class-a"}, time.Minute)
	now.SetTime(now.Now().Add(bootLifetime + time.Second))
	b.note(classKey{class: "class-b"}, time.Minute)
	if _, kept := b.usual[classKey{class: "class-a"}]; kept || len(b.usual) != 1 {
		t.Errorf("remembers %v", b.usual)
	}
}

func TestReadsInTheLull(t *testing.T) {
	posted := time.Unix(1e9, 0)
	b, key := newBoots(clock.RealClock{}), classKey{class: "class-a"}
	b.note(key, 40*time.Second)
	quiet := b.lull(key, posted) // 5 s to 36 s
	for name, row := range map[string]struct{ now, due, want time.Duration }{
		"before it":       {1 * time.Second, 2 * time.Second, 2 * time.Second},
		"in it":           {7 * time.Second, 8 * time.Second, 12 * time.Second},
		"at its end":      {34 * time.Second, 35 * time.Second, 36 * time.Second},
		"that end in it":  {35 * time.Second, 36 * time.Second, 36 * time.Second},
		"after it":        {40 * time.Second, 41 * time.Second, 41 * time.Second},
		"that lead in it": {5 * time.Second, 6 * time.Second, 10 * time.Second},
	} {
		if got := quiet.after(posted.Add(row.due), posted.Add(row.now)); !got.Equal(posted.Add(row.want)) {
			t.Errorf("%s: read after %s, want %s", name, got.Sub(posted), row.want)
		}
	}
	for now, want := range map[time.Duration]struct{ since, least time.Duration }{
		10 * time.Second: {0, tick},
		36 * time.Second: {36 * time.Second, quickTick},
	} {
		if since, least := quiet.over(posted, posted.Add(now)); !since.Equal(posted.Add(want.since)) || least != want.least {
			t.Errorf("after %s it is awaited since %s, and read every %s; want %s, %s", now, since.Sub(posted), least, want.since, want.least)
		}
	}
}

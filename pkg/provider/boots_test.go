// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestTheUsualBootIsThatOfTheFast(t *testing.T) {
	now := time.Unix(1e9, 0)
	b, key := newBoots(clocktesting.NewFakePassiveClock(now)), classKey{class: "class-a"}
	for i, row := range []struct{ seen, told, usual time.Duration }{
		{60 * time.Second, 0, 60 * time.Second},
		{60 * time.Second, 50 * time.Second, 50 * time.Second},
		{20 * time.Second, 22 * time.Second, 20 * time.Second}, // the request took a while
		{30 * time.Second, 0, 21 * time.Second},
		{time.Hour, 0, 23100 * time.Millisecond},
		{22 * time.Second, -time.Second, 22 * time.Second},
	} {
		made := now.Add(-row.seen)
		server := &Server{CreatedAt: made}
		if row.told != 0 {
			server.LaunchedAt = made.Add(row.told)
		}
		b.note(key, made, server)
		if got := b.usual[key].took; got != row.usual {
			t.Errorf("after boot %d of %s the usual is %s, want %s", i, row.seen, got, row.usual)
		}
	}
	b.note(key, time.Time{}, &Server{CreatedAt: now.Add(-time.Second), LaunchedAt: now}) // adopted
	b.note(key, now.Add(-21*time.Second), &Server{LaunchedAt: now})                      // created nobody knows when
	if got := b.usual[key].took; got != 21*time.Second {
		t.Errorf("the usual boot is %s, want 21 s", got)
	}
	if got := b.lull(key, time.Time{}); got != (lull{}) {
		t.Error("a server that was made nobody knows when has a lull")
	}
}

func TestBootsOfClassesThatAreNoMoreAreForgotten(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	b := newBoots(now)
	b.note(classKey{class: "class-a"}, now.Now().Add(-time.Minute), &Server{})
	now.SetTime(now.Now().Add(bootLifetime + time.Second))
	b.note(classKey{class: "class-b"}, now.Now().Add(-time.Minute), &Server{})
	if _, kept := b.usual[classKey{class: "class-a"}]; kept || len(b.usual) != 1 {
		t.Errorf("remembers %v", b.usual)
	}
}

func TestReadsInTheLull(t *testing.T) {
	posted := time.Unix(1e9, 0)
	b := newBoots(clocktesting.NewFakePassiveClock(posted))
	short, long, quick := classKey{class: "class-a"}, classKey{class: "class-b"}, classKey{class: "class-c"}
	b.note(short, posted.Add(-40*time.Second), &Server{})
	b.note(long, posted.Add(-5*time.Minute), &Server{})
	b.note(quick, posted.Add(-5*time.Second), &Server{})
	quiet, unknown := b.lull(short, posted), b.lull(classKey{class: "class-d"}, posted) // 37 s, 5 s
	for name, row := range map[string]struct {
		lull           lull
		now, due, want time.Duration
	}{
		"at first":         {quiet, 0, 1 * time.Second, 5 * time.Second},
		"early in it":      {quiet, 5 * time.Second, 6 * time.Second, 10 * time.Second},
		"in it":            {quiet, 22 * time.Second, 23 * time.Second, 33 * time.Second},
		"at its end":       {quiet, 33 * time.Second, 34 * time.Second, 37 * time.Second},
		"that lead out":    {quiet, 36 * time.Second, 46 * time.Second, 37 * time.Second},
		"that end with it": {quiet, 36 * time.Second, 37 * time.Second, 37 * time.Second},
		"after it":         {quiet, 40 * time.Second, 41 * time.Second, 41 * time.Second},
		"in a long one":    {b.lull(long, posted), 2 * time.Minute, 121 * time.Second, 150 * time.Second},
		"of an unknown":    {unknown, 0, 1 * time.Second, 5 * time.Second},
		"late in that":     {unknown, 4500 * time.Millisecond, 5500 * time.Millisecond, 5500 * time.Millisecond},
		"after that":       {unknown, 5 * time.Second, 6 * time.Second, 6 * time.Second},
		"of a quick class": {b.lull(quick, posted), 0, 1 * time.Second, 1 * time.Second},
	} {
		if got := row.lull.after(posted.Add(row.due), posted.Add(row.now)); !got.Equal(posted.Add(row.want)) {
			t.Errorf("%s: read after %s, want %s", name, got.Sub(posted), row.want)
		}
	}
	for name, row := range map[string]struct {
		lull              lull
		now, since, least time.Duration
	}{
		"in it":         {quiet, 10 * time.Second, 0, tick},
		"after it":      {quiet, 37 * time.Second, 37 * time.Second, quickTick},
		"of an unknown": {unknown, 37 * time.Second, 0, tick},
		"of a quick":    {b.lull(quick, posted), 2 * time.Second, 0, tick},
		"of none":       {lull{}, 37 * time.Second, 0, tick},
	} {
		if since, least := row.lull.awaited(posted, posted.Add(row.now)); !since.Equal(posted.Add(row.since)) || least != row.least {
			t.Errorf("%s: awaited since %s, and read every %s; want %s, %s", name, since.Sub(posted), least, row.since, row.least)
		}
	}
}

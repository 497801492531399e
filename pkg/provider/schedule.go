// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

const (
	// gap is the least time between two reads of a scope.
	gap = 250 * time.Millisecond
	// crowd is from how many readers on those that wait get one list a tick, however
	// soon they would like it.
	crowd = 50
	// maxAlone is how many readers read alone at a time what a list did not show.
	maxAlone = 4
	// listPatience is how long those who ask for one thing wait for a list that is
	// under way: it may hang where single reads do not.
	listPatience = 5 * time.Second
)

// schedule decides when the readers of one scope are served, and how: a few of
// them one by one, more of them together by one list. It is pure: time is handed
// in, and it reads nothing itself.
type schedule struct {
	// few is up to how many readers are served one by one.
	few int
	// pace bounds the reads of all scopes of an inventory together.
	pace *rate.Limiter

	// readers in the order they came.
	readers []*reader
	// began is when the last list, or group of single reads, began.
	began time.Time
	// listing is set while a list is under way.
	listing bool
}

// reader is somebody who wants to know a state that is no older than its question.
type reader struct {
	// asked is when the question came: reads that began before do not answer it.
	asked time.Time
	// due is from when on a read is made for this reader; one that is made for
	// others serves it before.
	due time.Time
	// patient readers leave the time of their read to the schedule.
	patient bool
	// waits is set for those who come back every tick: they go last.
	waits bool
	// lookUp is set for readers that, alone, take a list, too.
	lookUp bool
	// own is set for readers that take no list for an answer: lists may lag.
	own bool
	// missed is set once a list did not show what the reader asks for, or failed: it
	// has to read that alone.
	missed bool
	// alone is set while it reads alone.
	alone bool
}

// step is what is to be done next: start a list, let a reader read alone, or wait.
type step struct {
	list  bool
	alone *reader
	// wait is how long, unless something happens; forever if only that can change
	// anything.
	wait time.Duration
}

// forever is longer than any wait.
const forever = time.Duration(1<<63 - 1)

// add lets the reader in. Where a list is made every tick anyway, a patient reader
// waits for the next.
func (s *schedule) add(r *reader, now time.Time) {
	r.asked = now
	if r.patient && len(s.readers) >= s.few {
		r.due = s.began.Add(tick)
	}
	if r.due.Before(now) {
		r.due = now
	}
	s.readers = append(s.readers, r)
}

// remove lets the reader go, answered or not; again is harmless.
func (s *schedule) remove(r *reader) {
	s.readers = slices.DeleteFunc(s.readers, func(other *reader) bool { return other == r })
}

// served are the readers that a list begun then answers.
func (s *schedule) served(began time.Time) []*reader {
	var served []*reader
	for _, r := range s.readers {
		if !r.alone && !r.own && !r.asked.After(began) {
			served = append(served, r)
		}
	}
	return served
}

// miss notes that a list did not show what the reader asks for, or failed.
func (s *schedule) miss(r *reader, now time.Time) {
	r.missed, r.due = true, now.Add(tick)
}

// next decides, and notes as begun what it decides to begin.
func (s *schedule) next(now time.Time) step {
	wait := forever
	if r, at := s.firstDue(); r != nil && !s.listing {
		switch delay := at.Sub(now); {
		case delay > 0:
			wait = delay
		case !s.allow(now, &wait):
			return step{wait: wait}
		case s.oneByOne(r, now):
			return s.begin(r, now)
		default:
			s.began, s.listing = now, true
			return step{list: true}
		}
	}
	if r := s.firstAlone(now, &wait); r != nil && s.allow(now, &wait) {
		r.alone = true
		return step{alone: r}
	}
	return step{wait: wait}
}

// firstDue returns the reader whose turn is next, and when that is.
func (s *schedule) firstDue() (*reader, time.Time) {
	var first *reader
	var at time.Time
	for _, r := range s.readers {
		if r.alone || r.own {
			continue
		}
		turn, pause := r.due, gap
		if r.waits && len(s.readers) >= crowd {
			pause = tick
		}
		// Those that were due when a group of single reads began belong to it.
		if next := s.began.Add(pause); turn.After(s.began) && turn.Before(next) {
			turn = next
		}
		if first == nil || turn.Before(at) {
			first, at = r, turn
		}
	}
	return first, at
}

// begin lets a reader read alone. The first of a group starts the gap.
func (s *schedule) begin(r *reader, now time.Time) step {
	if r.due.After(s.began) {
		s.began = now
	}
	r.alone = true
	return step{alone: r}
}

// oneByOne says whether the readers, of whom first is next, are few; half as many
// are if the group before began less than a tick ago. Two look-ups cost as much as a
// list that serves everybody.
func (s *schedule) oneByOne(first *reader, now time.Time) bool {
	few := s.few
	if first.due.After(s.began) && now.Sub(s.began) < tick {
		few = (few + 1) / 2
	}
	lookUps := 0
	for _, r := range s.readers {
		if r.lookUp {
			lookUps++
		}
	}
	return len(s.readers) <= few && lookUps <= 1
}

// firstAlone returns the next reader to read alone what lists do not show. If there
// is none, it shortens wait to when there is one.
func (s *schedule) firstAlone(now time.Time, wait *time.Duration) *reader {
	var first *reader
	alone := 0
	next := *wait
	for _, r := range s.readers {
		if r.alone {
			alone++
			continue
		}
		switch delay := s.untilAlone(r, now); {
		case delay > 0:
			next = min(next, delay)
		case first == nil || first.waits && !r.waits:
			first = r
		}
	}
	if alone >= maxAlone {
		return nil
	}
	*wait = next
	return first
}

// untilAlone is how long the reader waits until it reads alone, if nothing happens:
// not at all if it knows that lists do not help, a while if a list is under way.
func (s *schedule) untilAlone(r *reader, now time.Time) time.Duration {
	switch {
	case r.missed, r.own:
		return 0
	case s.listing && !r.lookUp:
		return max(r.due.Sub(now), s.began.Add(listPatience).Sub(now))
	default:
		return forever
	}
}

// allow takes a read from the pace. If there is none, it shortens wait to when
// there may be one. It reserves nothing: the pace is shared, and a reservation that
// is given back after another was made is lost to all.
func (s *schedule) allow(now time.Time, wait *time.Duration) bool {
	if s.pace.AllowN(now, 1) {
		return true
	}
	missing := 1 - s.pace.TokensAt(now)
	// Rounded up: to look again too early would be to look again at once.
	*wait = min(*wait, time.Duration(missing/float64(s.pace.Limit())*float64(time.Second))+time.Microsecond)
	return false
}

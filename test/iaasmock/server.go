// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

// server is a server and the plan of its life. What it is at a given time
// follows from the plan, so that time can be looked up, also in the past.
type server struct {
	Server
	// boot is what CREATING ends in, unless it is overtaken by the others.
	boot outcome
	// forced is what SetServerStatus said, if it did.
	forced *outcome
	// deletion is there from DeleteServer on.
	deletion *deletion
	// number counts servers in order of creation.
	number int
	// removedAt and lastNICs are set when it is gone.
	removedAt time.Time
	lastNICs  []NIC
}

// outcome is a state reached at a time; a zero time is never reached.
type outcome struct {
	at      time.Time
	status  string
	message string
}

func (o outcome) reachedBy(t time.Time) bool {
	return !o.at.IsZero() && !t.Before(o.at)
}

// deletion runs from its request to its end. An empty end.status means gone.
type deletion struct {
	requestedAt time.Time
	end         outcome
}

// state is what changes by itself in a server.
type state struct {
	status, powerStatus, message string
	launchedAt, updatedAt        time.Time
}

// stateAt is the state at t, which may lie in the past.
func (s *server) stateAt(t time.Time) state {
	st := state{status: StatusCreating, updatedAt: s.UpdatedAt}
	reach := func(o outcome) {
		st.status, st.message, st.updatedAt = o.status, o.message, later(st.updatedAt, o.at)
		if o.status == StatusActive && st.launchedAt.IsZero() {
			st.launchedAt = o.at
		}
	}
	if s.boot.reachedBy(t) && !s.overtakenBy(s.boot.at) {
		reach(s.boot)
	}
	if s.forced != nil && s.forced.reachedBy(t) {
		reach(*s.forced)
	}
	if d := s.deletion; d != nil && !t.Before(d.requestedAt) {
		reach(outcome{at: d.requestedAt, status: StatusDeleting})
		if d.end.status != "" && d.end.reachedBy(t) {
			reach(d.end)
		}
	}
	st.powerStatus = powerStatus(st)
	return st
}

// overtakenBy tells whether the server was deleted or forced into a state
// before t, so that it never booted.
func (s *server) overtakenBy(t time.Time) bool {
	return s.deletion != nil && s.deletion.requestedAt.Before(t) ||
		s.forced != nil && s.forced.at.Before(t)
}

// goneAt is when a deletion in progress ends, if it does.
func (s *server) goneAt() (at time.Time, ends bool) {
	if s.deletion == nil || s.deletion.end.status != "" || s.deletion.end.at.IsZero() {
		return time.Time{}, false
	}
	return s.deletion.end.at, true
}

// startDeletion begins to delete, again if an earlier attempt is stuck or has
// failed. One that is going well goes on unchanged.
func (s *server) startDeletion(now time.Time, end outcome) {
	if s.deletion == nil {
		s.deletion = &deletion{requestedAt: now, end: end}
		return
	}
	stuck := s.deletion.end.at.IsZero()
	failed := s.deletion.end.status != "" && s.deletion.end.reachedBy(now)
	if stuck {
		s.deletion.end = end
	}
	if failed {
		s.deletion = &deletion{requestedAt: now, end: end}
	}
}

// viewAt is a copy with everything as of t.
func (s *server) viewAt(t time.Time) Server {
	view, st := s.Server, s.stateAt(t)
	view.Status, view.PowerStatus, view.ErrorMessage = st.status, st.powerStatus, st.message
	view.LaunchedAt, view.UpdatedAt = st.launchedAt, st.updatedAt
	return view
}

func powerStatus(st state) string {
	switch {
	case st.status == StatusError:
		return "ERROR"
	case st.status == StatusActive, st.status == StatusDeleting && !st.launchedAt.IsZero():
		return "RUNNING"
	default:
		return "STOPPED"
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

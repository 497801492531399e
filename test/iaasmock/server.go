// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

// server is a server and its life. What it is at a given time follows from
// that, so that time can be looked up, also in the past.
type server struct {
	Server
	// transitions are the states after the first CREATING, in order of time: those it
	// has reached and those it is on its way to.
	transitions []transition
	// goneAt is when a deletion in progress ends; zero if it does not.
	goneAt time.Time
	// number counts servers in order of creation.
	number int
	// withoutCapacity servers found no room and take none.
	withoutCapacity bool
	// removedAt and lastNICs are set when it is gone.
	removedAt time.Time
	lastNICs  []*nic
}

// transition is a state reached at a time; a zero time is never reached. An empty
// status stands for being gone.
type transition struct {
	at      time.Time
	status  string
	message string
}

// state is what changes by itself in a server.
type state struct {
	status, powerStatus, message string
	launchedAt, updatedAt        time.Time
}

// stateAt is the state at t, which may lie in the past.
func (s *server) stateAt(t time.Time) state {
	st := state{status: StatusCreating, powerStatus: powerStopped, updatedAt: s.UpdatedAt}
	for _, o := range s.transitions {
		if o.at.After(t) {
			break
		}
		st.status, st.message, st.updatedAt = o.status, o.message, later(st.updatedAt, o.at)
		st.powerStatus = powerStatus(o.status, st.powerStatus)
		if o.status == StatusActive && st.launchedAt.IsZero() {
			st.launchedAt = o.at
		}
	}
	return st
}

// setState puts the server into a state now and sets what that leads to. What it was
// on its way to is given up; what it has been stays.
func (s *server) setState(now time.Time, status, message string, end transition) {
	s.transitions = append(s.transitions[:s.countReached(now)], transition{at: now, status: status, message: message})
	s.schedule(end)
}

// schedule sets what the present state ends in.
func (s *server) schedule(end transition) {
	s.goneAt = time.Time{}
	switch {
	case end.at.IsZero():
	case end.status == "":
		s.goneAt = end.at
	default:
		s.transitions = append(s.transitions, end)
	}
}

// countReached counts the states of its life that are not ahead.
func (s *server) countReached(now time.Time) int {
	ahead := func(o transition) bool { return o.at.After(now) }
	if i := slices.IndexFunc(s.transitions, ahead); i >= 0 {
		return i
	}
	return len(s.transitions)
}

// startDeletion begins to delete, again if an earlier attempt is stuck or has
// failed. One that is on its way to an end goes on unchanged.
func (s *server) startDeletion(now time.Time, end transition) {
	underWay := !s.goneAt.IsZero() || s.countReached(now) < len(s.transitions)
	if s.stateAt(now).status == StatusDeleting && underWay {
		return
	}
	s.setState(now, StatusDeleting, "", end)
}

// viewAt is a copy with everything as of t.
func (s *server) viewAt(t time.Time) Server {
	view, st := s.Server, s.stateAt(t)
	view.Status, view.PowerStatus, view.ErrorMessage = st.status, st.powerStatus, st.message
	view.LaunchedAt, view.UpdatedAt = st.launchedAt, st.updatedAt
	return view
}

// powerStatus follows from the status where that says it, otherwise it stays as
// it was: a running server runs while it is stopped or deleted.
func powerStatus(status, before string) string {
	switch status {
	case StatusActive, StatusRescue:
		return powerRunning
	case StatusInactive, StatusDeallocated:
		return powerStopped
	case StatusError:
		return powerError
	default:
		return before
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

// server is a Server with its past and scheduled states, so that its state at any time
// can be computed.
type server struct {
	Server
	// transitions are the states after the first CREATING, in order of time: past and
	// scheduled ones.
	transitions []transition
	// goneAt is when a deletion in progress ends; zero if there is none, or if it never
	// ends.
	goneAt time.Time
	// number counts servers in order of creation.
	number int
	// removedAt and lastNICs are set when the server is removed.
	removedAt time.Time
	lastNICs  []*nic
	// console is the console log, which the API shows from consoleAt on.
	console   string
	consoleAt time.Time
}

// transition is a state and the time when it begins; a zero time never comes. An empty
// status means that the server is gone.
type transition struct {
	at      time.Time
	status  string
	message string
}

// state has the fields of a server that change with time.
type state struct {
	status, powerStatus, message string
	launchedAt, updatedAt        time.Time
}

// stateAt computes the state at t, which may be in the past.
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

// setState sets the state now, drops scheduled ones and schedules end.
func (s *server) setState(now time.Time, status, message string, end transition) {
	s.transitions = append(s.transitions[:s.countReached(now)], transition{at: now, status: status, message: message})
	s.schedule(end)
}

// schedule sets the state, or the removal, that ends the current state.
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

// countReached counts the transitions that have happened by now.
func (s *server) countReached(now time.Time) int {
	scheduled := func(o transition) bool { return o.at.After(now) }
	if i := slices.IndexFunc(s.transitions, scheduled); i >= 0 {
		return i
	}
	return len(s.transitions)
}

// startDeletion starts a deletion, again if an earlier one is stuck or has failed. A
// deletion with a scheduled end goes on unchanged.
func (s *server) startDeletion(now time.Time, end transition) {
	underWay := !s.goneAt.IsZero() || s.countReached(now) < len(s.transitions)
	if s.stateAt(now).status == StatusDeleting && underWay {
		return
	}
	s.setState(now, StatusDeleting, "", end)
}

// viewAt returns a copy with the state at t.
func (s *server) viewAt(t time.Time) Server {
	view, st := s.Server, s.stateAt(t)
	view.Status, view.PowerStatus, view.ErrorMessage = st.status, st.powerStatus, st.message
	view.LaunchedAt, view.UpdatedAt = st.launchedAt, st.updatedAt
	return view
}

// powerStatus returns the power status in this status. A status that does not determine
// it keeps the one before: a running server is RUNNING while STOPPING or DELETING.
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

func (s *server) isBootVolume(id string) bool {
	return s.BootVolume != nil && s.BootVolume.ID == id
}

// deletes reports whether the volume is deleted with the server.
func (s *server) deletes(v *Volume) bool {
	if s.isBootVolume(v.ID) {
		return s.BootVolume.deletedWithServer()
	}
	return v.DeleteOnTermination
}

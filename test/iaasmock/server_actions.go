// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

// action is a change of a server's state that takes time.
type action struct {
	// from are the states in which it is accepted. The API document says only that there
	// is a 409; the states are the mock's choice.
	from []string
	// during and end are the states during and after it.
	during, end string
}

var (
	actionStart = action{from: []string{StatusInactive, StatusDeallocated}, during: StatusStarting, end: StatusActive}
	actionStop  = action{from: []string{StatusActive}, during: StatusStopping, end: StatusInactive}
)

func (c *Cloud) startServer(r *request) (any, *apiError) { return nil, c.act(r, actionStart) }
func (c *Cloud) stopServer(r *request) (any, *apiError)  { return nil, c.act(r, actionStop) }

// act sets the state during the action and schedules the state after it.
func (c *Cloud) act(r *request, a action) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		if !slices.Contains(a.from, s.stateAt(now).status) {
			// Source: the document: 409 of StartServer and StopServer; the states are the mock's choice.
			return conflict()
		}
		end := transition{at: now.Add(c.actionDuration), status: a.end}
		if r.fault.FinalStatus != "" {
			end.status, end.message = r.fault.FinalStatus, r.fault.ErrorMessage
		}
		s.setState(now, a.during, "", end)
		return nil
	})
}

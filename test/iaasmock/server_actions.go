// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

// action is something done to a server that takes time and changes its state.
type action struct {
	// from are the states it is taken in. The API document says only that there
	// is a 409; which states fit is the mock's choice.
	from []string
	// during and end are the states on the way and after it.
	during, end string
}

var (
	actionStart      = action{from: []string{StatusInactive, StatusDeallocated}, during: StatusStarting, end: StatusActive}
	actionStop       = action{from: []string{StatusActive}, during: StatusStopping, end: StatusInactive}
	actionDeallocate = action{from: []string{StatusActive, StatusInactive}, during: StatusDeallocating, end: StatusDeallocated}
	actionRescue     = action{from: []string{StatusActive, StatusInactive}, during: StatusRescuing, end: StatusRescue}
	actionUnrescue   = action{from: []string{StatusRescue}, during: StatusUnrescuing, end: StatusActive}
	actionReboot     = action{from: []string{StatusActive}, during: StatusRebooting, end: StatusActive}
)

func (c *Cloud) startServer(r *request) (any, *apiError)      { return nil, c.act(r, actionStart) }
func (c *Cloud) stopServer(r *request) (any, *apiError)       { return nil, c.act(r, actionStop) }
func (c *Cloud) deallocateServer(r *request) (any, *apiError) { return nil, c.act(r, actionDeallocate) }

// rebootServer takes the same time for a soft and a hard reboot. The document
// names these two, soft being the default.
func (c *Cloud) rebootServer(r *request) (any, *apiError) {
	if kind := r.URL.Query().Get("action"); !slices.Contains([]string{"", "soft", "hard"}, kind) {
		return nil, badRequest("reboot action %q is not supported", kind)
	}
	return nil, c.act(r, actionReboot)
}

func (c *Cloud) act(r *request, a action) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		if !slices.Contains(a.from, s.stateAt(now).status) {
			return conflict()
		}
		c.begin(r, s, now, a)
		return nil
	})
}

// begin puts the server on its way.
func (c *Cloud) begin(r *request, s *server, now time.Time, a action) {
	end := outcome{at: now.Add(c.actionDuration), status: a.end}
	if r.fault.FinalStatus != "" {
		end.status, end.message = r.fault.FinalStatus, r.fault.ErrorMessage
	}
	s.turn(now, a.during, "", end)
}

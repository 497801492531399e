// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// action is a change of a server's state that takes time.
type action struct {
	// from are the states in which it is accepted. The API document says only that there
	// is a 409; the states are the mock's choice.
	from []string
	// during and end are the states during and after it.
	during, end string
	// message is the server's errorMessage after it.
	message string
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

// rebootServer takes the same time for a soft and a hard reboot. The document names these
// two; soft is the default.
func (c *Cloud) rebootServer(r *request) (any, *apiError) {
	if kind := r.URL.Query().Get("action"); !slices.Contains([]string{"", "soft", "hard"}, kind) {
		// Source: the document: possible values of RebootServer's action.
		return nil, badRequest("reboot action %q is not supported", kind)
	}
	return nil, c.act(r, actionReboot)
}

func (c *Cloud) act(r *request, a action) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		if !slices.Contains(a.from, s.stateAt(now).status) {
			// Source: the document: 409 of StartServer and the other actions; the states are the mock's choice.
			return conflict()
		}
		c.startAction(r, s, now, a)
		return nil
	})
}

// startAction sets the state during the action and schedules the state after it.
func (c *Cloud) startAction(r *request, s *server, now time.Time, a action) {
	end := transition{at: now.Add(c.actionDuration), status: a.end, message: a.message}
	if r.fault.FinalStatus != "" {
		end.status, end.message = r.fault.FinalStatus, r.fault.ErrorMessage
	}
	s.setState(now, a.during, "", end)
}

func (c *Cloud) unrescueServer(r *request) (any, *apiError) { return nil, c.act(r, actionUnrescue) }

// rescueServer puts the server into RESCUE. With an unknown or inactive image it ends in
// ERROR.
func (c *Cloud) rescueServer(r *request) (any, *apiError) {
	var payload struct {
		Image string `json:"image"`
	}
	if err := r.decode("RescueServerPayload", schema.RescueServer, &payload); err != nil {
		return nil, err
	}
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		rescue := actionRescue
		_, problem, err := c.sourceSize(r, sourceImage, payload.Image)
		if err != nil {
			return err
		}
		if problem != "" {
			rescue.end, rescue.message = StatusError, problem
		}
		if !slices.Contains(rescue.from, s.stateAt(now).status) {
			// Source: the document: 409 of RescueServer; the states are the mock's choice.
			return conflict()
		}
		c.startAction(r, s, now, rescue)
		return nil
	})
}

// resizeServer changes the machine type at once and ends in the state in which it began.
// Without capacity for the new type the server keeps the old one: OpenStack, too, accepts
// the request first.
func (c *Cloud) resizeServer(r *request) (any, *apiError) {
	var payload struct {
		MachineType string `json:"machineType"`
	}
	if err := r.decode("ResizeServerPayload", schema.ResizeServer, &payload); err != nil {
		return nil, err
	}
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		wanted, ok := c.findMachineType(payload.MachineType)
		if !ok {
			// Source: clients of STACKIT have seen a 400 with this message.
			return badRequest("machine type is not valid")
		}
		if wanted.Name == s.MachineType {
			if err := c.unconfirmed(badRequest("machine type is not valid")); err != nil {
				return err
			}
		}
		status := s.stateAt(now).status
		if status != StatusActive && status != StatusInactive {
			// Source: the document: 409 of ResizeServer; the states are the mock's choice.
			return conflict()
		}
		before, _ := c.findMachineType(s.MachineType)
		more := quotaNeed{vcpus: wanted.VCPUs - before.VCPUs, ram: wanted.RAM - before.RAM}
		if err := c.allowServer(s.ProjectID, s.Region, more); err != nil {
			return err
		}
		if c.hasRoom(wanted.Name, s.AvailabilityZone, s) {
			s.MachineType = wanted.Name
		}
		c.startAction(r, s, now, action{during: StatusResizing, end: status})
		return nil
	})
}

// defaultLogLength is the documented default, in lines.
const defaultLogLength = 2000

// getServerConsole returns a new URL each time. It cannot be opened: names in .invalid do
// not exist.
func (c *Cloud) getServerConsole(r *request) (view any, err *apiError) {
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		if s.stateAt(now).powerStatus != powerRunning {
			if err := c.unconfirmed(badRequest("Instance %s is not ready", s.ID)); err != nil {
				return err
			}
		}
		view = struct {
			URL string `json:"url"`
		}{"https://console.invalid/vnc_auto.html?token=" + c.newID()}
		return nil
	})
	return view, err
}

// getServerLog returns the server's states so far, one a line.
func (c *Cloud) getServerLog(r *request) (view any, err *apiError) {
	length, err := r.logLength()
	if err != nil {
		return nil, err
	}
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		lines := s.log(now)
		if length > 0 && len(lines) > length {
			lines = lines[len(lines)-length:]
		}
		view = struct {
			Output string `json:"output"`
		}{strings.Join(lines, "\n")}
		return nil
	})
	return view, err
}

// log returns the lines of the log, with seconds since the creation as a kernel shows
// them since boot.
func (s *server) log(now time.Time) []string {
	line := func(at time.Time, text string) string {
		return fmt.Sprintf("[%12.6f] %s: %s", at.Sub(s.CreatedAt).Seconds(), s.Name, text)
	}
	lines := []string{line(s.CreatedAt, StatusCreating)}
	for _, o := range s.transitions[:s.countReached(now)] {
		text := o.status
		if o.message != "" {
			text += ": " + o.message
		}
		lines = append(lines, line(o.at, text))
	}
	return lines
}

// logLength reads length; 0 means all lines.
func (r *request) logLength() (int, *apiError) {
	text := r.URL.Query().Get("length")
	if text == "" {
		return defaultLogLength, nil
	}
	length, err := strconv.Atoi(text)
	if err != nil {
		// Source: the document: length is an integer; the message is kin-openapi's.
		return 0, badRequest("parameter %q in query has an error: value %s: an invalid integer: invalid syntax", "length", text)
	}
	if length < 0 {
		// Source: the document: minimum of length; the message is kin-openapi's.
		return 0, badRequest("parameter %q in query has an error: number must be at least 0", "length")
	}
	return length, nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// defaultLogLength is in lines, as documented.
const defaultLogLength = 2000

// getServerConsole gives a new URL each time. It leads nowhere: names in
// .invalid cannot exist.
func (c *Cloud) getServerConsole(r *request) (view any, err *apiError) {
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		if s.stateAt(now).powerStatus != powerRunning {
			return badRequest("Instance %s is not ready", s.ID)
		}
		view = struct {
			URL string `json:"url"`
		}{"https://console.invalid/vnc_auto.html?token=" + c.newID()}
		return nil
	})
	return view, err
}

// getServerLog tells what the server has been through, a line each.
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

// log shows seconds since the server was created, as a kernel does since boot.
func (s *server) log(now time.Time) []string {
	line := func(at time.Time, text string) string {
		return fmt.Sprintf("[%12.6f] %s: %s", at.Sub(s.CreatedAt).Seconds(), s.Name, text)
	}
	lines := []string{line(s.CreatedAt, StatusCreating)}
	for _, o := range s.life[:s.reached(now)] {
		text := o.status
		if o.message != "" {
			text += ": " + o.message
		}
		lines = append(lines, line(o.at, text))
	}
	return lines
}

// logLength reads length; 0 asks for everything.
func (r *request) logLength() (int, *apiError) {
	text := r.URL.Query().Get("length")
	if text == "" {
		return defaultLogLength, nil
	}
	length, err := strconv.Atoi(text)
	if err != nil {
		return 0, badRequest("parameter %q in query has an error: value %s: an invalid integer: invalid syntax", "length", text)
	}
	if length < 0 {
		return 0, badRequest("parameter %q in query has an error: number must be at least 0", "length")
	}
	return length, nil
}

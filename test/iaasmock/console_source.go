// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/console"
)

// serveConsole answers with the page or one of its files.
func serveConsole(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeAdmin(w, http.StatusMethodNotAllowed, newError(http.StatusMethodNotAllowed, "method not allowed"))
		return
	}
	if !console.Serve(w, r) {
		writeAdmin(w, http.StatusNotFound, notFound("file"))
	}
}

func (c *Cloud) serveEvents(w http.ResponseWriter, r *http.Request) {
	console.Stream(w, r, consoleSource{c})
}

// consoleSource is the Cloud as the console reads it.
type consoleSource struct{ *Cloud }

var _ console.Source = consoleSource{}

// Now implements console.Source.
func (s consoleSource) Now() time.Time { return s.clock.Now() }

// Wait implements console.Source.
func (s consoleSource) Wait(ctx context.Context, d time.Duration) bool { return s.wait(ctx, d) }

// CallsSince implements console.Source.
func (s consoleSource) CallsSince(known, limit int) (json.RawMessage, int) {
	calls, total := s.calls.since(known, limit)
	if len(calls) == 0 {
		return nil, total
	}
	encoded, err := json.Marshal(calls)
	if err != nil {
		return nil, total
	}
	return encoded, total
}

// ActiveFaults implements console.Source.
func (s consoleSource) ActiveFaults() json.RawMessage {
	encoded, err := json.Marshal(s.Faults())
	if err != nil {
		return nil
	}
	return encoded
}

// Sample implements console.Source. The rows share their labels with the Cloud, which
// replaces such maps instead of writing to them.
func (s consoleSource) Sample() (rows []console.Row, counted console.Counters) {
	c := s.Cloud
	c.locked(func(now time.Time) {
		for server := range c.servers.each() {
			rows = append(rows, c.consoleRow(server, now))
		}
		counted = console.Counters{NICs: c.nics.count(), Volumes: c.volumes.count(), History: c.totals}
	})
	return rows, counted
}

func (c *Cloud) consoleRow(s *server, now time.Time) console.Row {
	at := s.stateAt(now)
	row := console.Row{Labels: s.Labels, Fields: console.Fields{
		ID: s.ID, Number: s.number, ProjectID: s.ProjectID, Region: s.Region, Name: s.Name,
		Status: at.status, PowerStatus: at.powerStatus, ErrorMessage: at.message,
		MachineType: s.MachineType, AvailabilityZone: s.AvailabilityZone,
		CreatedAt: s.CreatedAt.UnixMilli(), UpdatedAt: at.updatedAt.UnixMilli(),
	}}
	if len(s.NICIDs) > 0 {
		if nic, ok := c.nics.get(s.NICIDs[0]); ok {
			shown := nic.viewAt(now)
			if row.Address = shown.IPv4; row.Address == "" {
				row.Address = shown.IPv6
			}
		}
	}
	return row
}

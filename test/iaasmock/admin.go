// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/console"
)

// adminState is what GET /admin/state shows.
type adminState struct {
	Servers []Server       `json:"servers"`
	NICs    []NIC          `json:"nics"`
	Volumes []Volume       `json:"volumes"`
	Calls   map[string]int `json:"calls"`
	History Totals         `json:"history"`
}

const adminPrefix = "/admin/"

// adminHandler serves /admin/. Faults do not apply to it.
func (c *Cloud) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/state", c.serveState)
	mux.HandleFunc("GET /admin/faults", c.serveFaults)
	mux.HandleFunc("POST /admin/faults", c.serveInject)
	mux.HandleFunc("DELETE /admin/faults", changing(c.serveClearFaults))
	mux.HandleFunc("DELETE /admin/faults/{id}", changing(c.serveRemoveFault))
	mux.HandleFunc("GET /admin/faults/presets", c.servePresets)
	mux.HandleFunc("GET /admin/events", c.serveEvents)
	mux.HandleFunc("GET /admin/calls", c.serveCalls)
	mux.HandleFunc("GET /admin/servers/{id}", c.serveServer)
	mux.HandleFunc("POST /admin/servers/{id}/status", changing(c.serveSetStatus))
	mux.HandleFunc("POST /admin/servers/{id}/stop", changing(c.serveStop))
	mux.HandleFunc("DELETE /admin/servers/{id}", changing(c.serveRemove))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if crossSite(r) {
			refuse(w, newError(http.StatusForbidden, "requests from pages of other sites are refused"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// crossSite reports whether a page of another origin made the request. Programs send
// neither header.
func crossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(from.Host, r.Host)
}

func (c *Cloud) serveState(w http.ResponseWriter, _ *http.Request) {
	writeAdmin(w, http.StatusOK, adminState{
		Servers: orEmpty(c.Servers()), NICs: orEmpty(c.NICs()), Volumes: orEmpty(c.Volumes()),
		Calls: c.CallCounts(), History: c.History(),
	})
}

func (c *Cloud) serveFaults(w http.ResponseWriter, _ *http.Request) {
	writeAdmin(w, http.StatusOK, items(c.Faults()))
}

func (c *Cloud) servePresets(w http.ResponseWriter, _ *http.Request) {
	writeAdmin(w, http.StatusOK, items(Presets()))
}

func (c *Cloud) serveInject(w http.ResponseWriter, r *http.Request) {
	body, refused := readBody(r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	var f Fault
	if err := f.UnmarshalJSON(body); err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	writeAdmin(w, http.StatusCreated, c.inject(f))
}

func (c *Cloud) serveClearFaults(*http.Request) *apiError {
	c.ClearFaults()
	return nil
}

func (c *Cloud) serveRemoveFault(r *http.Request) *apiError {
	if id := r.PathValue("id"); !c.faults.Remove(id) {
		return notFound("fault " + id)
	}
	return nil
}

const defaultCallLimit = 100

// serveCalls answers with the last calls, the newest first.
func (c *Cloud) serveCalls(w http.ResponseWriter, r *http.Request) {
	limit := defaultCallLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > keptCalls {
			refuse(w, badRequest("limit: invalid %q; want a number from 1 to %d", text, keptCalls))
			return
		}
	}
	calls, _ := c.calls.since(0, limit)
	slices.Reverse(calls)
	writeAdmin(w, http.StatusOK, items(calls))
}

// statusForm is the form of states. The API document lists some; SetServerStatus accepts
// any.
var statusForm = regexp.MustCompile(`^[A-Z][A-Z_]{0,62}$`)

// serverDetails is the answer of GET /admin/servers/{id}: everything but the content of
// the user data, which may hold credentials.
type serverDetails struct {
	Server
	// UserDataSize is in bytes, decoded.
	UserDataSize int         `json:"userDataSize"`
	NICs         []NIC       `json:"nics"`
	Volumes      []Volume    `json:"volumes"`
	Timeline     []milestone `json:"timeline"`
}

// milestone is a state of a server and the time when it began, or will begin.
type milestone struct {
	At           time.Time `json:"at"`
	Status       string    `json:"status"`
	ErrorMessage string    `json:"errorMessage,omitempty"`
	// Ahead is true for a scheduled state not yet reached.
	Ahead bool `json:"ahead,omitempty"`
}

// gone is the last entry of a deleted server's timeline. The API has no such state.
const gone = "GONE"

func (c *Cloud) serveServer(w http.ResponseWriter, r *http.Request) {
	details, ok := c.serverDetails(r.PathValue("id"))
	if !ok {
		refuse(w, notFound(namedServer.what))
		return
	}
	writeAdmin(w, http.StatusOK, details)
}

func (c *Cloud) serverDetails(id string) (details serverDetails, ok bool) {
	c.locked(func(now time.Time) {
		var s *server
		if s, ok = c.servers.get(id); !ok {
			return
		}
		details = serverDetails{
			Server: s.viewAt(now).clone(), UserDataSize: len(s.UserData),
			NICs: []NIC{}, Volumes: []Volume{}, Timeline: s.timeline(now),
		}
		details.UserData = nil
		for _, nic := range c.serverNICs(s) {
			details.NICs = append(details.NICs, nic.viewAt(now).clone())
		}
		for _, volumeID := range s.VolumeIDs {
			if volume, attached := c.volumes.get(volumeID); attached {
				details.Volumes = append(details.Volumes, volume.clone())
			}
		}
	})
	return details, ok
}

// timeline returns the server's states in order, scheduled ones included.
func (s *server) timeline(now time.Time) []milestone {
	line := []milestone{{At: s.CreatedAt, Status: StatusCreating}}
	for _, o := range s.transitions {
		line = append(line, milestone{At: o.at, Status: o.status, ErrorMessage: o.message, Ahead: o.at.After(now)})
	}
	if !s.goneAt.IsZero() {
		line = append(line, milestone{At: s.goneAt, Status: gone, Ahead: true})
	}
	return line
}

// serveSetStatus is SetServerStatus.
func (c *Cloud) serveSetStatus(r *http.Request) *apiError {
	var wanted struct {
		Status       string `json:"status"`
		ErrorMessage string `json:"errorMessage"`
	}
	if err := readAction(r, &wanted); err != nil {
		return err
	}
	if !statusForm.MatchString(wanted.Status) {
		return badRequest("status: invalid %q; want a state such as %s", wanted.Status, StatusError)
	}
	if c.SetServerStatus(r.PathValue("id"), wanted.Status, wanted.ErrorMessage) != nil {
		return notFound(namedServer.what)
	}
	return nil
}

// serveRemove is RemoveServer.
func (c *Cloud) serveRemove(r *http.Request) *apiError {
	if c.RemoveServer(r.PathValue("id")) != nil {
		return notFound(namedServer.what)
	}
	return nil
}

// serveStop does what StopServer does, without faults and without counting a call.
func (c *Cloud) serveStop(r *http.Request) *apiError {
	found, ok := c.Server(r.PathValue("id"))
	if !ok {
		return notFound(namedServer.what)
	}
	vars := map[string]string{"projectId": found.ProjectID, "region": found.Region, "serverId": found.ID}
	_, err := c.stopServer(&request{Request: r, vars: vars})
	return err
}

// changing answers 204 if the change is made.
func changing(change func(*http.Request) *apiError) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := change(r); err != nil {
			refuse(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func writeAdmin(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonContentType)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(body)
}

// refuse answers with an error in the API's form.
func refuse(w http.ResponseWriter, err *apiError) { writeAdmin(w, err.Code, err) }

// readAction decodes the body of an action; unknown fields are refused.
func readAction(r *http.Request, into any) *apiError {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badRequest("body: %v", err)
	}
	if decoder.More() {
		return badRequest("body: more than one value")
	}
	return nil
}

// serveConsole answers with the page or one of its files.
func serveConsole(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, newError(http.StatusMethodNotAllowed, "method not allowed"))
		return
	}
	if !console.Serve(w, r) {
		refuse(w, notFound("file"))
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
	encoded, _ := json.Marshal(calls) // texts, numbers and times
	return encoded, total
}

// ActiveFaults implements console.Source.
func (s consoleSource) ActiveFaults() json.RawMessage {
	encoded, _ := json.Marshal(s.Faults()) // texts, numbers and times
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	adminPrefix   = "/admin/"
	consolePrefix = "/console/"
)

// consoleFiles are plain HTML, CSS and JavaScript, served unchanged.
//
//go:embed console
var consoleFiles embed.FS

// consolePolicy makes the browser load only the page's own files, and run no script in a
// server's name or an error message.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// adminHandler serves /admin/, /healthz and the console. Faults do not apply to it.
func (c *Cloud) adminHandler() http.Handler {
	admin := http.NewServeMux()
	for pattern, shown := range map[string]func() any{
		"GET /admin/state":          func() any { return c.state() },
		"GET /admin/faults":         func() any { return items(c.Faults()) },
		"GET /admin/faults/presets": func() any { return items(Presets()) },
	} {
		admin.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { writeAdmin(w, http.StatusOK, shown()) })
	}
	admin.HandleFunc("POST /admin/faults", c.serveInject)
	admin.HandleFunc("DELETE /admin/faults", changing(c.serveClearFaults))
	admin.HandleFunc("DELETE /admin/faults/{id}", changing(c.serveRemoveFault))
	admin.HandleFunc("POST /admin/servers/{id}/status", changing(c.serveSetStatus))
	admin.HandleFunc("DELETE /admin/servers/{id}", changing(c.serveRemove))

	files := http.NewServeMux()
	files.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, consoleFiles, "console/index.html")
	})
	files.Handle("GET "+consolePrefix, http.FileServerFS(consoleFiles))
	files.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, adminPrefix) {
			w.Header().Set("Content-Security-Policy", consolePolicy)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			files.ServeHTTP(w, r)
			return
		}
		if crossSite(r) {
			refuse(w, newError(http.StatusForbidden, "requests from pages of other sites are refused"))
			return
		}
		admin.ServeHTTP(w, r)
	})
}

// crossSite reports whether a page of another origin made the request. Non-browser clients send
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

// adminState is the answer of GET /admin/state.
type adminState struct {
	// Now is the time of the mock's clock.
	Now     time.Time     `json:"now"`
	Faults  []ActiveFault `json:"faults"`
	History Totals        `json:"history"`
	// Calls counts the calls since ResetCalls by operation. CallsTotal counts all calls, including
	// those before ResetCalls.
	Calls      map[string]int `json:"calls"`
	CallsTotal int            `json:"callsTotal"`
	// LastCalls are the most recent calls, the oldest first.
	LastCalls []Call        `json:"lastCalls"`
	Servers   []serverState `json:"servers"`
	NICs      []NIC         `json:"nics"`
	Volumes   []Volume      `json:"volumes"`
}

// serverState is a server without the content of its user data, which may hold credentials.
type serverState struct {
	Server
	// UserDataSize is the size of the decoded user data, in bytes.
	UserDataSize int         `json:"userDataSize"`
	Timeline     []milestone `json:"timeline"`
}

// milestone is a state of a server with the time of its start, in the past or future.
type milestone struct {
	At           time.Time `json:"at"`
	Status       string    `json:"status"`
	ErrorMessage string    `json:"errorMessage,omitempty"`
	// Ahead is true for a scheduled state that the server has not reached yet.
	Ahead bool `json:"ahead,omitempty"`
}

// shownCalls is the number of calls in GET /admin/state.
const shownCalls = 200

func (c *Cloud) state() adminState {
	shown := adminState{
		Faults: c.Faults(), Calls: c.CallCounts(), Servers: []serverState{}, NICs: []NIC{}, Volumes: []Volume{},
	}
	shown.LastCalls, shown.CallsTotal = c.calls.last(shownCalls)
	c.locked(func(now time.Time) {
		shown.Now, shown.History = now, c.totals
		for s := range c.servers.each() {
			view := serverState{Server: s.viewAt(now), UserDataSize: len(s.UserData), Timeline: s.timeline(now)}
			view.UserData = nil
			shown.Servers = append(shown.Servers, view)
		}
		for nic := range c.nics.each() {
			shown.NICs = append(shown.NICs, nic.viewAt(now))
		}
		for volume := range c.volumes.each() {
			shown.Volumes = append(shown.Volumes, *volume)
		}
	})
	return shown
}

// gone is the last entry of a deleted server's timeline. The API has no such state.
const gone = "GONE"

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

func (c *Cloud) serveInject(w http.ResponseWriter, r *http.Request) {
	var f Fault
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = f.UnmarshalJSON(body)
	}
	if err != nil {
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

// serveSetStatus serves SetServerStatus.
func (c *Cloud) serveSetStatus(r *http.Request) *apiError {
	var wanted struct{ Status, ErrorMessage string }
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return badRequest(`the body must be JSON such as {"status":"ERROR","errorMessage":"no luck"}: %v`, err)
	}
	if wanted.Status == "" {
		return badRequest("status is missing; want a state such as %s", StatusError)
	}
	if c.SetServerStatus(r.PathValue("id"), wanted.Status, wanted.ErrorMessage) != nil {
		return notFound(namedServer.what)
	}
	return nil
}

// serveRemove serves RemoveServer.
func (c *Cloud) serveRemove(r *http.Request) *apiError {
	if c.RemoveServer(r.PathValue("id")) != nil {
		return notFound(namedServer.what)
	}
	return nil
}

// changing returns a handler that makes a change and answers 204 on success.
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

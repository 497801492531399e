// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"io"
	"net/http"
)

const adminPrefix = "/admin/"

// adminHandler serves /admin/ and /healthz. Faults do not apply to them.
func (c *Cloud) adminHandler() http.Handler {
	admin := http.NewServeMux()
	admin.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	admin.HandleFunc("GET /admin/state", func(w http.ResponseWriter, _ *http.Request) {
		writeAdmin(w, http.StatusOK, c.state())
	})
	admin.HandleFunc("GET /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		writeAdmin(w, http.StatusOK, items(c.Faults()))
	})
	admin.HandleFunc("POST /admin/faults", c.serveInject)
	admin.HandleFunc("DELETE /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		c.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	admin.HandleFunc("DELETE /admin/servers/{id}", c.serveRemove)
	return admin
}

// adminState is the answer of GET /admin/state.
type adminState struct {
	Faults []ActiveFault `json:"faults"`
	// Calls counts the calls since ResetCalls by operation.
	Calls map[string]int `json:"calls"`
	// LastCalls are the most recent calls, the oldest first.
	LastCalls []Call   `json:"lastCalls"`
	Servers   []Server `json:"servers"`
	NICs      []NIC    `json:"nics"`
	Volumes   []Volume `json:"volumes"`
}

// shownCalls is the number of calls in GET /admin/state.
const shownCalls = 200

// state returns the whole state, without user data, which may hold credentials.
func (c *Cloud) state() adminState {
	servers := c.Servers()
	for i := range servers {
		servers[i].UserData = nil
	}
	return adminState{
		Faults: c.Faults(), Calls: c.CallCounts(), LastCalls: c.calls.last(shownCalls),
		Servers: orEmpty(servers), NICs: orEmpty(c.NICs()), Volumes: orEmpty(c.Volumes()),
	}
}

func (c *Cloud) serveInject(w http.ResponseWriter, r *http.Request) {
	var f Fault
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = f.UnmarshalJSON(body)
	}
	if err != nil {
		refusal := badRequest("%v", err)
		writeAdmin(w, refusal.Code, refusal)
		return
	}
	writeAdmin(w, http.StatusCreated, c.inject(f))
}

// serveRemove serves RemoveServer.
func (c *Cloud) serveRemove(w http.ResponseWriter, r *http.Request) {
	if c.RemoveServer(r.PathValue("id")) != nil {
		refusal := notFound(namedServer.what)
		writeAdmin(w, refusal.Code, refusal)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func writeAdmin(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonContentType)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(body)
}

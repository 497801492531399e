// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
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
	mux.HandleFunc("DELETE /admin/faults", c.serveClearFaults)
	mux.HandleFunc("DELETE /admin/faults/{id}", c.serveRemoveFault)
	mux.HandleFunc("GET /admin/faults/presets", c.servePresets)
	mux.HandleFunc("GET /admin/events", c.serveEvents)
	mux.HandleFunc("GET /admin/calls", c.serveCalls)
	mux.HandleFunc("GET /admin/servers/{id}", c.serveServer)
	mux.HandleFunc("POST /admin/servers/{id}/status", c.serveSetStatus)
	mux.HandleFunc("POST /admin/servers/{id}/stop", c.serveStop)
	mux.HandleFunc("POST /admin/servers/{id}/console-log", c.serveSetConsoleLog)
	mux.HandleFunc("POST /admin/servers/{id}/maintenance-window", c.serveSetMaintenanceWindow)
	mux.HandleFunc("DELETE /admin/servers/{id}", c.serveRemove)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if crossSite(r) {
			writeAdmin(w, http.StatusForbidden, newError(http.StatusForbidden, "requests from pages of other sites are refused"))
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
		writeAdmin(w, refused.Code, refused)
		return
	}
	var f Fault
	if err := f.UnmarshalJSON(body); err != nil {
		writeAdmin(w, http.StatusBadRequest, badRequest("%v", err))
		return
	}
	writeAdmin(w, http.StatusCreated, c.inject(f))
}

func (c *Cloud) serveClearFaults(w http.ResponseWriter, _ *http.Request) {
	c.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

func (c *Cloud) serveRemoveFault(w http.ResponseWriter, r *http.Request) {
	if !c.RemoveFault(r.PathValue("id")) {
		writeAdmin(w, http.StatusNotFound, notFound("fault "+r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
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

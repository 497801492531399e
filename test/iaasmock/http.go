// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxBody bounds a request's body. The API documents no limit.
const maxBody = 4 << 20

// ServeHTTP answers the IaaS API under /v2, the token endpoint at POST /token,
// the state as JSON at GET /admin/state, and GET /healthz.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "ok\n")
	case "/admin/state":
		c.serveState(w, r)
	default:
		c.serveAPI(w, r)
	}
}

// serveAPI is the one way of every call: it waits, meets its fault, is carried
// out, is written down, and is answered.
func (c *Cloud) serveAPI(w http.ResponseWriter, r *http.Request) {
	start := c.clock.Now()
	r.Header.Set(requestIDHeader, newRequestID()) // as the gateway does, whatever the client sent
	route, vars, miss := matchRoute(r)
	fault := c.faults.take(route.operation, r)

	reply := answer{drop: true}
	if c.wait(r.Context(), c.latency()+fault.Delay) {
		reply = c.reply(route, vars, miss, fault, r)
		if !c.wait(r.Context(), fault.AnswerDelay) {
			reply = answer{drop: true}
		}
	}

	call := Call{
		Operation: route.operation, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		RequestID: r.Header.Get(requestIDHeader), StartedAt: start, Duration: c.clock.Since(start),
	}
	if !reply.drop {
		call.Status = reply.status
	}
	c.calls.add(call)
	if reply.drop {
		dropConnection(w)
		return
	}
	writeAnswer(w, call.RequestID, reply)
}

// reply applies the fault around the call.
func (c *Cloud) reply(route route, vars map[string]string, miss *apiError, fault Fault, r *http.Request) answer {
	if fault.DropBefore {
		return answer{drop: true}
	}
	var reply answer
	if !fault.replacesAnswer() || fault.Executed {
		reply = c.execute(route, vars, miss, fault, r)
	}
	if fault.DropAfter {
		return answer{drop: true}
	}
	if fault.replacesAnswer() {
		reply = fault.answer()
	}
	reply.header = fault.Header
	return reply
}

// execute is the call itself, without any fault.
func (c *Cloud) execute(route route, vars map[string]string, miss *apiError, fault Fault, r *http.Request) answer {
	if miss != nil {
		return errorAnswer(miss)
	}
	body, err := readBody(r)
	if err != nil {
		return errorAnswer(err)
	}
	req := &request{Request: r, vars: vars, body: body, fault: fault, strictLabels: c.limits.strictLabels}
	if !route.open {
		if err := c.admit(req); err != nil {
			return errorAnswer(err)
		}
	}
	result, err := route.handle(c, req)
	if err != nil {
		return errorAnswer(err)
	}
	reply := answer{status: route.status}
	if result != nil {
		reply = jsonAnswer(route.status, result)
	}
	c.remember(req, route, reply)
	return reply
}

// admit checks the token, then the path's project and region.
func (c *Cloud) admit(req *request) *apiError {
	key, known := c.tokens.authenticate(req.Request)
	if c.authenticate && !known {
		return unauthorized()
	}
	if err := checkPathVars(req.vars); err != nil {
		return err
	}
	if id, ok := req.vars["projectId"]; ok {
		project, known := c.project(id)
		if !known {
			return notFound("project")
		}
		if c.authenticate && key.projectID != id {
			return forbidden()
		}
		// The same string everywhere compares without reading it: lists compare
		// it with that of every resource there is.
		req.vars["projectId"] = project.ID
	}
	if region, ok := req.vars["region"]; ok {
		if _, known := c.catalogue.Regions[region]; !known {
			return notFound("region")
		}
	}
	return nil
}

func (c *Cloud) latency() time.Duration { return between(c.latencyMin, c.latencyMax) }

// between is a random duration from least to less than most.
func between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + rand.N(most-least)
}

// wait is false if the client left before the time was over.
func (c *Cloud) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

func readBody(r *http.Request) ([]byte, *apiError) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, newError(http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	}
	if err != nil {
		return nil, badRequest("request body has an error: %v", err)
	}
	return body, nil
}

func writeAnswer(w http.ResponseWriter, requestID string, reply answer) {
	header := w.Header()
	header.Set(requestIDHeader, requestID)
	if reply.contentType != "" {
		header.Set("Content-Type", reply.contentType)
	}
	maps.Copy(header, reply.header)
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body)
}

// dropConnection ends the connection with a reset, so that the client cannot
// take it for an empty answer.
func dropConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: net/http resets the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func newRequestID() string {
	return "req-" + strings.ReplaceAll(uuid.NewString(), "-", "")
}

// adminState is what GET /admin/state shows.
type adminState struct {
	Servers []Server `json:"servers"`
	NICs    []NIC    `json:"nics"`
	Volumes []Volume `json:"volumes"`
	// PublicIPs include those that lead nowhere.
	PublicIPs []PublicIP     `json:"publicIps"`
	Calls     map[string]int `json:"calls"`
	History   Totals         `json:"history"`
}

func (c *Cloud) serveState(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", jsonContentType)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(adminState{
		Servers: orEmpty(c.Servers()), NICs: orEmpty(c.NICs()), Volumes: orEmpty(c.Volumes()),
		PublicIPs: orEmpty(c.PublicIPs()),
		Calls:     c.CallCounts(), History: c.History(),
	})
}

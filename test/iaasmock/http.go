// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/console"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// ServeHTTP serves the IaaS API under /v2, the token endpoints at POST /token and
// /oauth/v2/token, a part of the resource manager under /resource-manager, the state as JSON
// at GET /admin/state, faults at /admin/faults, the console at GET / with its files and calls
// below /console/ and /admin/, and GET /healthz.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "ok\n")
	case strings.HasPrefix(r.URL.Path, adminPrefix):
		c.admin.ServeHTTP(w, r)
	case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, console.Prefix):
		serveConsole(w, r)
	default:
		c.serveAPI(w, r)
	}
}

// serveAPI handles every call: choose faults, wait (latency and delays), execute, wait
// for AnswerDelay, log, answer.
func (c *Cloud) serveAPI(w http.ResponseWriter, r *http.Request) {
	start := c.clock.Now()
	r.Header.Set(requestIDHeader, c.newRequestID()) // as the gateway does, whatever the client sent
	body, unread := readBody(r)
	called, miss := find(r)
	if miss == nil {
		miss = unread
	}
	incident := c.faults.Take(c.faultCall(called.name, called.vars(), r, body))

	reply := answer{drop: true}
	if c.wait(r.Context(), c.latency()+incident.TotalDelay) {
		reply = c.reply(called, miss, &request{Request: r, vars: called.vars(), body: body, fault: incident.Fault})
		if !c.waitBeforeAnswer(r.Context(), &incident) {
			reply = answer{drop: true}
		}
	}

	call := Call{
		Operation: called.name, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		RequestID: r.Header.Get(requestIDHeader), StartedAt: start, Duration: c.clock.Since(start), Faults: incident.Faults,
		Replaced: reply.replaced,
	}
	if !reply.drop {
		call.Status = reply.status
	}
	c.calls.add(call)
	call.note(r.Context())
	if reply.drop {
		dropConnection(w)
		return
	}
	writeAnswer(w, call.RequestID, reply)
}

// reply executes the call, unless the fault prevents it, and returns the answer to send.
func (c *Cloud) reply(called operation, miss *apiError, req *request) answer {
	fault := &req.fault
	if fault.DropBefore {
		return answer{drop: true}
	}
	var reply answer
	if !fault.ReplacesAnswer() || fault.Executed {
		reply = c.execute(called, miss, req)
	}
	if fault.ReplacesAnswer() {
		reply = faultAnswer(fault)
		reply.replaced = true
	}
	reply.header = fault.Header
	reply.half = fault.HalfAnswer
	reply.drop = fault.DropAfter || reply.half && len(reply.body) == 0
	return reply
}

// waitBeforeAnswer waits for AnswerDelay, or for ever with NeverAnswers. It is false if
// the client disconnected first.
func (c *Cloud) waitBeforeAnswer(ctx context.Context, incident *fault.Incident) bool {
	if incident.NeverAnswers {
		<-ctx.Done()
		return false
	}
	return c.wait(ctx, incident.TotalAnswerDelay)
}

// execute carries the call out, without delays and replaced answers.
func (c *Cloud) execute(called operation, miss *apiError, req *request) answer {
	if miss != nil {
		return errorAnswer(miss)
	}
	if called.input != nil {
		if err := c.admit(called, req); err != nil {
			return errorAnswer(err)
		}
	}
	if missing := hidden(req.vars); missing != nil && req.fault.EmptyProject {
		return errorAnswer(missing)
	}
	result, err := called.handle(c, req)
	if req.fault.ForbiddenAfterDelete && isLeaving(result, err) {
		err = forbidden()
	}
	if err != nil {
		return errorAnswer(err)
	}
	reply := answer{status: called.status}
	if things, isList := result.(list); isList {
		result = c.showList(things, &req.fault)
	}
	if result != nil {
		reply = jsonAnswer(called.status, result)
	}
	return reply
}

// admit checks the token, then the parameters and the body, then project and region.
func (c *Cloud) admit(called operation, req *request) *apiError {
	keyProject, known := c.tokens.Authenticate(req.Request)
	if c.authenticate && !known {
		return unauthorized()
	}
	if err := called.check(req.body); err != nil {
		return err
	}
	if id, ok := req.vars["projectId"]; ok {
		project, known := c.project(id)
		if !known {
			return notFound("project")
		}
		if c.authenticate && keyProject != id {
			return forbidden()
		}
		// Use the catalogue's string: == is quick on the same pointer, and lists compare
		// it with every resource's.
		req.vars["projectId"] = project.ID
	}
	if region, ok := req.vars["region"]; ok {
		if _, known := c.catalogue.Regions[region]; !known {
			return notFound("region")
		}
	}
	return nil
}

func (c *Cloud) latency() time.Duration {
	return c.latencyMin + c.latencies.spread(c.latencyMax-c.latencyMin, DelayUniform)
}

func (c *Cloud) newRequestID() string {
	return "req-" + strings.ReplaceAll(c.ids.uuid(), "-", "")
}

// showList empties or cuts off the list as the fault says, and applies WithNullLists.
func (c *Cloud) showList(things list, f *Fault) list {
	all := reflect.ValueOf(things.Items)
	switch {
	case f.EmptyList, f.EmptyProject:
		things = items([]any{})
	case f.CutOffAt > 0 && f.CutOffAt < all.Len():
		things.Items = all.Slice(0, f.CutOffAt).Interface()
	}
	if c.nullLists && reflect.ValueOf(things.Items).Len() == 0 {
		things.Items = nil
	}
	return things
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// ServeHTTP serves a request by its path:
//
//	/v2/...                                 the IaaS API
//	POST /token, POST /oauth/v2/token       the token endpoints
//	GET /admin/state                        the state, as JSON
//	/admin/faults, DELETE /admin/servers/   faults, and the removal of a server
//	GET /healthz                            always "ok"
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || strings.HasPrefix(r.URL.Path, adminPrefix) {
		c.admin.ServeHTTP(w, r)
		return
	}
	c.serveAPI(w, r)
}

// serveAPI handles every call: choose faults, wait (latency and delays), execute, wait
// for AnswerDelay, log, answer.
func (c *Cloud) serveAPI(w http.ResponseWriter, r *http.Request) {
	start := c.clock.Now()
	// As the gateway does, in place of the client's.
	r.Header.Set(requestIDHeader, "req-"+strings.ReplaceAll(c.random.uuid(), "-", ""))
	called, miss := find(r)
	body, err := io.ReadAll(r.Body)
	if miss == nil && err != nil {
		// Source: none; the client has disconnected, there is nothing to accept.
		miss = badRequest("request body has an error: %v", err)
	}
	incident := c.faults.Take(c.faultCall(called.name, called.vars, r, body))

	reply := answer{drop: true}
	latency := c.latencyMin + c.random.spread(c.latencyMax-c.latencyMin)
	if c.wait(r.Context(), latency+incident.TotalDelay) {
		reply = c.reply(called, miss, &request{Request: r, vars: called.vars, body: body, fault: incident.Fault})
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
	if fault.Status == 0 || fault.Executed {
		reply = c.execute(called, miss, req)
	}
	if fault.Status != 0 {
		reply = faultAnswer(fault)
		reply.replaced = true
	}
	reply.header = fault.Header
	reply.half = fault.HalfAnswer
	reply.drop = fault.DropAfter || reply.half && len(reply.body) == 0
	return reply
}

// waitBeforeAnswer waits for AnswerDelay, or forever with NeverAnswers. It returns false if
// the client disconnected first.
func (c *Cloud) waitBeforeAnswer(ctx context.Context, incident *fault.Incident) bool {
	if incident.NeverAnswers {
		<-ctx.Done()
		return false
	}
	return c.wait(ctx, incident.TotalAnswerDelay)
}

// execute executes the call, without delays and replaced answers.
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
	if err != nil {
		return errorAnswer(err)
	}
	reply := answer{status: called.statusOfSuccess()}
	if things, isList := result.(list); isList {
		result = showList(things, &req.fault)
	}
	if result != nil {
		reply = jsonAnswer(reply.status, result)
	}
	return reply
}

// admit checks the token, then the parameters and the body, then project and region.
func (c *Cloud) admit(called operation, req *request) *apiError {
	keyProject, known := c.authenticateCall(req.Request)
	if c.authenticate && !known {
		return unauthorized()
	}
	if message := openapi.Refusal(called.input, req.body); message != "" {
		// Source: the document, with kin-openapi's message, which is STACKIT's: see
		// terraform-provider-stackit issue 1501.
		return badRequest("%s", message)
	}
	if id, ok := req.vars["projectId"]; ok {
		if !slices.Contains(c.catalogue.Projects, id) || c.authenticate && keyProject != id {
			return forbidden()
		}
	}
	if region, ok := req.vars["region"]; ok && c.catalogue.Regions[region] == nil {
		return notFound("region")
	}
	return nil
}

// showList empties or truncates the list as the fault requires.
func showList(things list, f *Fault) list {
	switch {
	case f.EmptyList, f.EmptyProject:
		things.Items = []any{}
	case f.CutOffAt > 0:
		things.Items = things.Items[:min(f.CutOffAt, len(things.Items))]
	}
	return things
}

// request is a call on its way to a handler.
type request struct {
	*http.Request
	vars  map[string]string
	body  []byte
	fault fault.Fault
}

func (r *request) project() string { return r.vars["projectId"] }
func (r *request) region() string  { return r.vars["region"] }

// selector parses label_selector, a Kubernetes selector. Known clients send no other form, and
// the selectors that STACKIT refused for them are no valid Kubernetes selectors.
func (r *request) selector() (labels.Selector, *apiError) {
	if r.fault.IgnoreSelector {
		return labels.Everything(), nil
	}
	selector, err := labels.Parse(r.URL.Query().Get("label_selector"))
	if err != nil {
		// Source: pull request 88 of the public STACKIT provider for
		// machine-controller-manager saw this message, which is Kubernetes', for a trailing
		// comma.
		return nil, badRequest("invalid label_selector: %v", err)
	}
	return selector, nil
}

// flag returns a boolean query parameter, whose form has been checked against the document; the
// default is false.
func (r *request) flag(name string) bool {
	value, _ := strconv.ParseBool(r.URL.Query().Get(name))
	return value
}

// answer is a response to write. drop resets the connection instead; half closes it in the
// middle of the body.
type answer struct {
	status      int
	contentType string
	body        []byte
	header      http.Header
	drop, half  bool
	// replaced is true if a Fault's answer is sent.
	replaced bool
}

func errorAnswer(e *apiError) answer {
	if e.oauth != nil {
		return jsonAnswer(e.Code, e.oauth)
	}
	return jsonAnswer(e.Code, e)
}

func jsonAnswer(status int, body any) answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic("iaasmock: " + err.Error()) // bodies are made of types that have a form in JSON
	}
	return answer{status: status, contentType: jsonContentType, body: append(encoded, '\n')}
}

func writeAnswer(w http.ResponseWriter, requestID string, reply answer) {
	header := w.Header()
	header.Set(requestIDHeader, requestID)
	if reply.contentType != "" {
		header.Set("Content-Type", reply.contentType)
	}
	for name, values := range reply.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if reply.half {
		header.Set("Content-Length", strconv.Itoa(len(reply.body)))
		w.WriteHeader(reply.status)
		_, _ = w.Write(reply.body[:len(reply.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body)
}

// dropConnection resets the connection, so that the client cannot take it for an empty
// answer.
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

// requestIDHeader carries the request's ID.
const requestIDHeader = "X-Request-Id"

const jsonContentType = "application/json"

// apiError is an error in the API's form.
type apiError struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
	// oauth is the body of a token endpoint's answer; nil for the API's own errors.
	oauth object
}

func newError(code int, format string, args ...any) *apiError {
	return &apiError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *apiError {
	return newError(http.StatusBadRequest, format, args...)
}

// notFound returns the answer for a path with a resource that does not exist.
//
// Source: the document: every operation has a 404.
func notFound(what string) *apiError {
	return newError(http.StatusNotFound, "%s not found", what)
}

// conflict returns the API's 409, which has no other text.
func conflict() *apiError { return newError(http.StatusConflict, "Conflict") }

// unauthorized returns the answer to a request without a valid token.
//
// Source: the document: every operation has a 401.
func unauthorized() *apiError { return newError(http.StatusUnauthorized, "Unauthorized") }

// forbidden returns the answer for another project, and for one that does not exist: an account cannot tell
// them apart.
//
// Source: the document: every operation has a 403. stackit-s3-provisioner has measured that the
// object-storage API answers it for an unknown project, too (2026-08-25); terraform-provider-stackit
// words the 403 of the IaaS API as "not found or forbidden access".
func forbidden() *apiError { return newError(http.StatusForbidden, "Forbidden") }

// list is the form of the API's lists.
type list struct {
	Items []any `json:"items"`
}

func items[T any](views []T) list {
	all := list{Items: []any{}}
	for _, view := range views {
		all.Items = append(all.Items, view)
	}
	return all
}

// orEmpty returns an empty list for nil, which JSON would show as null.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// orEmptyMap returns a copy, or an empty map for nil.
func orEmptyMap[T any](m map[string]T) map[string]T {
	if m == nil {
		return map[string]T{}
	}
	return maps.Clone(m)
}

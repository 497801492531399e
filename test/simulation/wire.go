// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// wire carries the requests of one process to the cloud, as long as it lives.
type wire struct {
	world   *world
	process *process
}

var errCrashed = errors.New("the process has crashed")

// RoundTrip implements http.RoundTripper. An answer reaches a process only once it
// does not stand still.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.process.standing() {
		w.process.awake()
		return nil, errStoodStill
	}
	response, err := w.exchange(request)
	if !w.process.awake() {
		return nil, errCrashed
	}
	return response, err
}

func (w *wire) exchange(request *http.Request) (*http.Response, error) {
	if w.process.dead() {
		return nil, errCrashed
	}
	request, err := buffered(request)
	if err != nil {
		return nil, err
	}
	c := w.world.describe(w.process, request)
	u := w.world.injector.request(c)
	if u.crashBefore || u.vanish {
		return nil, w.lose(request, c, u)
	}
	if err := w.under(request, c, u); err != nil {
		return nil, err
	}
	response, err := w.world.carryOut(request, c, u, w.process)
	w.process.standStill(u.pause)
	if u.crashAfter {
		w.process.crash("after " + c.operation + " " + c.subject)
	}
	if w.process.dead() {
		return nil, errCrashed
	}
	if back := spi.Sleep(request.Context(), w.world.clock, u.back); back != nil {
		return nil, back
	}
	return response, err
}

// lose lets the request disappear, and the process with it where the fault says so.
func (w *wire) lose(request *http.Request, c call, u callFault) error {
	if u.late > 0 {
		w.world.carryOutLate(request, c, u.late, w.process)
	}
	if u.crashBefore {
		w.process.crash("before " + c.operation + " " + c.subject)
		return errCrashed
	}
	w.world.log("%s %s %s vanishes", c.process, c.operation, c.subject)
	return io.ErrUnexpectedEOF
}

// under is the time on the way to the cloud. A crash meanwhile may be too late to
// stop the request.
func (w *wire) under(request *http.Request, c call, u callFault) error {
	if err := spi.Sleep(request.Context(), w.world.clock, u.there); err != nil && !w.process.dead() {
		return err
	}
	if !w.process.dead() {
		return nil
	}
	rng := random(w.world.plan.Seed, "overtaken", c.cluster, c.operation, c.subject, c.caller, c.repeat)
	if late := between(rng, 0, w.world.plan.Late); late > 0 && rng.IntN(2) == 0 {
		w.world.carryOutLate(request, c, late, w.process)
	}
	return errCrashed
}

// buffered reads the request's body, so that it can be looked at and sent late.
func buffered(request *http.Request) (*http.Request, error) {
	body := []byte{}
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return request, nil
}

// describe names the request in words that are the same in every run of a seed.
func (w *world) describe(by *process, request *http.Request) call {
	c := call{cluster: by.cluster.name, process: by.name, operation: operationOf(request), subject: request.URL.Query().Get("label_selector")}
	switch c.operation {
	case opCreate:
		var payload struct{ Name string }
		if body, err := request.GetBody(); err == nil {
			_ = json.NewDecoder(body).Decode(&payload)
		}
		c.subject = payload.Name
	case opGet, opDelete, opServerNICs:
		c.subject = cmp.Or(w.trace.name(serverIDIn(request)), serverIDIn(request))
	case opPatch:
		c.subject = w.trace.name(w.serverOfNIC(lastSegment(request)))
	case opGetNIC, opDeleteNIC, opGetVolume, opDeleteVolume:
		c.subject = cmp.Or(w.trace.name(lastSegment(request)), lastSegment(request))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.begun[c.cluster] = append(w.begun[c.cluster], w.clock.Since(w.start))
	c.number = w.calls
	c.caller, _ = request.Context().Value(caller{}).(string)
	key := c.cluster + c.operation + c.subject + c.caller
	c.repeat = w.repeats[key]
	w.repeats[key]++
	return c
}

// caller is the key of who calls the driver, in the context of the call.
type caller struct{}

// calledBy lets two calls that ask for the same at the same moment differ in what
// befalls them: which of them is the first would be the scheduler's choice.
func calledBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, caller{}, who)
}

// operations by the method and the kind of thing that the path names; of all for those that
// the path names one of.
var operations = map[string]string{
	"POST servers": opCreate, "GET servers": opList, "GET servers/": opGet, "DELETE servers/": opDelete,
	"GET nics": opNICs, "GET nics/": opGetNIC, "PATCH nics/": opPatch, "DELETE nics/": opDeleteNIC,
	"GET volumes": opVolumes, "GET volumes/": opGetVolume, "DELETE volumes/": opDeleteVolume,
}

func operationOf(request *http.Request) string {
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	last := segments[len(segments)-1]
	switch {
	case last == "token":
		return opToken
	case last == "nics" && segments[len(segments)-3] == "servers":
		return opServerNICs
	}
	if operation, ofAll := operations[request.Method+" "+last]; ofAll {
		return operation
	}
	return operations[request.Method+" "+segments[len(segments)-2]+"/"]
}

func lastSegment(request *http.Request) string {
	return request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
}

func serverIDIn(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/servers/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// ticket marks the one request that a fault is meant for.
type ticket struct{}

// carryOut lets the cloud answer the request, after a look whether the process may
// ask for that.
func (w *world) carryOut(request *http.Request, c call, u callFault, by *process) (*http.Response, error) {
	served := request.Clone(context.WithValue(request.Context(), ticket{}, c.number))
	w.lookEmpty(0, u.hiccup)
	if u.trouble != nil {
		fault := u.trouble.fault
		if fault.OtherServer != "" {
			fault.OtherServer = w.anothers(c)
		}
		fault.Count = 1
		fault.Match = func(r *http.Request) bool { return r.Context().Value(ticket{}) == c.number }
		defer w.cloud.Inject(fault)()
		w.met(u.trouble)
	}
	w.mayAsk(c, request, by.cluster)
	var before []iaasmock.Server
	if c.operation == opCreate {
		before = w.cloud.Servers()
	}
	if refusal := w.refuseElsewhere(request, c); refusal != nil {
		return refusal, nil
	}
	response, err := serve(w.cloud, served)
	if c.operation == opCreate {
		w.nameNew(before, c)
	}
	w.log("%s %s", c, outcome(u, response, err))
	if request.Method != http.MethodGet {
		w.check()
	}
	return response, err
}

// carryOutLate does so once the sender has given up.
func (w *world) carryOutLate(request *http.Request, c call, late time.Duration, by *process) {
	w.log("%s will be carried out %s later", c, late)
	w.late.Go(func() {
		_ = spi.Sleep(context.Background(), w.clock, late)
		// Nobody waits for the answer, which a fault may hold back for ever.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), time.Minute)
		defer cancel()
		request := request.Clone(ctx)
		if response, err := w.carryOut(request, c, callFault{}, by); err == nil {
			_ = response.Body.Close()
		}
	})
}

// callerCollector is who makes the calls of an orphan run.
const callerCollector = "collector"

func (c call) String() string {
	text := fmt.Sprintf("%s   %s %s #%d", c.process, c.operation, c.subject, c.repeat)
	if c.caller != "" {
		text += " for " + c.caller
	}
	return text
}

func outcome(u callFault, response *http.Response, err error) string {
	text := ""
	if u.trouble != nil {
		text = "(" + u.trouble.name + ") "
	}
	if err != nil {
		return text + "-> " + err.Error()
	}
	return text + "-> " + response.Status
}

// serve answers in memory: no network, so that the bubble's time can pass.
func serve(cloud *iaasmock.Cloud, request *http.Request) (response *http.Response, err error) {
	defer func() {
		cause := recover()
		if abort, ok := cause.(error); ok && errors.Is(abort, http.ErrAbortHandler) { // a reset connection
			response, err = nil, cmp.Or(request.Context().Err(), io.ErrUnexpectedEOF)
		} else if cause != nil {
			panic(cause)
		}
	}()
	recorder := httptest.NewRecorder()
	cloud.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// nameNew gives the servers their names that were not there before.
func (w *world) nameNew(before []iaasmock.Server, c call) {
	known := map[string]bool{}
	for _, server := range before {
		known[server.ID] = true
	}
	for _, server := range w.cloud.Servers() {
		if !known[server.ID] && w.trace.name(server.ID) == "" {
			w.trace.named(server.ID)
			who := ownerOf(&server)
			w.checkElsewhere(who, c)
			w.log("%s is made for %s of %s", server.ID, who.machine, who.cluster)
		}
	}
}

func (w *world) serverOfNIC(id string) string {
	for _, nic := range w.cloud.NICs() {
		if nic.ID == id {
			return nic.ServerID
		}
	}
	return ""
}

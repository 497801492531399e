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
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// call is an API request in flight.
type call struct {
	// number counts the requests of the run, from 1.
	number int
	// cluster is that of the calling process; operation is the API's; id is that of the server, NIC or volume in the
	// path, if any; subject is its name in the trace.
	cluster, operation, id, subject string
	// process is the name of the calling process.
	process string
	// caller is the Machine and driver method behind the request; "" if there are several, as for a list.
	caller string
	// repeat counts earlier requests of the same kind for this caller.
	repeat int
}

func (c call) String() string {
	text := fmt.Sprintf("%s   %s %s #%d", c.process, c.operation, c.subject, c.repeat)
	if c.caller != "" {
		text += " for " + c.caller
	}
	return text
}

// calledFor reports whether the driver call behind the request is about the Machine. Orphan runs are about all
// Machines.
func (c *call) calledFor(machine string) bool {
	return c.caller == "" || c.caller == callerCollector || strings.HasPrefix(c.caller, machine+" ")
}

// caller is the context key of the driver call's caller. It distinguishes identical requests made at the same
// moment: without it the scheduler would decide which of them meets a fault.
type caller struct{}

// callerCollector is the caller of an orphan run's calls.
const callerCollector = "collector"

// wire carries the requests of one process to the cloud, as long as it lives.
type wire struct {
	*cluster
	process *process
}

// errStoodStill is the error of a request that begins during a pause. Only an expired context can cause such a
// request: the process's clock does not stop it. Sending the request after the pause would use checks made
// before it.
var errStoodStill = fmt.Errorf("not sent: the process is paused: %w", io.ErrUnexpectedEOF)

// RoundTrip implements http.RoundTripper. An answer reaches a process only while it is not paused.
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
	c := w.world.describe(w.name, w.process.name, request)
	wrote(request)
	// Requests sent at the same moment arrive one after the other, so that the seed decides which of them meets a
	// fault.
	rng := w.world.random("request", c)
	there, back := between(rng, time.Millisecond, w.world.plan.Latency),
		between(rng, time.Millisecond, w.world.plan.Latency)
	if err := w.under(request, c, there); err != nil {
		return nil, err
	}
	f := w.world.befalls(c.cluster, c.operation)
	if f.crashBefore || f.late {
		return nil, w.lose(request, c, f)
	}
	response, err := w.world.carryOut(request, c, f)
	w.standStill(w.process, f.pause)
	if f.crashAfter {
		w.crash(w.process, "after "+c.operation+" "+c.subject)
	}
	if w.process.dead() {
		return nil, errCrashed
	}
	if err := spi.Sleep(request.Context(), w.world.clock, back); err != nil {
		return nil, err
	}
	return response, err
}

// wrote reports the request as sent, as net/http does: otherwise the driver would treat a lost answer as a
// request that was never sent.
func wrote(request *http.Request) {
	if trace := httptrace.ContextClientTrace(request.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
}

// lose drops the request, or executes it late, and ends the process if the fault says so.
func (w *wire) lose(request *http.Request, c call, f Fault) error {
	if f.late {
		w.world.carryOutLate(request, c, between(w.world.random("late", c), w.world.plan.Late/2, w.world.plan.Late))
	}
	if f.crashBefore {
		w.crash(w.process, "before "+c.operation+" "+c.subject)
		return errCrashed
	}
	w.world.log("%s %s %s is lost", c.process, c.operation, c.subject)
	return io.ErrUnexpectedEOF
}

// under waits for the time on the way to the cloud. A crash meanwhile may be too late to stop the request.
func (w *wire) under(request *http.Request, c call, there time.Duration) error {
	if err := spi.Sleep(request.Context(), w.world.clock, there); err != nil && !w.process.dead() {
		return err
	}
	if !w.process.dead() {
		return nil
	}
	rng := w.world.random("overtaken", c)
	if late := between(rng, 0, w.world.plan.Late); late > 0 && rng.IntN(2) == 0 {
		w.world.carryOutLate(request, c, late)
	}
	return errCrashed
}

// random returns the random stream of a request: it depends on the seed and the request only.
func (w *world) random(what string, c call) *rand.Rand {
	return random(w.plan.Seed, what, c.cluster, c.operation, c.subject, c.caller, c.repeat)
}

// describe returns the request's description, which is the same in every run of a seed.
func (w *world) describe(cluster, process string, request *http.Request) call {
	c := call{cluster: cluster, process: process, operation: opToken, subject: request.URL.Query().Get("label_selector")}
	if asked, err := routes().Find(request); err == nil {
		c.operation = asked.Route.Operation.OperationID
		c.id = cmp.Or(asked.PathParams["nicId"], asked.PathParams["volumeId"], asked.PathParams["serverId"])
	}
	switch {
	case c.operation == opCreate:
		var payload struct{ Name string }
		if body, err := request.GetBody(); err == nil {
			_ = json.NewDecoder(body).Decode(&payload)
		}
		c.subject = payload.Name
	case c.operation == opPatch:
		c.subject = w.trace.name(w.serverOfNIC(c.id))
	case c.id != "":
		c.subject = cmp.Or(w.trace.name(c.id), c.id)
	}
	c.caller, _ = request.Context().Value(caller{}).(string)
	c.repeat = w.repeated("request", c.cluster, c.operation, c.subject, c.caller)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.begun[c.cluster] = append(w.begun[c.cluster], w.clock.Since(w.start))
	c.number = w.calls
	return c
}

// routes finds the operation of a request to the IaaS API; it does not find token requests.
var routes = sync.OnceValue(func() openapi.Router {
	return openapi.NewRouter(openapi.Load(), func(operation string) bool {
		return slices.Contains(operations, operation)
	})
})

// ticket is the context key that marks the one request a fault is meant for.
type ticket struct{}

// carryOut checks that the process may make the request, and executes it.
func (w *world) carryOut(request *http.Request, c call, f Fault) (*http.Response, error) {
	served := request.Clone(context.WithValue(request.Context(), ticket{}, c.number))
	if t := f.trouble; t != nil {
		fault := t.fault
		fault.Count = 1
		fault.Match = func(r *http.Request) bool { return r.Context().Value(ticket{}) == c.number }
		defer w.cloud.Inject(fault)()
		w.met(t)
	}
	w.mayAsk(c)
	var before []iaasmock.Server
	if c.operation == opCreate {
		before = w.cloud.Servers()
	}
	response, err := serve(w.cloud, served)
	if c.operation == opCreate {
		w.nameNew(before)
	}
	w.log("%s %s", c, outcome(f, response, err))
	if request.Method != http.MethodGet {
		w.check()
	}
	return response, err
}

// carryOutLate executes the request once the sender has given up.
func (w *world) carryOutLate(request *http.Request, c call, late time.Duration) {
	w.log("%s is to be executed %s later", c, late)
	w.late.Go(func() {
		_ = spi.Sleep(context.Background(), w.clock, late)
		// The answer is discarded, and a fault may hold it back for ever.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), time.Minute)
		defer cancel()
		request := request.Clone(ctx)
		if response, err := w.carryOut(request, c, Fault{}); err == nil {
			_ = response.Body.Close()
		}
	})
}

func outcome(f Fault, response *http.Response, err error) string {
	text := ""
	if f.trouble != nil {
		text = "(" + f.What + ") "
	}
	if err != nil {
		return text + "-> " + err.Error()
	}
	return text + "-> " + response.Status
}

// nameNew names the new servers in the trace.
func (w *world) nameNew(before []iaasmock.Server) {
	known := map[string]bool{}
	for _, server := range before {
		known[server.ID] = true
	}
	for _, server := range w.cloud.Servers() {
		if !known[server.ID] && w.trace.name(server.ID) == "" {
			w.trace.named(server.ID)
			who := ownerOf(&server)
			w.log("%s is created for %s of %s", server.ID, who.machine, who.cluster)
		}
	}
}

const endpoint = "http://iaas.invalid"

// direct carries the requests of other users, without injected faults.
type direct struct{ cloud *iaasmock.Cloud }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	request, err := buffered(request)
	if err != nil {
		return nil, err
	}
	return serve(d.cloud, request)
}

// buffered reads the request's body, so that it can be inspected and sent late.
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

// serve answers in memory, without a network, so that the bubble's time can pass.
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

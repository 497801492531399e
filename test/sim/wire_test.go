// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var (
	realClock  = clock.RealClock{}
	ids        = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	errCrashed = errors.New("the process has crashed")
)

// wire carries the requests of a process to the cloud, as long as it lives.
type wire struct {
	*world
	process *process
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.process.ctx.Err() != nil {
		return nil, errCrashed
	}
	c := w.arrives(r)
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders() // else the driver would take a lost answer for a request that was never sent
	}
	random := w.random("request", c.label)
	there, back, late := between(random, time.Millisecond, w.plan.latency), between(random, 0, w.plan.latency),
		between(random, w.plan.late/2, w.plan.late)
	err := spi.Sleep(r.Context(), realClock, there)
	switch {
	case w.process.ctx.Err() != nil: // a crash does not stop a request that is under way
		w.carryOutLate(r, c, late)
		return nil, errCrashed
	case err != nil:
		return nil, err
	case c.meets.late:
		w.carryOutLate(r, c, late)
		err = io.ErrUnexpectedEOF
	}
	var response *http.Response
	if err == nil {
		response, err = w.carryOut(r, c)
	}
	if c.meets.crash {
		w.crash(w.process, "after "+c.label)
	}
	if err == nil {
		err = spi.Sleep(r.Context(), realClock, back)
	}
	if w.process.ctx.Err() != nil {
		err = errCrashed
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// call is a request in flight. label is unique in a run, id is that of the server, NIC or volume in the path, meets
// is the fault that hits it.
type call struct {
	operation, id, label string
	meets                planned
}

// arrives counts a request, and finds out what happens to it.
func (w *world) arrives(r *http.Request) *call {
	c := &call{}
	c.operation, c.id = operationOf(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	nth := w.counts[c.operation]
	w.counts[c.operation]++
	c.label = fmt.Sprint(c.operation, " ", nth)
	at := slices.IndexFunc(w.plan.faults, func(f planned) bool {
		return f.operation == c.operation && nth >= f.nth && nth < f.nth+f.times
	})
	if at >= 0 && !w.calm {
		c.meets = w.plan.faults[at]
		w.hits = append(w.hits, c.meets)
	}
	return c
}

// ticket is the context key that marks the one request that a fault of the mock is for.
type ticket struct{}

// carryOut lets the cloud carry out a request.
func (w *world) carryOut(r *http.Request, c *call) (*http.Response, error) {
	if in := c.meets.in; c.meets.name != "" && !c.meets.late {
		in.Operation, in.Count = c.operation, 1
		in.Match = func(r *http.Request) bool { return r.Context().Value(ticket{}) == c.label }
		defer w.cloud.Inject(in)()
	}
	w.checkRequest(c)
	response, err := serve(w.cloud, r.Clone(context.WithValue(r.Context(), ticket{}, c.label)))
	outcome := fmt.Sprint(err)
	if err == nil {
		outcome = response.Status
	}
	w.logf("   %s %s: %s %s", c.label, c.id, outcome, c.meets.name)
	if r.Method != http.MethodGet {
		w.checkCloud()
	}
	return response, err
}

// carryOutLate lets the cloud carry out a request whose sender has given up.
func (w *world) carryOutLate(r *http.Request, c *call, late time.Duration) {
	w.late.Go(func() {
		time.Sleep(late)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
		defer cancel()
		_, _ = w.carryOut(r.Clone(ctx), c)
	})
}

// operationOf names a request by its method and path, and returns the last ID in the path.
func operationOf(r *http.Request) (operation, id string) {
	_, path, isIaaS := strings.Cut(r.URL.Path, "/regions/"+iaasmock.DefaultRegion+"/")
	if !isIaaS {
		return opToken, ""
	}
	path = ids.ReplaceAllStringFunc(path, func(found string) string {
		id = found
		return "*"
	})
	return operations[r.Method+" "+path], id
}

// serve answers in memory, so that a bubble's time can pass. The handler aborts where the connection breaks.
func serve(cloud http.Handler, r *http.Request) (response *http.Response, err error) {
	defer func() {
		switch cause := recover(); {
		case cause == nil:
		case cause != any(http.ErrAbortHandler):
			panic(cause)
		case r.Context().Err() != nil:
			err = r.Context().Err()
		default:
			err = io.ErrUnexpectedEOF
		}
	}()
	if r = r.Clone(r.Context()); r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	cloud.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// wire carries the requests of one process to the cloud, as long as it lives.
type wire struct {
	*cluster
	process *process
}

// errStoodStill is what a request meets that is begun while the process stands still.
// Only the end of a context's time can do that, which the process's clock does not
// stop. To send it once the process wakes up would be to send what has been
// checked before the pause.
var errStoodStill = fmt.Errorf("the process stood still: %w", io.ErrUnexpectedEOF)

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
	c := w.world.describe(w.name, w.process.name, request)
	u := w.world.injector.request(c)
	if u.crashBefore || u.vanish {
		return nil, w.lose(request, c, u)
	}
	if err := w.under(request, c, u); err != nil {
		return nil, err
	}
	response, err := w.world.carryOut(request, c, u)
	w.standStill(w.process, u.pause)
	if u.crashAfter {
		w.crash(w.process, "after "+c.operation+" "+c.subject)
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
		w.world.carryOutLate(request, c, u.late)
	}
	if u.crashBefore {
		w.crash(w.process, "before "+c.operation+" "+c.subject)
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
		w.world.carryOutLate(request, c, late)
	}
	return errCrashed
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// refusedFor is for how long 403, or 404 about the project or region, may be all that a wait sees. An API
// answers it by mistake for a moment; a permission or region that is missing must not look like a slow
// cloud.
const refusedFor = 30 * time.Second

// wait decides what an error means for a driver call: whether the call goes on, or ends
// with this error. Once a call waits, a failed API call is not a failed machine: what it
// waits for goes on by itself. Before that, nothing is lost if the call ends, and the
// manager comes back.
//
// A call has a wait for each thing that it asks for again and again: the reads of one server, its
// NICs, the look-ups.
type wait struct {
	*call
	// refused is the status of the last answers in a row, if all were 403 or 404 about the place;
	// refusedSince is when the first of them came.
	refused      int
	refusedSince time.Time
}

// newWait returns a wait of the call.
func (c *call) newWait() wait { return wait{call: c} }

// begin notes that the call waits: with the first read that is put off (poll, search), with a POST
// that may have made a server, and where a call is about waiting and nothing else (awaitReady,
// await).
func (c *call) begin() { c.begun.Store(true) }

// afterRead returns the error that a failed read ends the call with, nil if the call goes
// on. state is the last one seen, for the text of a late end.
func (w *wait) afterRead(ctx context.Context, err error, state string) error {
	var decided *Error
	var api *APIError
	isMissing := IsPlaceMissing(err) && !w.placeSeen.Load()
	if ctx.Err() == nil { // else there is no answer
		w.noteRefusal(err)
	}
	switch {
	case err == nil, errors.Is(err, errGone), errors.As(err, &decided):
		return err
	case !w.begun.Load() && !isMissing:
		return err
	case isRefused(err):
		return interruptedError(err)
	case ctx.Err() != nil:
		return w.late(ctx, state)
	case w.refused == 0 || w.clock.Since(w.refusedSince) < refusedFor:
	case isMissing:
		return w.placeMissing(err)
	default:
		return err
	}
	if errors.As(err, &api) {
		w.failed.Store(api)
	}
	klog.V(2).InfoS("An API call failed, will be tried again", "state", state, "err", err)
	return nil
}

// noteRefusal notes which refusal lasts, and since when.
func (w *wait) noteRefusal(err error) {
	status := 0
	if isForbidden(err) || IsPlaceMissing(err) && !w.placeSeen.Load() {
		status = statusOf(err)
	}
	if status != w.refused {
		w.refused, w.refusedSince = status, w.clock.Now()
	}
}

// placeMissing is the answer to a call to which the API has said for refusedFor that the project or region
// does not exist, and has shown nothing of it.
func (c *call) placeMissing(err error) error {
	return newError(ReasonResourceMissing, "the API does not know project %s (secret.projectId) or region %s "+
		"(providerSpec.region, secret.region): correct them; if the project was deleted, its servers went with it, see the runbook of ResourceMissing: %v",
		c.key.ProjectID, c.key.Region, err)
}

// late is the error of a call whose time is over.
func (c *call) late(ctx context.Context, state string) error {
	if failed := c.failed.Load(); failed != nil {
		state = fmt.Sprintf("%s; the last call that failed: %v", state, failed)
	}
	return lateError(ctx.Err(), state)
}

// afterStep is afterRead for what changes something, or belongs to such a step: it is tried
// again with the next read, unless the API refuses it. A read that is refused is no refused step.
func (w *wait) afterStep(ctx context.Context, err error, state string) error {
	var api *APIError
	isRead := errors.As(err, &api) && api.Call.isRead()
	if err != nil {
		switch code, _ := Classify(err); {
		case code == codes.InvalidArgument, code == codes.Internal, code == codes.PermissionDenied && !isRead:
			return err
		}
	}
	return w.afterRead(ctx, err, state)
}

// ended returns the error of a call that ends with err whatever it is. Refused credentials
// end a wait with Unavailable: the manager comes back in seconds, with the Secret as it is
// then. A call that begins with them answers Unauthenticated.
func (c *call) ended(err error) error {
	if c.begun.Load() && isRefused(err) {
		return interruptedError(err)
	}
	return err
}

// projectLists notes whether lists of the whole project fail, 413 or 504 of a large one.
type projectLists struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// failingSince is zero while they work; failed is when the last one failed.
	failingSince, failed time.Time
}

// projectFailsFor is for how long they must fail until look-ups do without.
const projectFailsFor = 10 * time.Minute

// note notes how a look-up in the whole project ended. A caller that left says nothing.
func (l *projectLists) note(ctx context.Context, err error) {
	var api *APIError
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	switch {
	case ctx.Err() != nil, isSessionWide(err):
		return
	case !errors.As(err, &api): // it worked, whatever it showed
		l.failingSince = time.Time{}
		return
	case l.failingSince.IsZero(), now.Sub(l.failed) >= projectFailsFor: // nobody has looked in between
		l.failingSince = now
	}
	l.failed = now
}

// failLong says that they have failed for projectFailsFor.
func (l *projectLists) failLong() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failingSince.IsZero() && l.failed.Sub(l.failingSince) >= projectFailsFor
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
)

// refusedFor is how long 403, or 404 about the project or region, may be the only answer. An API gives it by mistake
// for a moment; a permission or region that is missing must not look like a slow cloud.
const refusedFor = 30 * time.Second

// wait decides which errors end a driver call. Before the call waits, nothing is lost if it ends, and the manager comes
// back: every error ends it. Once it waits (startWaiting), a failed API call is not a failed Machine: what it waits for
// goes on by itself.
//
// A call has a wait for each thing that it reads or does again and again.
type wait struct {
	call *call
	// refused is the status of the last answers in a row, if all were 403 or 404 about the place; refusedSince is when
	// the first of them came.
	refused      int
	refusedSince time.Time
	// lastError is why the last read or step failed; nil if it did not.
	lastError error
}

func (c *call) newWait() wait { return wait{call: c} }

// startWaiting notes that the call waits: with the first read that is put off, with a POST that may have created a
// server, and where the call is about waiting and nothing else.
func (c *call) startWaiting() { c.isWaiting.Store(true) }

// afterRead returns the error that a failed read ends the call with; nil if the call goes on. state is the last one
// seen, for the text of a late end.
func (w *wait) afterRead(ctx context.Context, err error, state string) error {
	c := w.call
	isMissing := IsPlaceMissing(err) && !c.placeSeen.Load()
	w.lastError = err
	if ctx.Err() == nil { // else there is no answer
		w.noteRefusal(err, isMissing)
	}
	var decided *Error
	isRefusedForLong := w.refused != 0 && c.clock.Since(w.refusedSince) >= refusedFor
	switch {
	case err == nil, errors.Is(err, errGone), errors.As(err, &decided):
		return err
	case !c.isWaiting.Load() && !isMissing:
		return err
	case isRefused(err):
		return interruptedError(err)
	case ctx.Err() != nil:
		return c.late(ctx, state)
	case isRefusedForLong && isMissing:
		return c.placeMissing(err)
	case isRefusedForLong:
		return err
	}
	var api *APIError
	if errors.As(err, &api) {
		c.failed.Store(api)
	}
	klog.V(2).InfoS("An API call failed, will be tried again", "state", state, "err", err)
	return nil
}

// noteRefusal notes which refusal lasts, and since when.
func (w *wait) noteRefusal(err error, isMissing bool) {
	status := 0
	if isForbidden(err) || isMissing {
		status = statusOf(err)
	}
	if status != w.refused {
		w.refused, w.refusedSince = status, w.call.clock.Now()
	}
}

// afterStep is afterRead for a step that changes something, or belongs to one: it is repeated with the next read, unless
// the API refuses it. A read that is refused is no refused step.
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

// placeMissing is the error of a call to which the API has said for refusedFor that the project or region does not
// exist, and has shown nothing of it.
func (c *call) placeMissing(err error) error {
	return newError(ReasonResourceMissing, "the API does not know project %s (secret.projectId) or region %s "+
		"(providerSpec.region, secret.region): correct them; if the project was deleted, its servers went with it, see the runbook of ResourceMissing: %v",
		c.ref.project, c.ref.region, err)
}

// late is the error of a call whose time is over.
func (c *call) late(ctx context.Context, state string) error {
	if failed := c.failed.Load(); failed != nil {
		state = fmt.Sprintf("%s; the last call that failed: %v", state, failed)
	}
	return lateError(ctx.Err(), state)
}

// ended returns the error of a call that ends with err whatever it is. Refused credentials end a call that waits with
// Unavailable: the manager comes back in seconds, with the Secret as it is then. A call that begins with them answers
// Unauthenticated.
func (c *call) ended(err error) error {
	if c.isWaiting.Load() && isRefused(err) {
		return interruptedError(err)
	}
	return err
}

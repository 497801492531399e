// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// refusedFor is how long a call tolerates nothing but refusals (401, 403, or 404 about the project
// or region), and failed reads of any kind at its start. An API returns these by mistake for a
// moment, and the manager's pauses after a refusal are long (3 and 10 minutes); but a missing
// permission or region must not look like a slow cloud.
const refusedFor = 30 * time.Second

// wait decides which errors end a driver call. A failed API call is not a failed Machine: the read
// or step is repeated with the next poll. A refusal by the token endpoint ends a call at once, a
// refusal by the API after refusedFor, any other failure after refusedFor if nothing has worked
// yet. Once a read or write has succeeded (hasWorked), such failures end the call only at its
// deadline, because the cloud continues its work meanwhile.
//
// A call has a wait for each thing that it reads or does repeatedly.
type wait struct {
	call *call
	// refusals counts the last consecutive answers that were 401, 403 or 404 about the place.
	// refusedSince is the time of the first of them. One refusal ends no call: the process may have
	// stood still for 30 s.
	refusals     int
	refusedSince time.Time
	// lastError is the error of the last read or step; nil if it succeeded.
	lastError error
}

func (c *call) newWait() wait { return wait{call: c} }

// afterRead returns the error with which a failed read ends the call; nil if the call continues.
// state is the last known state, for the text of a timeout.
func (w *wait) afterRead(ctx context.Context, err error, state string) error {
	c := w.call
	isMissing := IsPlaceMissing(err) && !c.placeSeen.Load()
	before := w.lastError
	w.lastError = err
	if ctx.Err() == nil { // else there is no answer
		w.noteRefusal(err, isMissing)
	}
	var decided *Error
	isRefusedForLong := w.refusals > 1 && c.clock.Since(w.refusedSince) >= refusedFor
	failsForLong := w.refusals == 0 && !c.hasWorked.Load() && c.clock.Since(c.began) >= refusedFor
	switch {
	case err == nil:
		c.hasWorked.Store(true)
		return nil
	case errors.Is(err, errGone), errors.As(err, &decided):
		return err
	case ctx.Err() != nil:
		return c.late(ctx, state)
	case isRefusedForLong && isMissing:
		return c.placeMissing(err)
	case isRefusedForLong, spi.IsRefused(err), failsForLong:
		return c.ended(err)
	}
	var api *APIError
	if errors.As(err, &api) {
		c.noteFailed(api)
	}
	if before == nil || before.Error() != err.Error() { // else each poll would be logged while the same call fails
		klog.V(2).InfoS("API call failed; retrying", "machine", loggable(c.machine), "machineClass", loggable(c.class),
			"state", state, "err", err)
	}
	return nil
}

// noteRefusal counts consecutive refusals, and records when they began.
func (w *wait) noteRefusal(err error, isMissing bool) {
	if !isForbidden(err) && !isMissing && statusOf(err) != http.StatusUnauthorized {
		w.refusals = 0
		return
	}
	if w.refusals == 0 {
		w.refusedSince = w.call.clock.Now()
	}
	w.refusals++
}

// afterStep is afterRead for a step that changes something, or a read for it: it is repeated with
// the next read, unless the API refuses it. A refused read does not count as a refused step, and the
// refused DELETE of a server is repeated (refusedRepeat) for refusedFor: the manager's next one comes
// after 10 minutes.
func (w *wait) afterStep(ctx context.Context, err error, state string) error {
	var api *APIError
	isRepeated := errors.As(err, &api) && (api.Call.isRead() || api.Call == callDeleteServer)
	if err != nil {
		switch code, _ := Classify(err); {
		case code == codes.InvalidArgument, code == codes.Internal, code == codes.PermissionDenied && !isRepeated:
			return err
		}
	}
	return w.afterRead(ctx, err, state)
}

// placeMissing returns the error of a call that saw nothing of the project or region, while the API
// answered for refusedFor that they do not exist.
func (c *call) placeMissing(err error) error {
	return newError(ReasonResourceMissing, "the API answers that project %s (secret.projectId) or region %s "+
		"(providerSpec.region, secret.region) does not exist: correct the wrong one; "+
		"if the project was deleted, its servers are gone, too (runbooks.md, \"The project is gone\"): %v",
		c.ref.project, c.ref.region, err)
}

// noteFailed records the call's last failed API call. A request that was held back (the pace does so while
// writes of its kind fail) does not replace an earlier failure of the same kind: only that has the API's reason.
func (c *call) noteFailed(api *APIError) {
	before := c.failed.Load()
	if before != nil && before.Call == api.Call && api.isHeldBack() && !before.isHeldBack() {
		return
	}
	c.failed.Store(api)
}

// late returns the error of a call that exceeded its deadline.
func (c *call) late(ctx context.Context, state string) error {
	if failed := c.failed.Load(); failed != nil {
		state = fmt.Sprintf("%s; the last call that failed: %v", state, failed)
	}
	return lateError(ctx.Err(), state)
}

// ended returns the final error of a call. If the call's credentials are refused after they have
// worked, it is Unavailable: the manager retries within seconds, with the then current Secret.
func (c *call) ended(err error) error {
	if c.hasWorked.Load() && isRefused(err) {
		return interruptedError(err)
	}
	return err
}

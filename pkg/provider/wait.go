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

// refusedFor is how long a call tolerates nothing but refusals (401, 403, or 404 about the project or
// region), and failures of any kind at its start. An API returns these by mistake for a moment, and
// the manager's pauses after a refusal are long (3 and 10 minutes).
const refusedFor = 30 * time.Second

// failures decides which errors end a call. A failed API call is not a failed Machine: it is repeated
// with the next poll. A refusal by the token endpoint ends the call at once, a refusal by the API
// after refusedFor, any other failure after refusedFor if nothing has worked yet. A call has a
// failures for each thing that it does repeatedly.
type failures struct {
	call *call
	// refusals counts the last consecutive refusals, the first one at refusedSince. One alone ends no
	// call: the process may have stood still for 30 s.
	refusals     int
	refusedSince time.Time
	// retry delays the next attempt at a list of the call's own, or at NICs.
	retry backoff
	// last is the error of the last attempt; nil if it succeeded.
	last error
}

func (c *call) newFailures() *failures { return &failures{call: c} }

// afterRead returns the error with which a read ends the call; nil if the call continues. state is the
// last known state, for the text of a timeout.
func (f *failures) afterRead(ctx context.Context, err error, state string) error {
	c := f.call
	before := f.last
	f.last = err
	isMissing := IsPlaceMissing(err) && !c.placeSeen
	if ctx.Err() == nil { // else there is no answer
		f.countRefusal(err, isMissing)
	}
	var decided *Error
	isRefusedForLong := f.refusals > 1 && c.clock.Since(f.refusedSince) >= refusedFor
	failsForLong := f.refusals == 0 && !c.hasWorked && c.clock.Since(c.began) >= refusedFor
	switch {
	case err == nil:
		c.hasWorked = true
		f.retry.note(c.clock.Now(), false)
		return nil
	case errors.Is(err, errGone), errors.As(err, &decided):
		return err
	case ctx.Err() != nil:
		return c.late(ctx, state)
	case isRefusedForLong && isMissing:
		return c.placeMissing(err)
	case isRefusedForLong, spi.IsRefused(err), failsForLong:
		return err
	}
	f.retry.note(c.clock.Now(), true)
	c.noteFailed(err)
	if before == nil || before.Error() != err.Error() {
		klog.V(2).InfoS("API call failed; retrying", "machine", loggable(c.machine), "machineClass", loggable(c.class),
			"state", state, "err", err)
	}
	return nil
}

// noteFailed records the last API call that failed. One that was held back because of an earlier
// failure of its kind does not replace that: only the earlier one has the API's reason.
func (c *call) noteFailed(err error) {
	var failed, before *APIError
	if errors.As(err, &failed) && errors.As(c.failed, &before) && failed.Call == before.Call && failed.isHeldBack() {
		return
	}
	c.failed = err
}

func (f *failures) countRefusal(err error, isMissing bool) {
	if statusOf(err) != http.StatusForbidden && !isMissing && statusOf(err) != http.StatusUnauthorized {
		f.refusals = 0
		return
	}
	if f.refusals == 0 {
		f.refusedSince = f.call.clock.Now()
	}
	f.refusals++
}

// afterStep is afterRead for a step that changes something: it is repeated with the next poll, unless
// the API refuses it. A 403 to a read or a DELETE is repeated, too.
func (f *failures) afterStep(ctx context.Context, err error, state string) error {
	var api *APIError
	isRepeated := errors.As(err, &api) && (api.Call.isRead() || api.Call == callDeleteServer)
	if err != nil {
		switch code, _ := Classify(err); {
		case code == codes.InvalidArgument, code == codes.Internal, code == codes.PermissionDenied && !isRepeated:
			return err
		}
	}
	return f.afterRead(ctx, err, state)
}

// placeMissing returns the error of a call that saw nothing of the project or region, while the API
// answered for refusedFor that they do not exist.
func (c *call) placeMissing(err error) error {
	return newError(ReasonResourceMissing, "the API answers that project %s (secret.projectId) or region %s "+
		"(providerSpec.region, secret.region) does not exist: correct the wrong one; "+
		"if the project was deleted, its servers are gone, too (runbooks.md, \"The project is gone\"): %w",
		c.place.project, c.place.region, err)
}

// late returns the error of a call that exceeded its deadline.
func (c *call) late(ctx context.Context, state string) error {
	if c.failed != nil {
		state = fmt.Sprintf("%s; the last call that failed: %v", state, c.failed)
	}
	return lateError(ctx.Err(), state)
}

// lateError returns the error of a wait that ended too early: state is the last known one.
func lateError(err error, state string) error {
	if errors.Is(err, context.Canceled) {
		return &Error{Reason: ReasonInterrupted, Text: "the call was cancelled: " + state, err: err}
	}
	return &Error{Reason: ReasonTimedOut, err: err,
		Text: "the call reached its deadline, and the next call continues: " + state}
}

// sleepUntil waits until the given time; its error is the context's.
func (c *call) sleepUntil(ctx context.Context, then time.Time) error {
	if err := spi.Sleep(ctx, c.clock, then.Sub(c.clock.Now())); err != nil {
		return fmt.Errorf("waiting for a read: %w", err)
	}
	return nil
}

// Poll intervals.
const (
	// firstPoll is the time from a POST to the first read of its server: hardly any server runs
	// earlier. The interval to the next reads is the time since the POST divided by pollShare, between
	// minPoll and maxPoll.
	firstPoll, minPoll = 8 * time.Second, 4 * time.Second
	pollShare, maxPoll = 6, 10 * time.Second
	// firstDeletionPoll and minDeletionPoll are the same after a DELETE.
	firstDeletionPoll, minDeletionPoll = 3 * time.Second, 3 * time.Second
	// minPollGap is the minimum time from an answer to the next read.
	minPollGap = time.Second
)

// polls schedules reads at fixed times after a POST, a DELETE or the start of a wait, whether or not
// other callers' lists have answered in between.
type polls struct {
	since time.Time
	// first is the time to the first read, least the minimum between two.
	first, least time.Duration
}

// after returns when the next read is due; began and ended are the last one's. A read replaces each
// that is due less than a third of an interval after its start.
func (p polls) after(began, ended time.Time) time.Time {
	due, interval := p.since.Add(p.first), p.least
	for due.Add(-interval/3).Before(began) || due.Before(ended.Add(minPollGap)) {
		interval = min(max(due.Sub(p.since)/pollShare, p.least), maxPoll)
		due = due.Add(interval)
	}
	return due
}

// pollsFrom returns the polls of a wait that begins now.
func pollsFrom(now time.Time) polls { return polls{now, minPoll, minPoll} }

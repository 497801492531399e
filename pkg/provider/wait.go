// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
)

// wait decides what an error means for a driver call: whether the call goes on, or ends
// with this error. Once a call waits, a failed API call is not a failed machine: what it
// waits for goes on by itself. Before that, nothing is lost if the call ends, and the
// manager comes back.
//
// A wait begins with the first read that is put off (poll, search), with a POST that may have
// made a server, and where a call is about waiting and nothing else (awaitReady, await).
type wait struct{ begun atomic.Bool }

func (w *wait) begin() { w.begun.Store(true) }

// afterRead returns the error that a failed read ends the call with, nil if the call goes
// on. state is the last one seen, for the text of a late end.
func (w *wait) afterRead(ctx context.Context, err error, state string) error {
	var decided *Error
	switch {
	case err == nil, errors.Is(err, errGone), errors.As(err, &decided):
		return err
	case !w.begun.Load():
		return err
	case isRefused(err):
		return interruptedError(err)
	case ctx.Err() != nil:
		return lateError(ctx.Err(), state)
	default:
		klog.V(2).InfoS("An API call failed, will be tried again", "state", state, "err", err)
		return nil
	}
}

// afterStep is afterRead for what changes something, or belongs to such a step: it is tried
// again with the next read, unless the API refuses it.
func (w *wait) afterStep(ctx context.Context, err error, state string) error {
	if err == nil {
		return nil
	}
	switch code, _ := classify(err); code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Internal:
		return err
	default:
		return w.afterRead(ctx, err, state)
	}
}

// ended returns the error of a call that ends with err whatever it is. Refused credentials
// end a wait with Unavailable: the manager comes back in seconds, with the Secret as it is
// then. A call that begins with them answers Unauthenticated.
func (w *wait) ended(err error) error {
	if w.begun.Load() && isRefused(err) {
		return interruptedError(err)
	}
	return err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// reads serves the readers of one scope as its schedule says. L is what a list of
// the scope returns, A what a reader wants to know. A goroutine runs while
// somebody waits, and no longer.
type reads[L, A any] struct {
	clock clock.Clock
	// list reads everything in the scope.
	list func(context.Context) (L, error)

	mu        sync.Mutex
	schedule  schedule
	questions map[*reader]*question[L, A]
	running   bool
	// wake tells the goroutine that something has changed.
	wake chan struct{}
	// cancelList ends the list under way, which nobody waits for any more.
	cancelList context.CancelFunc
	// used is when the last reader came.
	used time.Time
}

// question is what one reader asks.
type question[L, A any] struct {
	reader
	// single answers it by a read of its own.
	single func(context.Context) (A, error)
	// find answers it from a list, unless that does not show it.
	find func(L) (A, bool)

	begin  chan struct{}
	answer chan reading[A]
}

// reading is an answer and when the read of it began.
type reading[A any] struct {
	value A
	began time.Time
	err   error
}

func newReads[L, A any](clock clock.Clock, few int, pace *rate.Limiter, list func(context.Context) (L, error)) *reads[L, A] {
	return &reads[L, A]{
		clock: clock, list: list,
		schedule:  schedule{few: few, pace: pace},
		questions: map[*reader]*question[L, A]{},
		wake:      make(chan struct{}, 1),
	}
}

// ask returns the answer of a read that began after the question came. A reader
// that leaves because ctx ends disturbs no other.
func (r *reads[L, A]) ask(ctx context.Context, q *question[L, A]) reading[A] {
	q.begin, q.answer = make(chan struct{}), make(chan reading[A], 1)
	r.join(q)
	defer r.leave(q)
	select {
	case <-ctx.Done():
		return reading[A]{err: fmt.Errorf("waiting for a read: %w", ctx.Err())}
	case answer := <-q.answer:
		return answer
	case <-q.begin:
	}
	began := r.clock.Now()
	value, err := q.single(ctx)
	return reading[A]{value, began, err}
}

func (r *reads[L, A]) join(q *question[L, A]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.used = now
	r.questions[&q.reader] = q
	r.schedule.add(&q.reader, now)
	if !r.running {
		r.running = true
		go r.run()
		return
	}
	r.stir()
}

func (r *reads[L, A]) leave(q *question[L, A]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(q)
	if len(r.questions) == 0 && r.cancelList != nil {
		r.cancelList()
	}
	r.stir()
}

func (r *reads[L, A]) drop(q *question[L, A]) {
	r.schedule.remove(&q.reader)
	delete(r.questions, &q.reader)
}

// stir makes the goroutine look again.
func (r *reads[L, A]) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reads[L, A]) run() {
	for {
		wait, more := r.advance()
		if !more {
			return
		}
		r.pause(wait)
	}
}

// advance takes the steps that are due, and returns how long there is nothing to
// do. It returns false once nobody waits.
func (r *reads[L, A]) advance() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.questions) > 0 {
		now := r.clock.Now()
		switch next := r.schedule.next(now); {
		case next.list:
			r.beginList(now)
		case next.alone != nil:
			close(r.questions[next.alone].begin)
		default:
			return next.wait, true
		}
	}
	r.running = false
	return 0, false
}

func (r *reads[L, A]) pause(wait time.Duration) {
	if wait == forever {
		<-r.wake
		return
	}
	timer := r.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-r.wake:
	case <-timer.C():
	}
}

// beginList starts a list that belongs to no reader: its deadline is its own.
func (r *reads[L, A]) beginList(began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	r.cancelList = cancel
	go func() {
		defer cancel()
		list, err := r.listSafely(ctx)
		r.deliver(list, err, began)
	}()
}

// listSafely recovers like the driver calls do: nobody else could.
func (r *reads[L, A]) listSafely(ctx context.Context) (list L, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.ErrorS(nil, "A read panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = newError(codes.Internal, "the driver failed unexpectedly; its log has the details")
		}
	}()
	return r.list(ctx)
}

// deliver answers the readers that the list serves. Those whose server it does not
// show go on.
func (r *reads[L, A]) deliver(list L, err error, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.schedule.listing, r.cancelList = false, nil
	now := r.clock.Now()
	for _, reader := range r.schedule.served(began) {
		q := r.questions[reader]
		answer := reading[A]{began: began, err: err}
		useful := err != nil && !aboutListOnly(err)
		if err == nil {
			answer.value, useful = q.find(list)
		}
		if !useful {
			r.schedule.miss(reader, now)
			continue
		}
		r.drop(q)
		q.answer <- answer
	}
	r.stir()
}

// aboutListOnly says whether a list failed by what it is or holds, such as one
// server among hundreds that the SDK cannot decode, or a panic over it: then reads
// of single things may succeed. What is wrong with the API or the credentials is
// so for all.
func aboutListOnly(err error) bool {
	var api *APIError
	if !errors.As(err, &api) {
		return true
	}
	switch api.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
		return true
	default:
		return errors.Is(err, errUnreadable)
	}
}

// idle says whether nobody has asked since then, and nobody waits.
func (r *reads[L, A]) idle(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.questions) == 0 && r.used.Before(since)
}

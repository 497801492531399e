// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxInFlight is the largest in-flight limit of a kind of writes.
	maxInFlight = 128
	// limitTTL is how long a kind keeps its in-flight limit without an attempt: the API's capacity of
	// an hour ago means nothing now.
	limitTTL = time.Minute
	// hangingAfter is the time since the last write of a kind after which one more is sent even if the
	// in-flight limit is reached; half of the kind's pause if that is longer. Otherwise a hanging
	// write would block the others until its timeout of 30 s.
	hangingAfter = 5 * time.Second
	// firstPause follows an attempt that fails at limit 1; it doubles up to maxPause. Each is
	// multiplied by a random factor between 0.5 and 1, a Retry-After by one between 1 and 1.5.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// maxPaceWait limits how long a request waits here, all its attempts together. Then the manager
	// calls again, with the then current Secret and Machine.
	maxPaceWait = time.Minute
)

var errTooMany = &NotSentError{Err: errors.New("not sent: too many other requests are in flight")}

// paced keeps the calls of a session from becoming a storm when the API fails: hundreds of Machines
// repeat their calls, the manager calls again every 5 s, and a thousand independent sidecars share
// one API.
//
// Each kind of request, a method and a resource such as POST of servers, is limited separately. A
// kind of writes has an in-flight limit, 1 at first. A failure (isFailure) halves it, every other
// answer doubles it. A failure at limit 1 starts a pause, twice as long as the last one; every
// other answer halves the next. A Retry-After pauses its kind at any limit. Pauses are random, so
// that sidecars that were refused together do not come back together.
//
// Reads have no such limit: Session.Reads bounds them. Reads that were held back or are repeated
// wait there, so that they do not all come at once.
type paced struct {
	next   http.RoundTripper
	reads  *Reads
	clock  clock.Clock
	jitter func() float64

	mu sync.Mutex
	// kinds has a handful of entries: the methods and resources of the API.
	kinds map[string]*kind
}

// kind is the state of one kind of requests.
type kind struct {
	method string
	// limit is how many attempts may be in flight.
	limit int
	// lastSent is when the last attempt was sent.
	lastSent    time.Time
	pausedUntil time.Time
	// pause is half of the next pause at limit 1, before the random factor.
	pause time.Duration
	// refusal is the error of a request that is not sent. It has the status of the last answer that
	// halved the limit or started a pause.
	refusal *NotSentError
	// inFlight counts the writes in flight, including those that wait for the limits and the fence.
	inFlight int
	// changed is closed when waiting attempts must check again.
	changed chan struct{}
}

func (k *kind) isRead() bool { return k.method == http.MethodGet }

// attempts is the state that all attempts of one request share.
type attempts struct {
	begun  int
	waited time.Duration
}

type attemptsKey struct{}

// withAttempts returns a context for all attempts of one request.
func withAttempts(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, &attempts{})
}

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	k := p.kindOf(request)
	limit, err := p.wait(request.Context(), k)
	if err != nil {
		return nil, notSent(err)
	}
	defer p.leave(k)
	response, err := p.next.RoundTrip(request)
	// A caller's cancellation is no sign of the API's health.
	if err == nil || !isHeldBack(err) && request.Context().Err() == nil {
		p.note(k, limit, response, err)
	}
	return response, err
}

func (p *paced) kindOf(request *http.Request) *kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := request.Method + " " + serviceOf(request)
	if p.kinds[name] == nil {
		p.kinds[name] = &kind{method: request.Method, changed: make(chan struct{})}
	}
	return p.kinds[name]
}

// wait returns the kind's limit once an attempt may be sent, or an error if it must not be.
func (p *paced) wait(ctx context.Context, k *kind) (limit int, err error) {
	shared, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		shared = &attempts{}
	}
	held := shared.begun > 0
	shared.begun++
	for {
		left := maxPaceWait - shared.waited
		limit, until, err := p.admit(ctx, k, left)
		switch {
		case err != nil:
			return 0, err
		case limit > 0 && k.isRead() && held:
			return limit, p.reads.Wait(ctx)
		case limit > 0:
			return limit, nil
		}
		held = true
		start := p.clock.Now()
		err = sleepUntil(ctx, p.clock, min(until.duration, left), until.changed)
		shared.waited += p.clock.Since(start)
		if err != nil {
			return 0, fmt.Errorf("waiting to send the request: %w", err)
		}
	}
}

// delay is how long an attempt waits: for the duration, or until changed is closed.
type delay struct {
	duration time.Duration
	changed  <-chan struct{}
}

// admit returns the kind's limit if an attempt may be sent now, or 0 and the delay. left is how
// long its request may still wait; it does not wait at all for a longer pause.
func (p *paced) admit(ctx context.Context, k *kind, left time.Duration) (limit int, until delay, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	paused := k.pausedUntil.Sub(now)
	if paused <= 0 && now.Sub(k.lastSent) >= limitTTL {
		k.limit, k.pause, k.refusal = 1, 0, errTooMany
	}
	hangs := k.lastSent.Add(max(hangingAfter, k.pause/2)).Sub(now)
	tooLong := paused > left
	if deadline, ok := ctx.Deadline(); ok {
		tooLong = tooLong || paused > deadline.Sub(now)
	}
	switch {
	case ctx.Err() != nil:
		return 0, delay{}, ctx.Err()
	case left <= 0, tooLong:
		return 0, delay{}, k.refusal
	case paused > 0:
		return 0, delay{paused, k.changed}, nil
	case !k.isRead() && k.inFlight >= k.limit && hangs > 0:
		return 0, delay{hangs, k.changed}, nil
	}
	k.lastSent = now
	if !k.isRead() {
		k.inFlight++
	}
	return k.limit, delay{}, nil
}

// leave ends an attempt, and wakes the waiting ones to check again.
func (p *paced) leave(k *kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !k.isRead() {
		k.inFlight--
	}
	close(k.changed)
	k.changed = make(chan struct{})
}

// note adjusts the kind's limit and pause after an attempt. limit is the kind's when it was sent.
func (p *paced) note(k *kind, limit int, response *http.Response, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	switch {
	case !k.isRead() && isFailure(k.method, response, err):
		k.limit, k.refusal = max(k.limit/2, 1), refusalAfter(response, err)
		if limit == 1 {
			k.pause = min(max(2*k.pause, firstPause), maxPause)
			k.holdUntil(now.Add(p.times(k.pause, 0.5)))
		}
	case !k.isRead():
		k.limit, k.pause = min(2*k.limit, maxInFlight), k.pause/2
	}
	if asked := retryAfter(response, now); asked > 0 {
		k.refusal = refusalAfter(response, err)
		k.holdUntil(now.Add(p.times(asked, 1)))
	}
}

// isFailure reports whether more writes of the kind would be a storm: after no answer, 429, 5xx or
// a gateway's page; after a status that is not about the single request, such as a refused token
// (401) or a locked (423) or unpaid (402) project; and after 409 to a POST, which means that the
// cloud is busy. The manager repeats all of these after 5 s.
func isFailure(method string, response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch response.StatusCode {
	case http.StatusConflict:
		if method == http.MethodPost {
			return true
		}
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
		http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
	default:
		return response.StatusCode >= http.StatusMultipleChoices || isForeign(response)
	}
	return isForeign(response)
}

// holdUntil starts a pause, unless a later end is already set.
func (k *kind) holdUntil(end time.Time) {
	if end.After(k.pausedUntil) {
		k.pausedUntil = end
	}
}

// times returns the duration times a random factor from least to least + 0.5.
func (p *paced) times(duration time.Duration, least float64) time.Duration {
	return time.Duration(float64(duration) * (least + p.jitter()/2))
}

// refusalAfter returns a refusal with the answer's status, not its text: that may repeat the other
// request's content, such as userData, and varies from answer to answer.
func refusalAfter(response *http.Response, err error) *NotSentError {
	if err != nil {
		return &NotSentError{Err: errors.New("not sent: earlier requests of this kind got no answer")}
	}
	return &NotSentError{StatusCode: response.StatusCode,
		Err: fmt.Errorf("not sent: earlier requests of this kind failed with status %d", response.StatusCode)}
}

// maxRetryAfter is the longest wait that a Retry-After header can ask for.
const maxRetryAfter = 60 * time.Second

// retryAfter returns the Retry-After of a 429 or 503, given in seconds or as a date; 0 without one.
func retryAfter(response *http.Response, now time.Time) time.Duration {
	if response == nil {
		return 0
	}
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := response.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		wait = date.Sub(now)
	}
	return max(0, min(wait, maxRetryAfter))
}

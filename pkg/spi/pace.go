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
	// firstPause follows a failure. It doubles with each consecutive one, up to maxPause. Each pause
	// is multiplied by a random factor between 0.5 and 1, and a Retry-After by one between 1 and 1.5:
	// sidecars that were refused together must not come back together.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// maxPaceWait limits how long a write waits for pauses, all its attempts together. Then the
	// manager calls again, with the then current Secret and Machine.
	maxPaceWait = time.Minute
)

// pause is the time after a failure in which no request of a group begins: no read of a session, no
// write of a kind, no fetch of a token.
type pause struct {
	// length is the last pause before the random factor; 0 after a success.
	length time.Duration
	until  time.Time
}

// lengthen starts a pause after a request that began at the time began has failed. Of the requests
// that were in flight together, only the first to fail does.
func (p *pause) lengthen(began, now time.Time, random float64) {
	if began.Before(p.until) {
		return
	}
	p.length = min(max(2*p.length, firstPause), maxPause)
	p.until = now.Add(time.Duration(float64(p.length) * (0.5 + random/2)))
}

// holdFor makes the pause at least as long as a Retry-After.
func (p *pause) holdFor(asked time.Duration, now time.Time, random float64) {
	end := now.Add(time.Duration(float64(asked) * (1 + random/2)))
	if asked > 0 && end.After(p.until) {
		p.until = end
	}
}

// paced keeps the writes of a session from becoming a storm when the API fails: hundreds of Machines
// repeat their calls, the manager calls again every 5 s, and a thousand independent sidecars share
// one API.
//
// Each kind of write, such as POST of servers, pauses after a failure (isFailure). After the pause
// one request tries, and the others of the kind wait for its answer. An answer about the request
// itself opens the kind for all; those that waited go on at random times within a second, so that an
// API with a low limit refuses few of them. For the same reason an answer to a request from before
// the pause changes nothing. A write that is answered 429 is sent again when the pause is over.
type paced struct {
	next   http.RoundTripper
	clock  clock.Clock
	jitter func() float64

	mu sync.Mutex
	// kinds has a handful of entries: the SDK's names of writes.
	kinds map[string]*kind
}

// kind is the state of one kind of writes.
type kind struct {
	pause
	// isTried reports whether the request that tries after a pause is under way.
	isTried bool
	// status is that of the last failure; 0 if there was no answer.
	status int
	// changed is closed when waiting requests must check again.
	changed chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return p.next.RoundTrip(request)
	}
	k, left := p.kindOf(request), maxPaceWait
	tries, refusal := p.wait(request.Context(), k, &left)
	if refusal != nil {
		return nil, notSent(refusal)
	}
	for {
		response, err := p.send(request, k, tries)
		if err == nil && response.StatusCode == http.StatusTooManyRequests {
			if tries, refusal = p.wait(request.Context(), k, &left); refusal == nil {
				continue
			}
		}
		return response, err // a 429 says more than why it was not sent again
	}
}

func (p *paced) kindOf(request *http.Request) *kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, _ := operationOf(request)
	if p.kinds[name] == nil {
		p.kinds[name] = &kind{changed: make(chan struct{})}
	}
	return p.kinds[name]
}

// wait waits until a request may be sent, for *left at most, which it shortens. It reports whether the
// request is the one that tries after a pause.
func (p *paced) wait(ctx context.Context, k *kind, left *time.Duration) (tries bool, err error) {
	for isHeld := false; ; {
		p.mu.Lock()
		paused, changed, refusal := k.until.Sub(p.clock.Now()), k.changed, k.refusal()
		admitted := ctx.Err() == nil && paused <= 0 && (k.length == 0 || !k.isTried)
		if admitted && k.length > 0 {
			tries, k.isTried = true, true
		}
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil, admitted && (tries || !isHeld):
			return tries, ctx.Err()
		case *left <= 0:
			return false, refusal
		case admitted: // those that waited do not go on at once: the first that fails holds the others
			paused, isHeld, changed = time.Duration(p.jitter()*float64(firstPause)), false, nil
		case paused <= 0: // another request tries
			paused, isHeld = *left, true
		default:
			isHeld = true
		}
		start := p.clock.Now()
		err := sleepUntil(ctx, p.clock, min(paused, *left), changed)
		if *left -= p.clock.Since(start); err != nil {
			return false, fmt.Errorf("waiting to send the request: %w", err)
		}
	}
}

// refusal returns the error of a request that is not sent. It has the status of the last failure, not
// its text: that may repeat the other request's content, such as userData.
func (k *kind) refusal() error {
	if k.status == 0 {
		return &NotSentError{Err: errors.New("not sent: earlier requests of this kind got no answer")}
	}
	return &NotSentError{StatusCode: k.status,
		Err: fmt.Errorf("not sent: earlier requests of this kind failed with status %d", k.status)}
}

// send sends the request, and changes the kind's pause by the answer.
func (p *paced) send(request *http.Request, k *kind, tries bool) (response *http.Response, err error) {
	began := p.clock.Now()
	defer func() { // even if next panics, another request gets the turn
		p.mu.Lock()
		defer p.mu.Unlock()
		k.isTried = k.isTried && !tries
		p.note(request, k, began, response, err)
		close(k.changed)
		k.changed = make(chan struct{})
	}()
	try, err := rewound(request)
	if err != nil {
		return nil, notSent(err)
	}
	return p.next.RoundTrip(try)
}

// note changes the kind's pause after an answer or error.
func (p *paced) note(request *http.Request, k *kind, began time.Time, response *http.Response, err error) {
	now := p.clock.Now()
	switch {
	case response == nil && (err == nil || isHeldBack(err) || request.Context().Err() != nil):
		// It says nothing of the API: the caller left, or a later link held the request back.
	case !isFailure(response, err):
		if !began.Before(k.until) {
			k.length = 0
		}
	default:
		if k.status = 0; err == nil {
			k.status = response.StatusCode
		}
		k.lengthen(began, now, p.jitter())
		k.holdFor(retryAfter(response), now, p.jitter())
	}
}

// isFailure reports whether more writes of the kind would be a storm: after no answer, a gateway's
// page, 429 or 5xx; and after a status that is not about the single request, such as a refused token
// (401) or a locked (423) or unpaid (402) project. The manager repeats all of these after 5 s.
func isFailure(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusGone,
		http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return isForeign(response)
	default:
		return response.StatusCode >= http.StatusMultipleChoices || isForeign(response)
	}
}

// maxRetryAfter is the longest wait that a Retry-After header can ask for, in seconds.
const maxRetryAfter = 60

// retryAfter returns the Retry-After of a 429 or 503 in seconds; 0 without one.
func retryAfter(response *http.Response) time.Duration {
	if response == nil ||
		response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(max(0, min(seconds, maxRetryAfter))) * time.Second
}

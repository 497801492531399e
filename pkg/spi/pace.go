// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// maxWidth is how many writes of a kind may be under way while none fails.
	maxWidth = 128
	// countsFor is how long an attempt counts as under way. A few that hang hold up nobody.
	countsFor = 5 * time.Second
	// firstPause follows an attempt that fails at width 1. It doubles up to maxPause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// maxPaceWait is how long a request waits here, all its attempts together. Then the
	// manager comes back, with Secret and Machine as they are by then.
	maxPaceWait = time.Minute
	// repeatedFor is how long a request that failed comes after others.
	repeatedFor = time.Minute
)

// paced keeps the calls of a session from becoming a storm when the API fails: hundreds of
// Machines repeat their calls, and the manager comes back every 5 s.
//
// It treats each kind of request, a method and a resource such as POST of servers, by
// itself. A Retry-After in an answer pauses its kind. Of a kind that writes, only so many
// attempts may be under way: its width. A failure (429, 5xx, no answer) halves the width,
// every other answer doubles it. At width 1 a failure is followed by a pause. First attempts
// go before repeated ones, so that what always fails holds up nobody for long.
//
// Reads have no width: Session.Reads bounds them. Those that were held back, and repeated
// ones, take a turn there, so that they do not all come at once.
type paced struct {
	next  http.RoundTripper
	reads *rate.Limiter
	clock clock.Clock

	mu sync.Mutex
	// kinds has a handful of entries: the methods and resources of the API.
	kinds map[string]*kind
}

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	a := p.newAttempt(request)
	defer p.leave(a)
	if err := p.wait(request.Context(), a); err != nil {
		return nil, notSent(err)
	}
	response, err := p.next.RoundTrip(request)
	// A caller that left says nothing about the API.
	if err == nil || !isNotSent(err) && request.Context().Err() == nil {
		p.note(a, response, err)
	}
	return response, err
}

// attempts is what the attempts of one request share.
type attempts struct {
	begun  int
	waited time.Duration
}

type attemptsKey struct{}

// withAttempts returns a context for all attempts of one request.
func withAttempts(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, &attempts{})
}

// attempt is one that waits or is under way.
type attempt struct {
	*kind
	// read says that it is a GET; subject tells other requests of the kind apart.
	read    bool
	subject uint64
	// shared is the request's.
	shared   *attempts
	repeated bool
	// began is when it was sent, widthThen the kind's width then.
	began     time.Time
	widthThen int
}

func (p *paced) newAttempt(request *http.Request) *attempt {
	a := &attempt{kind: p.kindOf(request), read: request.Method == http.MethodGet, shared: &attempts{}}
	if shared, ok := request.Context().Value(attemptsKey{}).(*attempts); ok {
		a.shared = shared
	}
	if !a.read {
		a.subject = subjectOf(request)
	}
	return a
}

// subjectOf is a hash of the request. Two calls for one server, or for the creation of one
// Machine, send the same.
func subjectOf(request *http.Request) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, request.URL.Path)
	if request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			_, _ = io.Copy(hash, body)
		}
	}
	return hash.Sum64()
}

// kind has the state of one kind of requests.
type kind struct {
	width int
	// pausedUntil ends the last pause, which took pause; retryAfter the API's own.
	pausedUntil, retryAfter time.Time
	pause                   time.Duration
	// refusal is the answer to a request that is not sent: what the API answered to the
	// last one that failed.
	refusal *NotSentError
	// queue has the waiting attempts, first ones before repeated ones; underWay the sent
	// ones, the oldest first.
	queue, underWay []*attempt
	// failed is when requests failed, by their subjects.
	failed map[uint64]time.Time
	// changed is closed when those who wait must look again.
	changed chan struct{}
}

func (p *paced) kindOf(request *http.Request) *kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := request.Method + " " + serviceOf(request)
	if p.kinds[name] == nil {
		p.kinds[name] = &kind{
			width: maxWidth, failed: map[uint64]time.Time{}, changed: make(chan struct{}),
			refusal: &NotSentError{Err: errors.New("not sent, too many others are under way")},
		}
	}
	return p.kinds[name]
}

// wait waits until the attempt may be sent. Its error says why it must not be.
func (p *paced) wait(ctx context.Context, a *attempt) error {
	held := a.shared.begun > 0
	a.shared.begun++
	p.join(a)
	for {
		left := maxPaceWait - a.shared.waited
		wait, reason, changed, err := p.admit(ctx, a, left)
		if err != nil {
			return err
		}
		if wait <= 0 {
			break
		}
		start := p.clock.Now()
		err = sleepUntil(ctx, p.clock, min(wait, left), changed)
		elapsed := p.clock.Since(start)
		callWaits.WithLabelValues(string(reason)).Add(elapsed.Seconds())
		a.shared.waited += elapsed
		if err != nil {
			return fmt.Errorf("waiting while the API fails: %w", err)
		}
		held = true
	}
	if a.read && held {
		return WaitForRead(ctx, p.clock, p.reads)
	}
	return nil
}

// join queues an attempt: first ones before repeated ones.
func (p *paced) join(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed, before := a.failed[a.subject]
	a.repeated = before && p.clock.Since(failed) < repeatedFor
	at := slices.IndexFunc(a.queue, func(other *attempt) bool { return other.repeated })
	if a.repeated || at < 0 {
		at = len(a.queue)
	}
	a.queue = slices.Insert(a.queue, at, a)
}

// admit lets an attempt be sent, or returns how long it must wait, unless changed is closed
// before. left is how long its request may wait; a longer pause is not waited for at all.
func (p *paced) admit(ctx context.Context, a *attempt, left time.Duration) (wait time.Duration, _ waitReason, changed <-chan struct{}, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	paused, reason := a.pausedUntil.Sub(now), waitForPace
	if asked := a.retryAfter.Sub(now); asked > max(paused, 0) {
		paused, reason = asked, waitRetryAfter
	}
	tooLong := paused > left
	if deadline, ok := ctx.Deadline(); ok {
		tooLong = tooLong || paused > deadline.Sub(now)
	}
	underWay, oldest := a.count(now)
	switch {
	case ctx.Err() != nil:
		return 0, "", nil, ctx.Err()
	case left <= 0, tooLong:
		return 0, "", nil, a.refusal
	case paused > 0:
		return paused, reason, a.changed, nil
	case !a.read && slices.Index(a.queue, a) >= a.width-underWay:
		return oldest.Add(countsFor).Sub(now), reason, a.changed, nil
	}
	a.began, a.widthThen = now, a.width
	a.queue, a.underWay = without(a.queue, a), append(a.underWay, a)
	return 0, "", nil, nil
}

// count returns how many attempts count as under way, and when the oldest of them began; now
// if there is none: others are about to begin.
func (k *kind) count(now time.Time) (count int, oldest time.Time) {
	for i, a := range k.underWay {
		if now.Sub(a.began) < countsFor {
			return len(k.underWay) - i, a.began
		}
	}
	return 0, now
}

// leave takes an attempt out, and lets those who wait look again.
func (p *paced) leave(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.queue, a.underWay = without(a.queue, a), without(a.underWay, a)
	close(a.changed)
	a.changed = make(chan struct{})
}

func without(attempts []*attempt, a *attempt) []*attempt {
	return slices.DeleteFunc(attempts, func(other *attempt) bool { return other == a })
}

// note draws the conclusions from an answer, or from none.
func (p *paced) note(a *attempt, response *http.Response, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if until := now.Add(retryAfter(response, now)); until.After(now) && until.After(a.retryAfter) {
		a.retryAfter, a.refusal = until, refusalAfter(response, err)
	}
	switch {
	case a.read:
	case err == nil && response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError:
		a.width = min(2*a.width, maxWidth)
		a.pausedUntil, a.pause = time.Time{}, 0
	default:
		a.width = max(a.width/2, 1)
		a.refusal = refusalAfter(response, err)
		maps.DeleteFunc(a.failed, func(_ uint64, at time.Time) bool { return now.Sub(at) >= repeatedFor })
		a.failed[a.subject] = now
		if a.widthThen == 1 {
			a.pause = min(max(2*a.pause, firstPause), maxPause)
			a.pausedUntil = now.Add(a.pause)
		}
	}
}

// refusalAfter has the status of the answer, and not its text: that may repeat what the other
// request sent, userData for one, and differs from answer to answer.
func refusalAfter(response *http.Response, err error) *NotSentError {
	if err != nil {
		return &NotSentError{Err: errors.New("not sent, others get no answer")}
	}
	return &NotSentError{StatusCode: response.StatusCode, Err: fmt.Errorf("not sent, others are answered with status %d", response.StatusCode)}
}

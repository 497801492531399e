// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// pacedAPI is a pace in front of an API that answers when the test says so. Its pauses are the
// longest that there can be.
type pacedAPI struct {
	t     *testing.T
	pace  *paced
	began time.Time

	mu sync.Mutex
	// sent are the requests that came to the API.
	sent []*sentRequest
}

type sentRequest struct {
	at     time.Duration
	answer chan int
}

// noAnswer, gone, notSentBelow and neverWritten are answers that are none; retryIn20s and retryIn2s are 503s with
// that Retry-After. page + a status is a gateway's page with it.
const (
	noAnswer = iota
	gone
	notSentBelow
	neverWritten
	retryIn20s
	retryIn2s
	page = 1000
)

func newPacedAPI(t *testing.T) *pacedAPI {
	t.Helper()
	api := &pacedAPI{t: t, began: time.Now()}
	api.pace = &paced{
		next: roundTripper(api.serve), reads: newReads(clock.RealClock{}, rand.Float64), clock: clock.RealClock{},
		jitter: func() float64 { return 1 }, kinds: map[string]*kind{},
	}
	return api
}

func (a *pacedAPI) serve(request *http.Request) (*http.Response, error) {
	sent := &sentRequest{time.Since(a.began), make(chan int)}
	a.mu.Lock()
	a.sent = append(a.sent, sent)
	a.mu.Unlock()
	switch status := <-sent.answer; status {
	case noAnswer:
		return nil, errors.New("connection reset")
	case gone:
		<-request.Context().Done()
		return nil, request.Context().Err()
	case notSentBelow:
		return nil, notSent(errors.New("too late"))
	case neverWritten:
		return nil, &NotSentError{Attempted: true, Err: errors.New("connection refused")}
	case retryIn20s, retryIn2s:
		after := map[int]string{retryIn20s: "20", retryIn2s: "2"}[status]
		return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody}, nil
	default:
		body := `{"code":1,"msg":"as the API says it"}`
		if status >= page {
			status, body = status-page, "<html>"
		}
		response := &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}
		return response, readBody(response, maxAnswer)
	}
}

// post sends a POST, and returns where its error will come.
func (a *pacedAPI) post(ctx context.Context) <-chan error {
	a.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://iaas.invalid/servers", http.NoBody)
	if err != nil {
		a.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := a.pace.RoundTrip(request); done <- err }()
	synctest.Wait()
	return done
}

// since returns what came after the first so many.
func (a *pacedAPI) since(count int) []*sentRequest {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent[count:])
}

// answerNext sends a POST, the one with that index, and gives it that answer.
func (a *pacedAPI) answerNext(index, answer int) {
	a.t.Helper()
	ctx, leave := context.WithCancel(a.t.Context())
	defer leave()
	done := a.post(ctx)
	if len(a.since(index)) == 0 {
		<-time.After(maxPause)
	}
	a.since(index)[0].answer <- answer
	if answer == gone {
		leave()
	}
	a.t.Logf("attempt %d: %v", index, <-done)
}

// finish answers all that comes with 200 until the end.
func (a *pacedAPI) finish() {
	for answered := 0; ; {
		waiting := a.since(answered)
		if len(waiting) == 0 {
			return
		}
		for _, sent := range waiting {
			select {
			case sent.answer <- http.StatusOK:
			default: // it has its answer
			}
			answered++
		}
	}
}

func TestTheLimitFollowsTheAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		answers []int
		after   time.Duration
		limit   int
	}{
		"nothing was sent":           {nil, 0, 1},
		"a success doubles it":       {[]int{201, 200, 204}, 0, 8},
		"so does a refusal":          {[]int{400, 404, 422}, 0, 8},
		"busy with others":           {[]int{201, 201, 201, 409}, 0, 4},
		"a locked project":           {[]int{201, 201, 201, 423}, 0, 4},
		"an unpaid project":          {[]int{201, 201, 201, 402}, 0, 4},
		"a redirect":                 {[]int{201, 201, 201, 307}, 0, 4},
		"a page with 403":            {[]int{201, 201, 201, page + 403}, 0, 4},
		"a page with 200":            {[]int{201, 201, 201, page + 200}, 0, 4},
		"no connection":              {[]int{201, 201, 201, neverWritten}, 0, 4},
		"a refused token":            {[]int{201, 201, 201, 401}, 0, 4},
		"missing rights say nothing": {[]int{403, 403}, 0, 4},
		"more than 128 never":        {[]int{201, 201, 201, 201, 201, 201, 201, 201}, 0, 128},
		"too many requests":          {[]int{201, 201, 201, 429}, 0, 4},
		"internal error":             {[]int{201, 201, 201, 500}, 0, 4},
		"unavailable":                {[]int{201, 201, 201, 503}, 0, 4},
		"no answer":                  {[]int{201, 201, 201, noAnswer}, 0, 4},
		"each failure halves it":     {[]int{201, 201, 201, 201, 429, 500, noAnswer}, 0, 2},
		"less than 1 never":          {[]int{503, 503, 503}, maxPause, 1},
		"a caller that left":         {[]int{201, 201, gone}, 0, 4},
		"what the limits held back":  {[]int{201, 201, notSentBelow}, 0, 4},
		"a little less than a minute without an attempt": {[]int{201, 201, 201}, time.Minute - time.Second, 8},
		"a minute without an attempt":                    {[]int{201, 201, 201}, time.Minute, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			api := newPacedAPI(t)
			for i, answer := range row.answers {
				api.answerNext(i, answer)
			}
			<-time.After(row.after)
			for range 200 {
				api.post(t.Context())
			}
			if limit := len(api.since(len(row.answers))); limit != row.limit {
				t.Errorf("%d requests are in flight, want %d", limit, row.limit)
			}
			api.finish()
		})
	}
}

// One that hangs holds the others up for 5 s, not for its 30 s, and its answer still counts.
func TestAWriteThatHangsHoldsUpFor5s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		for range 4 {
			api.post(t.Context())
		}
		<-time.After(12 * time.Second)
		hanging := api.since(0)
		if len(hanging) != 3 {
			t.Fatalf("%d are sent within 12 s, want 3", len(hanging))
		}
		for i, sent := range hanging {
			if want := time.Duration(i) * hangingAfter; sent.at != want {
				t.Errorf("attempt %d is sent after %s, want %s", i, sent.at, want)
			}
		}
		for _, answered := range hanging[:2] {
			answered.answer <- http.StatusCreated
		}
		api.post(t.Context())
		if sent := api.since(0); len(sent) != 5 {
			t.Errorf("%d are sent after two of three were answered, want 5", len(sent))
		}
		api.finish()
	})
}

// Answers to requests that were in flight together may ask for different pauses.
func TestAPauseEndsNoLongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		api.answerNext(0, http.StatusCreated)
		api.post(t.Context())
		api.post(t.Context())
		both := api.since(1)
		asked := time.Since(api.began)
		both[1].answer <- retryIn20s
		synctest.Wait()
		both[0].answer <- retryIn2s
		api.post(t.Context())
		<-time.After(maxPaceWait)
		if sent := api.since(3); len(sent) != 1 || sent[0].at != asked+30*time.Second {
			t.Errorf("%d are sent in a minute, want one 30 s after the longer Retry-After", len(sent))
		}
		api.finish()
	})
}

// A failure at limit 1 is followed by a pause; any other answer halves the next one.
func TestPausesAtLimit1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		const second = time.Second
		for i, row := range []struct {
			// waits is how long the attempt waits for the pause after the last answer.
			waits  time.Duration
			answer int
			// idle is how long no attempt comes before.
			idle time.Duration
		}{
			{0, 503, 0}, {second, 429, 0}, {2 * second, noAnswer, 0}, {4 * second, 500, 0}, {8 * second, 503, 0},
			{16 * second, 503, 0}, {30 * second, 503, 0}, {30 * second, 404, 0},
			// The next pause would take 15 s now, and the limit is 2.
			{0, 503, 0}, {0, 503, 0}, {30 * second, 201, 0}, {0, 201, 0},
			// It would take 7.5 s, and the limit is 4.
			{0, 503, 0}, {0, 503, 0}, {0, 503, 0}, {15 * second, 503, 0}, {30 * second, 503, 0},
			// After an hour all begins anew.
			{0, 503, time.Hour}, {second, 201, 0},
		} {
			<-time.After(row.idle)
			asked := time.Since(api.began)
			api.post(t.Context())
			<-time.After(row.waits)
			sent := api.since(i)
			if len(sent) == 0 || sent[0].at != asked+row.waits {
				t.Fatalf("attempt %d is not sent after %s", i, row.waits)
			}
			sent[0].answer <- row.answer
			synctest.Wait()
		}
	})
}

// A request waits for a minute at most, all attempts together, and not at all for what takes
// longer. Sidecars that were refused at the same instant do not come back at the same instant.
func TestWhenAttemptsAreSent(t *testing.T) {
	for name, row := range map[string]struct {
		// asked are the Retry-Afters of the 503s that the request gets, deadline is the caller's.
		asked    []string
		random   float64
		deadline time.Duration
		// seconds from the request to each attempt.
		seconds []float64
	}{
		"the shortest pause":                {[]string{""}, 0, time.Hour, []float64{0, 0.5}},
		"the longest pause":                 {[]string{""}, 1, time.Hour, []float64{0, 1}},
		"the shortest Retry-After":          {[]string{"20"}, 0, time.Hour, []float64{0, 20}},
		"the longest Retry-After":           {[]string{"20"}, 1, time.Hour, []float64{0, 30}},
		"60 s are waited for":               {[]string{"60"}, 0, time.Hour, []float64{0, 60}},
		"60 s in all":                       {[]string{"40", "30"}, 0, time.Hour, []float64{0, 40}},
		"three times":                       {[]string{"25", "25", "25"}, 0, time.Hour, []float64{0, 25, 50}},
		"longer than the caller's deadline": {[]string{"30"}, 0, 5 * time.Second, []float64{0}},
		"within the caller's deadline":      {[]string{"3"}, 0, 5 * time.Second, []float64{0, 3}},
	} {
		bubble(t, name, func(t *testing.T) {
			seen := &arrivals{retryAfter: row.asked, failures: len(row.asked)}
			session := sessionWith(t, seen, row.random)
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			start := time.Now()
			err := apiCalls["DELETE"](ctx, session.API)
			var seconds []float64
			for _, sent := range seen.all() {
				seconds = append(seconds, sent.at.Sub(start).Seconds())
			}
			if !slices.Equal(seconds, row.seconds) {
				t.Errorf("the attempts are sent after %v s, want %v", seconds, row.seconds)
			}
			if failed := len(row.seconds) <= len(row.asked); failed != (err != nil) || isHeldBack(err) {
				t.Errorf("got %v, want the answer to the last attempt", err)
			}
		})
	}
}

func TestARequestInALongQueueIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		api.answerNext(0, http.StatusServiceUnavailable)
		<-time.After(firstPause)
		var all []<-chan error
		for range 20 { // each hangs for 5 s and more
			all = append(all, api.post(t.Context()))
		}
		<-time.After(maxPaceWait)
		if sent := len(api.since(1)); sent != 12 {
			t.Errorf("%d were sent in a minute, want one in 5 s", sent)
		}
		refused := 0
		for _, done := range all {
			select {
			case err := <-done:
				refused++
				var held *NotSentError
				if !errors.As(err, &held) || held.StatusCode != 503 || !strings.Contains(err.Error(), "status 503") {
					t.Errorf("got %v, want that it was not sent for a 503", err)
				}
			default:
			}
		}
		if refused != 8 {
			t.Errorf("%d of 20 were not sent, want 8", refused)
		}
		api.finish()
	})
}

// Reads that are repeated, or that a Retry-After has held back, do not begin all at once.
func TestReadsThatWereHeldBackTakeTurns(t *testing.T) {
	const callers, turn = 40, time.Second / readsPerSecond
	for name, row := range map[string]struct {
		failures   int
		retryAfter []string
		// others is how many reads have their turn before.
		others int
	}{
		"each is repeated":    {failures: callers},
		"after a Retry-After": {failures: 1, retryAfter: []string{"20"}},
		"after other reads":   {failures: callers, others: 24},
	} {
		for _, method := range []string{"LIST", "GET"} {
			bubble(t, method+" "+name, func(t *testing.T) {
				seen := &arrivals{failures: row.failures, retryAfter: row.retryAfter}
				session := sessionWith(t, seen, 0)
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						if err := apiCalls[method](t.Context(), session.API); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				for range row.others {
					session.Reads.limiter.Reserve()
				}
				all.Wait()
				sent := seen.all()
				held, due := sent[row.failures:], sent[0].at.Add(time.Duration(row.others)*turn)
				if len(held) != callers {
					t.Fatalf("%d are held back, want %d", len(held), callers)
				}
				for _, read := range held {
					if read.at.Before(due.Add(-time.Millisecond)) {
						t.Fatalf("one begins after %s, want %s", read.at.Sub(sent[0].at), due.Sub(sent[0].at))
					}
					due = read.at.Add(turn)
				}
			})
		}
	}
}

// A service that is out of order says nothing about others.
func TestRetryAfterPausesItsKindOnly(t *testing.T) {
	const asked = 20 * time.Second
	kindOf := map[string]string{"LIST": "reads of servers", "GET": "reads of servers"}
	for paused := range apiCalls {
		bubble(t, paused, func(t *testing.T) {
			seen := &arrivals{failures: 1, retryAfter: []string{"20"}}
			session := sessionWith(t, seen, 0)
			start := time.Now()
			var all sync.WaitGroup
			all.Go(func() { _ = apiCalls[paused](t.Context(), session.API) })
			synctest.Wait()
			for other := range apiCalls {
				all.Go(func() {
					if err := apiCalls[other](t.Context(), session.API); err != nil {
						t.Errorf("%s: %v", other, err)
					}
					took := time.Since(start)
					if same := cmp.Or(kindOf[other], other) == cmp.Or(kindOf[paused], paused); same != (took >= asked) ||
						took > asked+time.Second {
						t.Errorf("%s takes %s after a Retry-After of a %s", other, took, paused)
					}
				})
			}
			all.Wait()
		})
	}
}

// Whatever a request waits for: if it ends there, its error says that nothing was sent.
func TestWhatWasNotSentSaysSo(t *testing.T) {
	unavailable := iaasmock.Fault{Operation: "CreateServer", Status: http.StatusServiceUnavailable}
	asksFor60s := unavailable
	asksFor60s.Header = http.Header{"Retry-After": {"60"}}
	for name, row := range map[string]struct {
		prepare func(*rig)
		fault   iaasmock.Fault
		// before is how many POSTs get the fault's answer, idle the time after them.
		before int
		idle   time.Duration
		// text is in the error, status in a NotSentError.
		text   string
		status int
	}{
		"the caller left": {text: "context canceled"},
		"for the rate limit": {text: "rate limit: context deadline exceeded",
			prepare: func(r *rig) {
				r.sessions.Limiter = rate.NewLimiter(rate.Every(time.Hour), 1)
				r.sessions.Limiter.Allow()
			}},
		"for the end of a pause of the process": {text: "pause of this process: context deadline exceeded",
			prepare: func(r *rig) {
				r.sessions.Fence = NewFence(clock.RealClock{}, time.Second, hold)
				<-time.After(time.Minute)
			}},
		"for a Retry-After that is too long": {fault: asksFor60s, before: 1, idle: limitTTL, text: "status 503", status: 503,
			prepare: func(r *rig) { r.sessions.Jitter = func() float64 { return 1 } }},
		"for a pause that is too long": {fault: unavailable, before: 5, text: "status 503", status: 503},
		"for a token that does not come": {text: "context deadline exceeded",
			fault: iaasmock.Fault{Operation: "Token", Delay: 20 * time.Second}},
		"for a token endpoint that is down": {fault: iaasmock.Fault{Operation: "Token", Status: 503}, text: "access token"},
		"for a token that is refused":       {fault: refused, text: "access token"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.prepare != nil {
				row.prepare(r)
			}
			if row.fault.Operation != "" {
				r.cloud.Inject(row.fault)
			}
			session := r.session()
			for range row.before {
				_ = apiCalls["POST"](t.Context(), session.API)
			}
			<-time.After(row.idle)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if name == "the caller left" {
				cancel()
			}
			err := apiCalls["POST"](ctx, session.API)
			var held *NotSentError
			if !errors.As(err, &held) || held.StatusCode != row.status || !strings.Contains(err.Error(), row.text) {
				t.Errorf("got %v, want that it was not sent: %s", err, row.text)
			}
			if sent := r.cloud.CallCounts()["CreateServer"]; sent != row.before {
				t.Errorf("%d POSTs were sent, want %d", sent, row.before)
			}
			<-time.After(time.Minute) // for a fetch that goes on
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		status int
		header string
		want   time.Duration
	}{
		"seconds":            {429, "7", 7 * time.Second},
		"a date":             {503, now.Add(9 * time.Second).Format(http.TimeFormat), 9 * time.Second},
		"none":               {429, "", 0},
		"nonsense":           {429, "soon", 0},
		"negative":           {429, "-5", 0},
		"in the past":        {429, now.Add(-time.Hour).Format(http.TimeFormat), 0},
		"too long":           {429, "99999999999", maxRetryAfter},
		"far in the future":  {429, now.Add(time.Hour).Format(http.TimeFormat), maxRetryAfter},
		"of a success":       {200, "7", 0},
		"of another failure": {500, "7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			response := &http.Response{StatusCode: row.status, Header: http.Header{"Retry-After": {row.header}}}
			if got := retryAfter(response, now); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
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

func TestWhichAnswersAreFailuresOfTheirKind(t *testing.T) {
	const said, page = `{"code":1,"msg":"as the API says it"}`, "<html>"
	for name, row := range map[string]struct {
		status int // 0 for no answer
		body   string
		want   bool
	}{
		"created":              {201, `{"id":"a"}`, false},
		"nothing more to say":  {204, "", false},
		"a refusal":            {400, said, false},
		"missing rights":       {403, said, false},
		"not found":            {404, said, false},
		"busy with this one":   {409, said, false},
		"a page with 403":      {403, page, true},
		"a page with 200":      {200, page, true},
		"a redirect":           {307, said, true},
		"a refused token":      {401, said, true},
		"an unpaid project":    {402, said, true},
		"a locked project":     {423, said, true},
		"too many requests":    {429, said, true},
		"internal error":       {500, said, true},
		"a form of the future": {299, page, true},
		"no answer":            {0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := &http.Response{StatusCode: row.status, Body: io.NopCloser(strings.NewReader(row.body))}, error(nil)
			if row.status == 0 {
				response, err = nil, errors.New("connection reset")
			} else if err := readBody(response, maxAnswer); err != nil {
				t.Fatal(err)
			}
			if got := isFailure(response, err); got != row.want {
				t.Errorf("a failure: %t, want %t", got, row.want)
			}
		})
	}
}

// slowAPI answers each POST when the test says so. The session's pauses are the longest that there can be.
type slowAPI struct {
	t       *testing.T
	session *Session

	mu   sync.Mutex
	sent []chan int // where each gets the status of its answer
}

func newSlowAPI(t *testing.T) *slowAPI {
	t.Helper()
	api := &slowAPI{t: t}
	api.session = sessionWith(t, roundTripper(api.serve), 1)
	return api
}

func (a *slowAPI) serve(request *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(request.Context()).WroteHeaders()
	answer := make(chan int)
	a.mu.Lock()
	a.sent = append(a.sent, answer)
	a.mu.Unlock()
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case status := <-answer:
		body := `{"id":"` + testServer + `", "machineType":"g2i.1", "name":"m1", "code":1, "msg":"as the API says it"}`
		return &http.Response{StatusCode: status, Request: request, Body: io.NopCloser(strings.NewReader(body)),
			Header: http.Header{"Content-Type": {"application/json"}}}, nil
	}
}

// post sends so many POSTs, and returns where their errors will come.
func (a *slowAPI) post(ctx context.Context, count int) <-chan error {
	done := make(chan error, count)
	for range count {
		go func() { done <- apiCalls["POST"](ctx, a.session.API) }()
	}
	synctest.Wait()
	return done
}

// answer answers the POSTs that were sent with the indices from first to last.
func (a *slowAPI) answer(status, first, last int) {
	for i := first; i <= last; i++ {
		a.all()[i] <- status
		synctest.Wait()
	}
}

// all returns what was sent so far.
func (a *slowAPI) all() []chan int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent)
}

// wantSent lets time pass, and fails the test unless so many POSTs were sent then, and one less a moment before.
func (a *slowAPI) wantSent(after time.Duration, before, count int) {
	a.t.Helper()
	<-time.After(after - time.Millisecond)
	early := len(a.all())
	<-time.After(time.Millisecond)
	synctest.Wait()
	if sent := len(a.all()); early != before || sent != count {
		a.t.Fatalf("%d requests were sent shortly before %s and %d then, want %d and %d", early, after, sent, before, count)
	}
}

// After a failure one request tries, after a longer pause each time; its success lets all others pass. Failures of
// requests that were under way together count once.
func TestOneRequestTriesAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t)
		api.post(t.Context(), 10)
		api.answer(503, 0, 9)
		api.post(t.Context(), 20)
		count := 10
		for _, pause := range []int{1, 2, 4, 8} {
			api.wantSent(time.Duration(pause)*time.Second, count, count+1)
			api.answer(500, count, count)
			count++
		}
		api.wantSent(16*time.Second, count, count+1)
		api.answer(201, count, count)
		api.wantSent(time.Second, 15, 30) // all others
		api.answer(400, 15, 29)
		api.post(t.Context(), 1)
		api.answer(503, 30, 30)
		api.post(t.Context(), 1)
		api.wantSent(time.Second, 31, 32)
		api.answer(201, 31, 31)
	})
}

// What was sent before a pause may be answered in it. Successes then would let too many pass.
func TestAnEarlierRequestsAnswerChangesNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t)
		api.post(t.Context(), 3)
		<-time.After(time.Second / 2)
		api.answer(503, 0, 0)
		api.post(t.Context(), 1)
		api.answer(201, 1, 1)
		api.answer(503, 2, 2)
		api.wantSent(time.Second, 3, 4)
		api.answer(201, 3, 3)
		api.post(t.Context(), 2)
		api.wantSent(time.Millisecond, 6, 6)
		api.answer(201, 4, 5)
	})
}

func TestWhoGivesUpHandsTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t)
		api.post(t.Context(), 1)
		api.answer(503, 0, 0)
		ctx, leave := context.WithCancel(t.Context())
		api.post(ctx, 1)
		api.wantSent(time.Second, 1, 2)
		api.post(t.Context(), 2)
		leave()
		synctest.Wait()
		api.wantSent(time.Millisecond, 3, 3)
		api.answer(201, 2, 2)
		api.wantSent(time.Second, 3, 4)
		api.answer(201, 3, 3)
	})
}

// A request waits for a minute at most, and is not sent then. Its error has the status for which it waited.
func TestARequestThatWaitedAMinuteIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newSlowAPI(t)
		api.post(t.Context(), 1)
		api.answer(503, 0, 0)
		done := api.post(t.Context(), 20)
		api.wantSent(time.Second, 1, 2)
		<-time.After(24 * time.Second)
		api.answer(503, 1, 1) // ends one of the 20
		api.wantSent(2*time.Second, 2, 3)
		api.wantSent(30*time.Second, 3, 3) // times out; its pause would end after 61 s
		<-time.After(3*time.Second + time.Millisecond)
		if len(done) != 20 || len(api.all()) != 3 {
			t.Fatalf("%d of 20 have ended after a minute, %d were sent", len(done), len(api.all()))
		}
		held := 0
		for range 20 {
			if err := <-done; isHeldBack(err) && strings.Contains(err.Error(), "got no answer") {
				held++
			}
		}
		if held != 18 {
			t.Errorf("%d of 20 say that they were not sent, and why, want 18", held)
		}
	})
}

// A write that is answered 429 is sent again when the pause is over. Sidecars that were refused at the same instant do
// not come back at the same instant.
func TestWhenAWriteThatWasTooManyIsSentAgain(t *testing.T) {
	for name, row := range map[string]struct {
		// asked are the Retry-Afters of the 429s that the request gets, deadline is the caller's.
		asked    []string
		random   float64
		deadline time.Duration
		// seconds from the request to each attempt.
		seconds []float64
	}{
		"the shortest pauses":               {[]string{"", "", ""}, 0, time.Hour, []float64{0, 0.5, 1.5, 3.5}},
		"the longest pauses":                {[]string{"", "", ""}, 1, time.Hour, []float64{0, 1, 3, 7}},
		"the shortest Retry-After":          {[]string{"20"}, 0, time.Hour, []float64{0, 20}},
		"the longest Retry-After":           {[]string{"20"}, 1, time.Hour, []float64{0, 30}},
		"60 s are waited for":               {[]string{"99999999999"}, 0, time.Hour, []float64{0, 60}},
		"no number of seconds":              {[]string{"soon", "-5"}, 1, time.Hour, []float64{0, 1, 3}},
		"60 s in all":                       {[]string{"40", "30"}, 0, time.Hour, []float64{0, 40}},
		"longer than the caller's deadline": {[]string{"30"}, 0, 5 * time.Second, []float64{0}},
	} {
		for _, method := range []string{"POST", "PATCH", "DELETE"} {
			bubble(t, method+", "+name, func(t *testing.T) {
				seen := &arrivals{retryAfter: row.asked, failures: len(row.asked), status: http.StatusTooManyRequests}
				session := sessionWith(t, seen, row.random)
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				start := time.Now()
				err := apiCalls[method](ctx, session.API)
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
}

// A Retry-After holds all reads of the session back, or all writes of a kind, and nothing else.
func TestRetryAfterPausesItsKindOnly(t *testing.T) {
	const asked = 20 * time.Second
	isRead := map[string]bool{"LIST": true, "GET": true, "NICs": true}
	for paused := range apiCalls {
		bubble(t, paused, func(t *testing.T) {
			seen := &arrivals{failures: 1, retryAfter: []string{"20"}, status: http.StatusTooManyRequests}
			session := sessionWith(t, seen, 0)
			start := time.Now()
			var all sync.WaitGroup
			all.Go(func() { _ = apiCalls[paused](t.Context(), session.API) })
			synctest.Wait()
			for other := range apiCalls {
				all.Go(func() {
					if isRead[other] {
						_ = session.Reads.Wait(t.Context())
					}
					if err := apiCalls[other](t.Context(), session.API); err != nil {
						t.Errorf("%s: %v", other, err)
					}
					took, same := time.Since(start), other == paused || isRead[other] && isRead[paused]
					if same != (took >= asked) || took > asked+time.Second {
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
	for name, row := range map[string]struct {
		prepare func(*rig)
		fault   iaasmock.Fault
		// before is how many POSTs get the fault's answer.
		before int
		text   string
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
		"for a pause of the kind": {before: 1, text: "context deadline exceeded",
			fault: iaasmock.Fault{Operation: "CreateServer", Status: http.StatusServiceUnavailable,
				Header: http.Header{"Retry-After": {"60"}}}},
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
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if name == "the caller left" {
				cancel()
			}
			if err := apiCalls["POST"](ctx, session.API); !isHeldBack(err) || !strings.Contains(err.Error(), row.text) {
				t.Errorf("got %v, want that it was not sent: %s", err, row.text)
			}
			if sent := r.cloud.CallCounts()["CreateServer"]; sent != row.before {
				t.Errorf("%d POSTs were sent, want %d", sent, row.before)
			}
			<-time.After(time.Minute) // for a fetch that goes on
		})
	}
}

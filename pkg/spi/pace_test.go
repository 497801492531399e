// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// pacedAPI is a pace in front of an API that answers when the test says so.
type pacedAPI struct {
	t     *testing.T
	pace  *paced
	began time.Time

	mu   sync.Mutex
	sent []*sentRequest
}

// sentRequest is one that came to the API.
type sentRequest struct {
	name   string
	at     time.Duration
	answer chan int
}

// noAnswer, gone and notSentBelow are answers that are none.
const (
	noAnswer = iota
	gone
	notSentBelow
)

func newPacedAPI(t *testing.T) *pacedAPI {
	t.Helper()
	api := &pacedAPI{t: t, began: time.Now()}
	api.pace = &paced{next: roundTripper(api.serve), clock: clock.RealClock{}, reads: rate.NewLimiter(readsPerSecond, 1), kinds: map[string]*kind{}}
	return api
}

func (a *pacedAPI) serve(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	sent := &sentRequest{string(body), time.Since(a.began), make(chan int)}
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
	default:
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}
}

// post sends the POST for a Machine, and returns where its error will come.
func (a *pacedAPI) post(ctx context.Context, name string) <-chan error {
	a.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://iaas.invalid/servers", strings.NewReader(name))
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

// narrow lets requests fail until the width is 1, and returns how many there were.
func (a *pacedAPI) narrow() int {
	const failures = 7 // 128 is 2 to the power of 7
	before := len(a.since(0))
	for i := range failures {
		a.post(a.t.Context(), fmt.Sprint("narrows ", i))
	}
	for _, sent := range a.since(before) {
		sent.answer <- http.StatusServiceUnavailable
	}
	synctest.Wait()
	return failures
}

func TestTheWidthFollowsTheAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		answers []int
		width   int
	}{
		"nothing comes":              {nil, 128},
		"more than 128 never":        {[]int{201, 200, 204}, 128},
		"too many requests":          {[]int{429}, 64},
		"internal error":             {[]int{500}, 64},
		"unavailable":                {[]int{503}, 64},
		"no answer":                  {[]int{noAnswer}, 64},
		"each failure halves it":     {[]int{429, 500, 503, noAnswer}, 8},
		"less than 1 never":          {[]int{503, 503, 503, 503, 503, 503, 503, 503}, 1},
		"a success doubles it":       {[]int{503, 503, 503, 201}, 32},
		"so does a refusal":          {[]int{503, 503, 400, 404, 409}, 128},
		"a caller that left":         {[]int{503, gone}, 64},
		"what the limits held back":  {[]int{503, notSentBelow}, 64},
		"missing rights say nothing": {[]int{503, 401, 503, 403}, 128},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newPacedAPI(t)
				ctx, leave := context.WithCancel(t.Context())
				for i := range row.answers {
					api.post(ctx, fmt.Sprint("first ", i))
				}
				for i, sent := range api.since(0) {
					sent.answer <- row.answers[i]
					if row.answers[i] == gone {
						leave()
					}
					synctest.Wait()
				}
				leave()
				for i := range 200 {
					api.post(t.Context(), fmt.Sprint("then ", i))
				}
				if width := len(api.since(len(row.answers))); width != row.width {
					t.Errorf("%d requests are under way, want %d", width, row.width)
				}
				api.finish()
			})
		})
	}
}

// What hangs holds up others for 5 s, and its answer still counts.
func TestAnAttemptCountsAsUnderWayFor5s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		before := api.narrow()
		for i := range 4 {
			api.post(t.Context(), fmt.Sprint("hangs ", i))
		}
		<-time.After(12 * time.Second)
		hanging := api.since(before)
		for i, sent := range hanging {
			if want := time.Duration(i) * countsFor; sent.at != want {
				t.Errorf("attempt %d is sent after %s, want %s", i, sent.at, want)
			}
		}
		hanging[0].answer <- http.StatusCreated // the width is 2 now
		api.post(t.Context(), "next")
		if sent := api.since(before); len(sent) != 4 {
			t.Errorf("%d are sent after one of three was answered, want 4", len(sent))
		}
		api.finish()
	})
}

// At width 1 a failure is followed by a pause, which any other answer ends.
func TestPausesAtWidth1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		before := api.narrow()
		const second = time.Second
		for i, row := range []struct {
			// waits is how long the attempt waits for the pause after the last answer.
			waits  time.Duration
			answer int
		}{
			{0, 503}, {second, 429}, {2 * second, noAnswer}, {4 * second, 500}, {8 * second, 503},
			{16 * second, 503}, {30 * second, 503}, {30 * second, 404},
			{0, 503}, // began at width 2
			{0, 503}, {second, 503}, {2 * second, 201}, {0, 503}, {0, 503}, {second, 201},
		} {
			asked := time.Since(api.began)
			api.post(t.Context(), fmt.Sprint(i))
			<-time.After(row.waits)
			sent := api.since(before + i)
			if len(sent) == 0 || sent[0].at != asked+row.waits {
				t.Fatalf("attempt %d is not sent after %s", i, row.waits)
			}
			sent[0].answer <- row.answer
			synctest.Wait()
		}
	})
}

// What has failed in the last minute, in whatever call, comes after all others.
func TestFirstAttemptsGoFirst(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"failed just now":      {0, []string{"new 1", "new 2", "old 1", "old 2"}},
		"failed a minute ago":  {time.Minute, []string{"old 1", "old 2", "new 1", "new 2"}},
		"failed a little less": {time.Minute - time.Second, []string{"new 1", "new 2", "old 1", "old 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newPacedAPI(t)
				for _, name := range []string{"old 1", "old 2"} {
					api.post(t.Context(), name)
				}
				for _, sent := range api.since(0) {
					sent.answer <- http.StatusTooManyRequests
				}
				<-time.After(row.after)
				before := 2 + api.narrow()
				for _, name := range []string{"blocks", "old 1", "old 2", "new 1", "new 2"} {
					api.post(t.Context(), name)
				}
				var order []string
				for i := range 5 {
					sent := api.since(before + i)[0]
					order = append(order, sent.name)
					sent.answer <- http.StatusServiceUnavailable
					<-time.After(time.Second << i) // the pause
				}
				if order = order[1:]; !slices.Equal(order, row.want) {
					t.Errorf("they are sent in the order %v, want %v", order, row.want)
				}
			})
		})
	}
}

// What failed is forgotten after a minute.
func TestTheMemoryOfFailuresIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		before := 0
		for ; before < 200; before++ {
			api.post(t.Context(), fmt.Sprint(before))
			api.since(before)[0].answer <- http.StatusServiceUnavailable
			<-time.After(maxPause)
		}
		synctest.Wait()
		if known := len(api.pace.kinds["POST servers"].failed); known > 3 {
			t.Errorf("%d failures are remembered, one comes every %s", known, maxPause)
		}
	})
}

// A request waits for a minute at most, all attempts together, and not at all for what takes
// longer.
func TestNoRequestWaitsForLongerThanAMinute(t *testing.T) {
	const second = time.Second
	for name, row := range map[string]struct {
		// asked are the Retry-Afters that the request gets, deadline is the caller's.
		asked    []string
		deadline time.Duration
		sent     int
		within   time.Duration
	}{
		"60 s are waited for":               {[]string{"60"}, time.Hour, 2, 61 * second},
		"60 s in all":                       {[]string{"40", "30"}, time.Hour, 2, 41 * second},
		"three times":                       {[]string{"25", "25", "25"}, time.Hour, 3, 52 * second},
		"an hour is 60 s":                   {[]string{"3600"}, time.Hour, 2, 61 * second},
		"longer than the caller's deadline": {[]string{"30"}, 5 * second, 1, second},
		"within the caller's deadline":      {[]string{"3"}, 5 * second, 2, 4 * second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &arrivals{retryAfter: row.asked, failures: len(row.asked)}
				session := sessionOver(t, seen)
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				start := time.Now()
				err := apiCalls["DELETE"](ctx, session.API)
				if took, sent := time.Since(start), seen.of("DELETE"); took > row.within || sent != row.sent {
					t.Errorf("%d attempts in %s, want %d within %s", sent, took, row.sent, row.within)
				}
				if failed := row.sent <= len(row.asked); failed != (err != nil) || isNotSent(err) {
					t.Errorf("got %v, want the answer to the last attempt", err)
				}
			})
		})
	}
}

func TestARequestInALongQueueIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPacedAPI(t)
		before := api.narrow()
		var all []<-chan error
		for i := range 20 { // each hangs for 5 s and more
			all = append(all, api.post(t.Context(), fmt.Sprint(i)))
		}
		<-time.After(maxPaceWait)
		if sent := len(api.since(before)); sent != 12 {
			t.Errorf("%d were sent in a minute, want one in 5 s", sent)
		}
		var held *NotSentError
		if err := <-all[19]; !errors.As(err, &held) || held.StatusCode != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "status 503") {
			t.Errorf("got %v, want that it was not sent for a 503", err)
		}
		api.finish()
	})
}

// A service that is out of order says nothing about others.
func TestRetryAfterPausesItsKindOnly(t *testing.T) {
	const asked = 20 * time.Second
	kindOf := map[string]string{"LIST": "reads of servers", "GET": "reads of servers"}
	for paused := range apiCalls {
		t.Run(paused, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &arrivals{failures: 1, retryAfter: []string{"20"}}
				session := sessionOver(t, seen)
				before := counted(t, "stackit_api_wait_seconds_total", "retry_after")
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
						if same := cmp.Or(kindOf[other], other) == cmp.Or(kindOf[paused], paused); same != (took >= asked) || took > asked+time.Second {
							t.Errorf("%s takes %s after a Retry-After of a %s", other, took, paused)
						}
					})
				}
				all.Wait()
				if waits := counted(t, "stackit_api_wait_seconds_total", "retry_after") - before; waits < asked.Seconds()-0.01 { // sums are rounded
					t.Errorf("%v seconds of waiting are counted", waits)
				}
			})
		})
	}
}

// Whatever a request waits for: if it ends there, its error says that nothing was sent.
func TestWhatWasNotSentSaysSo(t *testing.T) {
	unavailable := iaasmock.Fault{Operation: "CreateServer", Status: http.StatusServiceUnavailable}
	asksFor30s := unavailable
	asksFor30s.Header = http.Header{"Retry-After": {"30"}}
	for name, row := range map[string]struct {
		prepare func(*rig)
		fault   iaasmock.Fault
		// before is how many POSTs get the fault's answer.
		before int
		// text is in the error, status in a NotSentError.
		text   string
		status int
	}{
		"the caller left": {text: "context canceled"},
		"for the rate limit": {text: "rate limit: context deadline exceeded",
			prepare: func(r *rig) { r.sessions.Limiter = rate.NewLimiter(rate.Every(time.Hour), 0) }},
		"for the end of a pause of the process": {text: "pause of this process: context deadline exceeded",
			prepare: func(r *rig) {
				r.sessions.Fence = NewFence(clock.RealClock{}, time.Second, hold)
				<-time.After(time.Minute)
			}},
		"for a Retry-After that is too long": {fault: asksFor30s, before: 1, text: "status 503", status: 503},
		"for a pause that is too long":       {fault: unavailable, before: 11, text: "status 503", status: 503},
		"for a token that does not come":     {fault: iaasmock.Fault{Operation: "Token", Delay: 20 * time.Second}, text: "context deadline exceeded"},
		"for a token endpoint that is down":  {fault: iaasmock.Fault{Operation: "Token", Status: 503}, text: "access token"},
		"for a token that is refused":        {fault: iaasmock.Fault{Operation: "Token", Status: 401}, text: "access token"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newVirtualRig(t)
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
		})
	}
}

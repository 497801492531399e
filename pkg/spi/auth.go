// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// authenticated adds the access token to every request.
type authenticated struct {
	next   http.RoundTripper
	tokens *tokenSource
}

// RoundTrip sends the request with a token. On a 401 the token is dropped and
// the request sent once more with a new one: tokens can be revoked before they
// expire, and the request was surely not accepted.
func (a *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, token, err := a.send(request, nil)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	a.tokens.drop(token)
	again, _, err := a.send(request, response)
	return again, err
}

// send returns the answer, and the token that the request had. before is the answer for
// which the request is sent again, nil the first time.
func (a *authenticated) send(request *http.Request, before *http.Response) (*http.Response, string, error) {
	token, err := a.tokens.get(request.Context())
	if err != nil {
		return nil, "", notSent(err)
	}
	try, err := rewound(request)
	if err != nil {
		return nil, "", notSent(err)
	}
	try.Header.Set("Authorization", "Bearer "+token)
	if before != nil {
		countRetry(request, before)
	}
	response, err := a.next.RoundTrip(try)
	return response, token, err
}

const (
	// expiryLeeway renews a token before it expires under way.
	expiryLeeway = 10 * time.Second
	// shortestLifetime a token is used for at least: a local clock that is ahead
	// would otherwise ask for a new one with every call. If it has really expired,
	// the API's 401 tells.
	shortestLifetime = 30 * time.Second
	// unknownLifetime is assumed of a token that does not say when it expires.
	unknownLifetime = 5 * time.Minute
	// tokenAttempts bounds how often a fetch asks an endpoint that is down.
	tokenAttempts = 3
	// firstTokenPause is the time from a failed fetch to the next. It doubles with each
	// failure in a row, up to maxTokenPause.
	firstTokenPause = time.Second
	maxTokenPause   = 30 * time.Second
)

// exchange asks a token endpoint for an access token, once, through the transport: what it
// shows of itself is a signed assertion (key.go) or a workload identity's token (identity.go).
// A *CredentialsError says that nothing was sent. Signing takes up to 0.1 s of a processor: before it
// signs it asks whether the fetch is abandoned, and returns errAbandoned if it is.
type exchange func(transport http.RoundTripper, isAbandoned func() bool) (token string, err error)

// tokenSource fetches and keeps the access token of one service account.
type tokenSource struct {
	exchange exchange
	next     http.RoundTripper
	clock    clock.Clock
	jitter   func() float64

	fetches singleflight.Group
	// waiting is how many callers wait for a fetch.
	waiting atomic.Int64
	mu      sync.Mutex
	token   string
	expires time.Time
	// failure is the error of the last fetch, and everybody's until retryAt; nil if it
	// succeeded. pause is the time between the two.
	failure error
	retryAt time.Time
	pause   time.Duration
}

func newTokenSource(exchange exchange, next http.RoundTripper, clock clock.Clock, jitter func() float64) *tokenSource {
	return &tokenSource{exchange: exchange, next: next, clock: clock, jitter: jitter}
}

// errAbandoned says that a fetch ended because nobody waited for it.
var errAbandoned = errors.New("nobody waits for the access token")

// get returns a valid token, and fetches one if there is none. Concurrent callers
// share one fetch; a caller whose context ends leaves it to the others.
func (t *tokenSource) get(ctx context.Context) (string, error) {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for ctx.Err() == nil {
		if token, err := t.known(); token != "" || err != nil {
			return token, err
		}
		select {
		case <-ctx.Done():
		case fetched := <-t.fetches.DoChan("", t.renew):
			if errors.Is(fetched.Err, errAbandoned) {
				continue // it was, before this caller came
			}
			token, _ := fetched.Val.(string)
			return token, fetched.Err
		}
	}
	return "", ctx.Err()
}

// known returns the token that was fetched last, or why there is none; neither if a fetch
// is due.
func (t *tokenSource) known() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	switch {
	case t.token != "" && now.Before(t.expires.Add(-expiryLeeway)):
		return t.token, nil
	case t.failure != nil && now.Before(t.retryAt):
		return "", t.failure
	default:
		return "", nil
	}
}

func (t *tokenSource) renew() (any, error) {
	if token, err := t.known(); token != "" || err != nil {
		return token, err // another fetch ended just before this one began
	}
	token, expires, err := t.fetchWithRetry()
	if errors.Is(err, errAbandoned) {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure = err; err != nil {
		t.pause = min(max(2*t.pause, firstTokenPause), maxTokenPause)
		t.retryAt = t.clock.Now().Add(t.pause)
		return "", err
	}
	t.token, t.expires, t.pause = token, expires, 0
	return token, nil
}

// drop forgets the token, if it is still the one that was refused.
func (t *tokenSource) drop(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == refused {
		t.token = ""
	}
}

func (t *tokenSource) isAbandoned() bool { return t.waiting.Load() == 0 }

// fetchWithRetry asks again if the endpoint is down. Every attempt signs a new
// assertion: one that was seen may be refused as a replay.
func (t *tokenSource) fetchWithRetry() (token string, expires time.Time, err error) {
	for attempt := 1; ; attempt++ {
		if t.isAbandoned() {
			return "", time.Time{}, errAbandoned
		}
		token, expires, err = t.fetchOnce()
		if errors.Is(err, errAbandoned) {
			return "", time.Time{}, err
		}
		result := tokenResult(err)
		tokenFetches.WithLabelValues(result).Inc()
		if result != tokenFailed || attempt == tokenAttempts {
			return token, expires, err
		}
		<-t.clock.After(backoff(attempt, t.jitter()))
	}
}

func tokenResult(err error) string {
	switch {
	case err == nil:
		return tokenGranted
	case IsRefused(err):
		return tokenRefused
	default:
		return tokenFailed
	}
}

// accessToken asks one of the SDK's flows, which may panic: on some answers, and crypto/rsa with
// a key that has an even factor.
func accessToken(flow interface{ GetAccessToken() (string, error) }) (token string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("unexpected failure (%T)", cause)
		}
	}()
	return flow.GetAccessToken()
}

// fetchOnce makes one exchange.
func (t *tokenSource) fetchOnce() (string, time.Time, error) {
	next, requested := &dated{next: t.next}, t.clock.Now()
	token, err := t.exchange(next, t.isAbandoned)
	if err != nil {
		return "", time.Time{}, tokenFailure(err, next.date)
	}
	if !isHeaderValue(token) {
		return "", time.Time{}, &TokenError{Err: errors.New("the token endpoint answered without a usable access token")}
	}
	expires := expiry(token, requested)
	if earliest := requested.Add(shortestLifetime); expires.Before(earliest) {
		expires = earliest
	}
	return token, expires, nil
}

// dated notes the Date header of the last answer.
type dated struct {
	next http.RoundTripper
	// date is zero before the first answer, and after one without the header.
	date time.Time
}

// RoundTrip implements http.RoundTripper.
func (d *dated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	d.date = Date(response.Header)
	return response, nil
}

// Date is the clock of who answered, to the second; the zero time if the answer has none.
func Date(header http.Header) time.Time {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// tokenFailure tells refused credentials from an endpoint that is out of order. The body is
// dropped: it may repeat the assertion.
func tokenFailure(err error, date time.Time) error {
	if IsRefused(err) || errors.Is(err, errAbandoned) {
		return err
	}
	var answer *oapierror.GenericOpenAPIError
	if !errors.As(err, &answer) {
		return &TokenError{Err: fmt.Errorf("fetching an access token: %w", err)}
	}
	refused := answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnauthorized ||
		answer.StatusCode == http.StatusForbidden
	return &TokenError{Refused: refused, Date: date,
		Err: fmt.Errorf("fetching an access token: the token endpoint answered with status %d", answer.StatusCode)}
}

// expiry of a token: its exp claim, else a guess. If that is too late a 401 tells, and the
// token is renewed.
func expiry(token string, requested time.Time) time.Time {
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &jwt.RegisteredClaims{})
	if err == nil {
		if exp, err := parsed.Claims.GetExpirationTime(); err == nil && exp != nil {
			return exp.Time
		}
	}
	return requested.Add(unknownLifetime)
}

// isHeaderValue says whether the token can stand in a header.
func isHeaderValue(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

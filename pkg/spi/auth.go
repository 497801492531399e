// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// RoundTrip sends the request with a token. After a 401 it drops the token and sends the request
// once more with a new token: tokens can be revoked before they expire. A POST is sent again only
// if the API itself, not a gateway, refused it.
func (a *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, token, err := a.send(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	a.tokens.drop(token)
	if request.Method == http.MethodPost && isForeign(response) {
		return response, nil
	}
	again, _, err := a.send(request)
	if isHeldBack(err) && request.Context().Err() != nil { // there was no time for the repetition
		again, err = response, nil
	}
	return again, err
}

// send returns the answer, and the request's token.
func (a *authenticated) send(request *http.Request) (*http.Response, string, error) {
	token, err := a.tokens.get(request.Context())
	if err != nil {
		return nil, "", notSent(err)
	}
	try, err := rewound(request)
	if err != nil {
		return nil, "", notSent(err)
	}
	try.Header.Set("Authorization", "Bearer "+token)
	response, err := a.next.RoundTrip(try)
	return response, token, err
}

const (
	// expiryLeeway is how long before its expiry a token is renewed, so that it does not expire in
	// flight.
	expiryLeeway = 10 * time.Second
	// shortestLifetime is the minimum time a token is used: otherwise a local clock that is ahead
	// would fetch a token for every call. If it has really expired, the API answers 401.
	shortestLifetime = 30 * time.Second
	// unknownLifetime is the assumed lifetime of a token without an expiry.
	unknownLifetime = 5 * time.Minute
	// tokenAttempts limits the attempts of one fetch while the endpoint is down.
	tokenAttempts = 3
	// firstTokenPause is the pause after a failed fetch. It doubles with each consecutive failure, up
	// to maxTokenPause.
	firstTokenPause = time.Second
	maxTokenPause   = 30 * time.Second
)

// exchange asks a token endpoint for an access token, once, through the attempt. It presents a
// signed assertion (key.go) or a workload identity's token (identity.go). A *CredentialsError means
// that nothing was sent.
type exchange func(attempt *tokenAttempt) (token string, err error)

// tokenSource fetches and caches the access token of one service account.
type tokenSource struct {
	exchange exchange
	next     http.RoundTripper
	clock    clock.Clock
	jitter   func() float64

	fetches singleflight.Group
	mu      sync.Mutex
	token   string
	expires time.Time
	// failure is the error of the last fetch, which all callers get until retryAt; nil if it
	// succeeded. pause is the time from the failure to retryAt.
	failure error
	retryAt time.Time
	pause   time.Duration
}

func newTokenSource(exchange exchange, next http.RoundTripper, clock clock.Clock, jitter func() float64) *tokenSource {
	return &tokenSource{exchange: exchange, next: next, clock: clock, jitter: jitter}
}

// get returns a valid token, and fetches one if there is none. Concurrent callers share one fetch,
// which continues even if a caller's context ends.
func (t *tokenSource) get(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if token, err := t.known(); token != "" || err != nil {
		return token, err
	}
	select {
	case <-ctx.Done(): // the endpoint is slow, not the API
		return "", &TokenError{Err: fmt.Errorf("waiting for an access token: %w", ctx.Err())}
	case fetched := <-t.fetches.DoChan("", t.renew):
		token, _ := fetched.Val.(string)
		return token, fetched.Err
	}
}

// known returns the cached token, or the error of the last fetch; neither if a fetch is due.
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

// drop forgets the token, unless it was renewed since the refusal.
func (t *tokenSource) drop(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == refused {
		t.token = ""
	}
}

// fetchWithRetry fetches a token, with retries if the endpoint is down. Every attempt signs a new
// assertion: a repeated one may be refused as a replay.
func (t *tokenSource) fetchWithRetry() (token string, expires time.Time, err error) {
	for attempt := 1; ; attempt++ {
		token, expires, err = t.fetchOnce()
		if err == nil || IsRefused(err) || attempt == tokenAttempts {
			return token, expires, err
		}
		<-t.clock.After(backoff(attempt, t.jitter()))
	}
}

// accessToken calls one of the SDK's flows, and recovers from panics: the SDK panics on some
// answers, crypto/rsa on a key that has an even factor.
func accessToken(flow interface{ GetAccessToken() (string, error) }) (token string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in the SDK (%T)", cause)
		}
	}()
	return flow.GetAccessToken()
}

// fetchOnce makes one exchange.
func (t *tokenSource) fetchOnce() (string, time.Time, error) {
	attempt, requested := &tokenAttempt{next: t.next}, t.clock.Now()
	token, err := t.exchange(attempt)
	switch {
	case IsRefused(err): // nothing was sent
		return "", time.Time{}, err
	case err != nil && !attempt.received:
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = withoutAnswer(request.Err)
		}
		return "", time.Time{}, &TokenError{Err: fmt.Errorf("fetching an access token: %w", err)}
	case err != nil, !isHeaderValue(token):
		return "", time.Time{}, tokenFailure(err, attempt.date)
	}
	expires := expiry(token, requested)
	if earliest := requested.Add(shortestLifetime); expires.Before(earliest) {
		expires = earliest
	}
	return token, expires, nil
}

// tokenAttempt is the transport of one exchange. It notes whether the request was sent and
// answered.
type tokenAttempt struct {
	next           http.RoundTripper
	sent, received bool
	// date is the answer's Date header; zero without one.
	date time.Time
}

// RoundTrip implements http.RoundTripper.
func (a *tokenAttempt) RoundTrip(request *http.Request) (*http.Response, error) {
	a.sent = true
	response, err := a.next.RoundTrip(request)
	if a.received = err == nil; a.received {
		a.date = Date(response.Header)
	}
	return response, err
}

// Date returns the time in the Date header, which is the server's clock in whole seconds; the zero
// time if the header is missing or invalid.
func Date(header http.Header) time.Time {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// tokenFailure returns the error for an answer without a usable token; err is the SDK's. The body
// is dropped: it may repeat the assertion, and Gardener takes the SDK's error about a page that is
// not JSON for wrong credentials.
func tokenFailure(err error, date time.Time) error {
	failure := &TokenError{Date: date}
	var answer *oapierror.GenericOpenAPIError
	switch {
	case !errors.As(err, &answer):
		failure.Err = errors.New("the token endpoint answered without a usable access token")
	case isRefusal(answer.StatusCode, answer.Body):
		failure.Refused = true
		failure.Err = fmt.Errorf("the token endpoint refused the credentials with status %d", answer.StatusCode)
	default:
		failure.Err = fmt.Errorf("the token endpoint or a gateway in front of it failed with status %d", answer.StatusCode)
	}
	failure.Err = fmt.Errorf("fetching an access token: %w", failure.Err)
	return failure
}

var (
	// refusals are the codes of RFC 6749, 5.2, with which a token endpoint refuses credentials.
	// accounts.stackit.cloud answers 400 {"error":"invalid_grant"} to a key that was deleted or
	// switched off.
	refusals = []string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_request"}
	// keyRefused matches the same refusal by service-account.api.stackit.cloud: "Key with kid … was not
	// found" (the SDK's core/clients/key_flow.go looks for it, too), or the like about a key that expired
	// or was switched off.
	keyRefused = regexp.MustCompile(`(?i)\bkey with kid \S* ?` +
		`(was not found|has expired|(is|was) (not active|inactive|deactivated|disabled|expired|revoked))\b`)
)

// isRefusal reports whether a token endpoint's answer refuses the credentials. Every other failure
// is an outage: STACKIT's gateway has answered 403 with a page for minutes, and its own JSON has an
// "error" as well, such as "Forbidden".
func isRefusal(status int, body []byte) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
	default:
		return false
	}
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil {
		return false
	}
	text := func(field string) string {
		value, _ := answer[field].(string)
		return value
	}
	return slices.Contains(refusals, text("error")) ||
		slices.ContainsFunc([]string{"error", "msg", "message", "error_description"},
			func(field string) bool { return keyRefused.MatchString(text(field)) })
}

// expiry returns the token's exp claim, or a guess without one. If the guess is too late, a 401
// renews the token.
func expiry(token string, requested time.Time) time.Time {
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &jwt.RegisteredClaims{})
	if err == nil {
		if exp, err := parsed.Claims.GetExpirationTime(); err == nil && exp != nil {
			return exp.Time
		}
	}
	return requested.Add(unknownLifetime)
}

// isHeaderValue reports whether the token is valid in a header.
func isHeaderValue(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

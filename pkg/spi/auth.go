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

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// authenticated adds the access token to every request.
type authenticated struct {
	next   http.RoundTripper
	tokens *tokenSource
	reads  *Reads
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
	isRepeated := true
	switch request.Method {
	case http.MethodPost:
		isRepeated = !isForeign(response)
	case http.MethodGet:
		isRepeated = a.reads.Wait(request.Context()) == nil
	}
	if !isRepeated {
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

// tokenLifetime is how long a token is used. STACKIT's live for 10 minutes; the API answers 401 to
// one that has expired before, which renews it.
const tokenLifetime = 9 * time.Minute

// exchange asks a token endpoint for an access token, once, through the attempt. It presents a
// signed assertion (key.go) or a workload identity's token (identity.go). A *CredentialsError means
// that nothing was sent.
type exchange func(attempt *tokenAttempt) (token string, err error)

// tokenSource fetches and caches the access token of one service account. A fetch is not repeated at
// once: its callers come again, and after a failure it pauses.
type tokenSource struct {
	exchange exchange
	next     http.RoundTripper
	clock    clock.Clock
	jitter   func() float64

	fetches singleflight.Group
	mu      sync.Mutex
	token   string
	expires time.Time
	// failure is the error of the last fetch, which all callers get during the pause; nil if it
	// succeeded.
	failure error
	pause
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
	case t.token != "" && now.Before(t.expires):
		return t.token, nil
	case t.failure != nil && now.Before(t.until):
		return "", t.failure
	default:
		return "", nil
	}
}

func (t *tokenSource) renew() (any, error) {
	if token, err := t.known(); token != "" || err != nil {
		return token, err // another fetch ended just before this one began
	}
	began := t.clock.Now()
	token, err := t.fetch()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure = err; err != nil {
		t.lengthen(began, t.clock.Now(), t.jitter())
		return "", err
	}
	t.token, t.expires, t.length = token, began.Add(tokenLifetime), 0
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

// fetch makes one exchange.
func (t *tokenSource) fetch() (string, error) {
	attempt := &tokenAttempt{next: t.next}
	token, err := t.exchange(attempt)
	switch {
	case IsRefused(err): // nothing was sent
		return "", err
	case err != nil && !attempt.received:
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = errors.New(ownText(request.Err))
		}
		return "", &TokenError{Err: fmt.Errorf("fetching an access token from %s: %w", cut(attempt.host), err)}
	case err != nil, !isHeaderValue(token):
		return "", tokenFailure(err, attempt)
	}
	return token, nil
}

// tokenAttempt is the transport of one exchange. It notes whether the request was sent and
// answered.
type tokenAttempt struct {
	next           http.RoundTripper
	sent, received bool
	// host is the token endpoint's.
	host string
	// date is the answer's Date header; zero without one.
	date time.Time
}

// RoundTrip implements http.RoundTripper.
func (a *tokenAttempt) RoundTrip(request *http.Request) (*http.Response, error) {
	a.sent, a.host = true, request.URL.Host
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
func tokenFailure(err error, attempt *tokenAttempt) error {
	failure := &TokenError{Date: attempt.date}
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
	failure.Err = fmt.Errorf("fetching an access token from %s: %w", cut(attempt.host), failure.Err)
	return failure
}

var (
	// refusals are the codes of RFC 6749, 5.2, with which a token endpoint refuses credentials.
	// accounts.stackit.cloud answers 400 {"error":"invalid_grant"} to a key that was deleted or
	// switched off.
	refusals = []string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_request"}
	// keyNotFound matches the same refusal by service-account.api.stackit.cloud (the SDK's
	// core/clients/key_flow.go looks for it, too).
	keyNotFound = regexp.MustCompile(`(?i)\bkey with kid \S* ?was not found\b`)
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
	var answer struct {
		Error any `json:"error"` // a text, if it is the endpoint's own
	}
	if json.Unmarshal(body, &answer) != nil {
		return false
	}
	said, _ := Message(body)
	code, _ := answer.Error.(string)
	return slices.Contains(refusals, code) || keyNotFound.MatchString(said)
}

// isHeaderValue reports whether the token is valid in a header.
func isHeaderValue(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

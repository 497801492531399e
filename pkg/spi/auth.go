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
	if request.Method == http.MethodPost && isForeign(response) {
		return response, nil
	}
	if request.Method == http.MethodGet && a.reads.Wait(request.Context()) != nil {
		return response, nil //nolint:nilerr // the 401 says more than that the time is up
	}
	response, _, err = a.send(request)
	return response, err
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

// exchange asks a token endpoint for an access token, once, over the transport. It presents a
// signed assertion (key.go) or a workload identity's token (identity.go). A *CredentialsError means
// that nothing was sent.
type exchange func(transport http.RoundTripper) (token string, err error)

// tokenSource fetches and caches the access token of one service account. A fetch is not repeated at
// once: its callers come again, and after a failure it pauses.
type tokenSource struct {
	exchange exchange
	// endpoint is the URL of the token endpoint, for errors.
	endpoint string
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

// accessToken calls one of the SDK's flows, and recovers from panics: crypto/rsa panics on a key that
// has an even factor.
func accessToken(flow interface{ GetAccessToken() (string, error) }) (token string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in the SDK (%T)", cause)
		}
	}()
	return flow.GetAccessToken()
}

// fetch makes one exchange. Its errors do not repeat what the endpoint answered: it may be the
// assertion, and Gardener takes the SDK's error about a page that is not JSON for wrong credentials.
func (t *tokenSource) fetch() (string, error) {
	token, err := t.exchange(t.next)
	var answer *oapierror.GenericOpenAPIError
	var unanswered *url.Error
	failure := &TokenError{}
	switch {
	case err == nil && token != "", IsRefused(err):
		return token, err
	case errors.As(err, &unanswered):
		failure.Err = errors.New(cut(unanswered.Err.Error()))
	case !errors.As(err, &answer):
		failure.Err = errors.New("no usable access token")
	case isRefusal(answer.StatusCode, answer.Body):
		failure.Refused = true
		failure.Err = fmt.Errorf("the token endpoint refused the credentials with status %d", answer.StatusCode)
	default:
		failure.Err = fmt.Errorf("the token endpoint or a gateway in front of it failed with status %d", answer.StatusCode)
	}
	failure.Err = fmt.Errorf("fetching an access token from %s: %w", cut(t.endpoint), failure.Err)
	return "", failure
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
	var answer struct {
		Error string `json:"error"`
	}
	statuses := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}
	if !slices.Contains(statuses, status) || json.Unmarshal(body, &answer) != nil {
		return false
	}
	said, _ := Message(body)
	return slices.Contains(refusals, answer.Error) || keyNotFound.MatchString(said)
}

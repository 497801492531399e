// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"net/http"
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
	response, token, err := a.send(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	a.tokens.drop(token)
	again, _, err := a.send(request)
	return again, err
}

func (a *authenticated) send(request *http.Request) (*http.Response, string, error) {
	token, err := a.tokens.get(request.Context())
	if err != nil {
		return nil, "", err
	}
	try, err := rewound(request)
	if err != nil {
		return nil, "", err
	}
	try.Header.Set("Authorization", "Bearer "+token)
	response, err := a.next.RoundTrip(try)
	return response, token, err
}

// get returns a valid token, and fetches one if there is none. Concurrent callers
// share one fetch; a caller whose context ends leaves it to the others.
func (t *tokenSource) get(ctx context.Context) (string, error) {
	flight, token := t.join()
	if flight == nil {
		return token, nil
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-flight.done:
		return flight.token, flight.err
	}
}

// join returns the valid token, or the fetch to wait for.
func (t *tokenSource) join() (*fetch, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.clock.Now().Before(t.expires.Add(-expiryLeeway)) {
		return nil, t.token
	}
	if t.flight == nil {
		t.flight = &fetch{done: make(chan struct{})}
		go t.run(t.flight)
	}
	return t.flight, ""
}

func (t *tokenSource) run(flight *fetch) {
	token, expires, err := t.fetchWithRetry()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.token, t.expires = token, expires
	}
	flight.token, flight.err = token, err
	t.flight = nil
	close(flight.done)
}

// drop forgets the token, if it is still the one that was refused.
func (t *tokenSource) drop(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == refused {
		t.token = ""
	}
}

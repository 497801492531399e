// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import "net/http"

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

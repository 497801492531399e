// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CredentialsError means that the credentials cannot be used. It is found without an API call, so a
// retry without a change is useless.
type CredentialsError struct {
	Reason string
	// Identity reports whether the credentials are a workload identity instead of a key.
	Identity bool
}

func (e *CredentialsError) Error() string { return e.Reason }

// identityError returns the CredentialsError of a workload identity.
func identityError(format string, args ...any) error {
	return &CredentialsError{Reason: "the workload identity's " + fmt.Sprintf(format, args...), Identity: true}
}

// ErrNoCredentials means that there is neither a service-account key nor a workload identity.
var ErrNoCredentials = &CredentialsError{
	Reason: "the service account has neither a key nor a workload identity, must have one of them",
}

// TokenError means that no access token could be fetched. Its status code is the token endpoint's,
// never the IaaS API's.
type TokenError struct {
	// Refused is true if the endpoint refused the credentials, false if it was unreachable or failed.
	Refused bool
	// Date is the Date header of the token endpoint's answer; zero without one. Assertions signed with
	// a wrong local clock are refused.
	Date time.Time
	// Err is the cause. It holds no token and no key.
	Err error
}

func (e *TokenError) Error() string { return e.Err.Error() }

func (e *TokenError) Unwrap() error { return e.Err }

// IsRefused reports whether err means that the credentials were refused or cannot be used.
func IsRefused(err error) bool {
	var credentials *CredentialsError
	var token *TokenError
	return errors.As(err, &credentials) || (errors.As(err, &token) && token.Refused)
}

// ErrTooLarge means that an answer was too large to read. The same request would fail again.
var ErrTooLarge = errors.New("the answer is too large")

// NotSentError is the error of a request, or of a repeated attempt at it, that was not sent. The
// API cannot have accepted it.
type NotSentError struct {
	// Attempted is true if an attempt failed before anything was written: a proxy refused or was
	// unreachable, or TLS failed. It is false if the request's turn did not come in time.
	Attempted bool
	// StatusCode is the status of another request's answer because of which this one is held back; 0
	// if the reason is another.
	StatusCode int
	// Err is the reason.
	Err error
}

func (e *NotSentError) Error() string { return e.Err.Error() }

func (e *NotSentError) Unwrap() error { return e.Err }

// notSent wraps the error of a link that comes before a request is sent.
func notSent(err error) error {
	if isHeldBack(err) {
		return err
	}
	return &NotSentError{Err: err}
}

// isHeldBack reports whether no attempt was made.
func isHeldBack(err error) bool {
	var found *NotSentError
	return errors.As(err, &found) && !found.Attempted
}

// isUnwritten reports whether an attempt failed before anything was written.
func isUnwritten(err error) bool {
	var found *NotSentError
	return errors.As(err, &found) && found.Attempted
}

// Message returns the text of an answer by the API itself: a JSON object with text in "msg" or
// "message". It returns "" for the HTML pages with 403 and the plain text with 401 of the gateway
// in front of the API. isOfIaaS reports whether the object is {code,msg}, the form in the IaaS
// API's document; other services of STACKIT answer {status,error,message}.
func Message(body []byte) (text string, isOfIaaS bool) {
	var answer struct {
		Code    any `json:"code"`
		Msg     any `json:"msg"`
		Message any `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", false
	}
	if msg, _ := answer.Msg.(string); msg != "" {
		return msg, answer.Code != nil
	}
	text, _ = answer.Message.(string)
	return text, false
}

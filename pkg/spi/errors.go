// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CredentialsError says that the credentials cannot be used, without asking the cloud: a
// retry without a change is useless.
type CredentialsError struct {
	Reason string
	// Identity says that they are a workload identity's, and not a key.
	Identity bool
}

func (e *CredentialsError) Error() string { return e.Reason }

// identityError says that a workload identity cannot be used.
func identityError(format string, args ...any) error {
	return &CredentialsError{Reason: "the workload identity's " + fmt.Sprintf(format, args...), Identity: true}
}

// ErrNoCredentials says that there is neither a service-account key nor a workload identity.
var ErrNoCredentials = &CredentialsError{
	Reason: "the service account has neither a key nor a workload identity, must have one of them",
}

// TokenError says that no access token could be had. Its status code is about
// the token endpoint, never about a server.
type TokenError struct {
	// Refused is true if the endpoint answered and refused the credentials, false if it
	// could not be reached or was out of order.
	Refused bool
	// Date is the clock of the token endpoint, as its answer has it; the zero time if it
	// gave none. An assertion is refused if the clock that it was signed by is wrong.
	Date time.Time
	// Err is the cause. It holds no token and no key.
	Err error
}

func (e *TokenError) Error() string { return e.Err.Error() }

func (e *TokenError) Unwrap() error { return e.Err }

// IsRefused says whether err means that the credentials were refused or cannot
// be used.
func IsRefused(err error) bool {
	var credentials *CredentialsError
	var token *TokenError
	return errors.As(err, &credentials) || (errors.As(err, &token) && token.Refused)
}

// ErrTooLarge says that an answer was too large to be read. One to the same request would be, too.
var ErrTooLarge = errors.New("the answer is too large")

// NotSentError is the error of a request, or of a repeated attempt of it, that was not sent. The API
// cannot have accepted it.
type NotSentError struct {
	// Attempted is true if an attempt failed before anything of the request was written: a proxy
	// refused or could not be reached, TLS failed. False if the request waited, and its turn did not
	// come in time.
	Attempted bool
	// StatusCode is the status of the answer to another request that holds this one back; 0
	// if it is held back by something else.
	StatusCode int
	// Err is the reason.
	Err error
}

func (e *NotSentError) Error() string { return e.Err.Error() }

func (e *NotSentError) Unwrap() error { return e.Err }

// notSent marks the error of a link that comes before a request is sent.
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

// Message returns the text of an answer that is the API's word: a JSON object with text in "msg" or
// "message". The gateway before the API answers HTML pages with 403 and plain text with 401, where the
// API said nothing: for them Message returns "". isOfIaaS reports whether the object is {code,msg}, the
// IaaS API's own form by its document; other services of STACKIT answer {status,error,message}.
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

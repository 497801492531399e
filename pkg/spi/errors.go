// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/json"
	"errors"
	"fmt"
)

// CredentialsError means that the credentials cannot be used, as found without an API call. The
// same credentials fail again.
type CredentialsError struct {
	// Reason is the text of the error. It quotes neither keys nor tokens.
	Reason string
	// Identity reports whether the credentials are a workload identity and not a key.
	Identity bool
}

func (e *CredentialsError) Error() string { return e.Reason }

// identityError returns the CredentialsError of a workload identity.
func identityError(format string, args ...any) error {
	return &CredentialsError{Reason: "the workload identity's " + fmt.Sprintf(format, args...), Identity: true}
}

// ErrNoCredentials means that the credentials have neither a service-account key nor a workload
// identity.
var ErrNoCredentials = &CredentialsError{
	Reason: "the service account has neither a key nor a workload identity: set one of them",
}

// TokenError means that no access token could be fetched. A status code in its text is the token
// endpoint's, never the IaaS API's.
type TokenError struct {
	// Refused reports whether the endpoint refused the credentials; it is false if the endpoint was
	// unreachable or failed.
	Refused bool
	// Err is the cause. Its text contains neither tokens nor keys.
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

// ErrTooLarge means that an answer has more than 16 MiB, or more than 64 KiB for a token endpoint.
// Such a request is not retried, because it would fail again.
var ErrTooLarge = errors.New("the answer is too large")

// NotSentError means that the last attempt at a request was not sent. A write with this error cannot
// have been accepted, because it is repeated only if it cannot have been accepted before.
type NotSentError struct {
	// Attempted reports whether the attempt began, and failed before anything was written: a proxy
	// refused it or was unreachable, or TLS failed. It is false if the request was still waiting
	// for its turn.
	Attempted bool
	// StatusCode is the HTTP status of an earlier answer, usually to another request, if this answer
	// is why the request was held back; 0 for any other reason.
	StatusCode int
	// Err is the reason why the request was not sent.
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

// Message returns the error text in an answer's body if the API itself wrote it: a JSON object with
// a text in "msg" or "message". For all other bodies it returns "": the gateway in front of the API
// answers HTML pages with 403 and plain text with 401. isOfIaaS reports whether the object is
// {code,msg}, the format in the IaaS API's OpenAPI document; other services of STACKIT
// answer {status,error,message}.
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

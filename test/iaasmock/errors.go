// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"fmt"
	"net/http"
)

const jsonContentType = "application/json"

// apiError is an answer in the API's error form.
type apiError struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Msg) }

func newError(code int, format string, args ...any) *apiError {
	return &apiError{Code: code, Msg: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *apiError {
	return newError(http.StatusBadRequest, format, args...)
}

// notFound is for what the path of a call names; see noSuch for the rest.
//
// Source: the document: every operation has a 404.
func notFound(what string) *apiError {
	return newError(http.StatusNotFound, "%s not found", what)
}

// noSuch is notFound for what the body of a call names.
func noSuch(what string) *apiError {
	return newError(http.StatusNotFound, "%s not found", what)
}

// conflict is all the API says when something is in use.
func conflict() *apiError { return newError(http.StatusConflict, "Conflict") }

// unauthorized is the answer without a valid token.
//
// Source: the document: every operation has a 401.
func unauthorized() *apiError { return newError(http.StatusUnauthorized, "Unauthorized") }

// forbidden is the answer about what belongs to somebody else.
//
// Source: the document: every operation has a 403.
func forbidden() *apiError { return newError(http.StatusForbidden, "Forbidden") }

// unconfirmed is for a refusal that no source has: it stands only
// WithUnconfirmedRefusals, otherwise the call goes on.
func (c *Cloud) unconfirmed(err *apiError) *apiError {
	if c.limits.unconfirmed {
		return err
	}
	return nil
}

// answer is a response before it is written. Status 0 means that none is.
type answer struct {
	status      int
	contentType string
	body        []byte
	header      http.Header
	// drop resets the connection instead, half ends it in the body.
	drop, half bool
	// replaced: it is a Fault's, not the API's.
	replaced bool
}

func errorAnswer(e *apiError) answer {
	return jsonAnswer(e.Code, e)
}

func jsonAnswer(status int, body any) answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		encoded, _ = json.Marshal(newError(http.StatusInternalServerError, "encode the answer: %v", err))
		status = http.StatusInternalServerError
	}
	return answer{status: status, contentType: jsonContentType, body: append(encoded, '\n')}
}

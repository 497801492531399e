// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"net/http"
)

const jsonContentType = "application/json"

// apiError is an error in the API's form.
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

// notFound is the answer if a resource in the path does not exist; see noSuch for the
// rest.
//
// Source: the document: every operation has a 404.
func notFound(what string) *apiError {
	return newError(http.StatusNotFound, "%s not found", what)
}

// noSuch is notFound for a resource in the body.
func noSuch(what string) *apiError {
	return newError(http.StatusNotFound, "%s not found", what)
}

// conflict returns the API's 409; it has no more text than this.
func conflict() *apiError { return newError(http.StatusConflict, "Conflict") }

// unauthorized is the answer without a valid token.
//
// Source: the document: every operation has a 401.
func unauthorized() *apiError { return newError(http.StatusUnauthorized, "Unauthorized") }

// forbidden is the answer for a resource of another project.
//
// Source: the document: every operation has a 403.
func forbidden() *apiError { return newError(http.StatusForbidden, "Forbidden") }

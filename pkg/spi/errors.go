// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"time"
)

// CredentialsError says that the credentials cannot be used, without asking the cloud: a
// retry without a change is useless.
type CredentialsError struct{ Reason string }

func (e *CredentialsError) Error() string { return e.Reason }

// TokenError says that no access token could be had. Its status code is about
// the token endpoint, never about a server.
type TokenError struct {
	// Refused is true if the endpoint answered and refused the key, false if it
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

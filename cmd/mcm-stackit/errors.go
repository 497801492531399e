// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// result ends the command with an exit code; what is to be said was said.
type result int

func (r result) Error() string { return fmt.Sprintf("exit code %d", int(r)) }

// exitWith returns the error that ends the command with an exit code; nil for ExitFine.
func exitWith(code int) error {
	if code == report.ExitFine {
		return nil
	}
	return result(code)
}

// usageError is a command line that is wrong.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func wrongUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// contentError is about a path or name in whose place a content is. It does not repeat it.
func contentError(origin string) error {
	return wrongUsage("%s has the content of a file, which is not shown here: must be a path or a name", origin)
}

// longestPath is more than paths and names have, and less than a key or a token.
const longestPath = 1000

// isContent says whether a value cannot be meant as a path or name, but may be a key, a
// manifest or a kubeconfig.
func isContent(value string) bool {
	return len(value) > longestPath || strings.Contains(value, "\n") || strings.HasPrefix(strings.TrimSpace(value), "{")
}

// hidesContent is the error of a command line that could not be read as one; it does not
// repeat a content.
func hidesContent(err error, args []string) error {
	var usage *usageError
	if !errors.As(err, &usage) && slices.ContainsFunc(args, isContent) {
		return contentError("an argument")
	}
	return err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"
)

// Violation is a value that breaks a schema. path leads from the checked body to the
// value.
type Violation struct {
	path   []string
	reason string
	// bare is true if kin-openapi's message has no dump of the schema. STACKIT cuts
	// messages at the first dump, so that in a list only bare violations are followed by
	// another one.
	bare bool
}

func (e *Violation) Error() string {
	if len(e.path) == 0 {
		return e.reason
	}
	return fmt.Sprintf("Error at %q: %s", "/"+strings.Join(e.path, "/"), e.reason)
}

func (e *Violation) below(key string) *Violation {
	return &Violation{path: append([]string{key}, e.path...), reason: e.reason, bare: e.bare}
}

func violation(format string, args ...any) *Violation {
	return &Violation{reason: fmt.Sprintf(format, args...)}
}

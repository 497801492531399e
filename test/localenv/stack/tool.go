// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
)

// BuildTool builds the program pkg, pinned by the nested module hack/tools/name,
// and returns its path in the ignored folder bin/. It is quick when nothing has
// changed; the first time it may take minutes. progress is called with a line
// when a step begins. Errors are *PartError of PartBuild.
func BuildTool(ctx context.Context, name, pkg string, progress func(line string)) (string, error) {
	root, err := Root()
	if err != nil {
		return "", &PartError{Part: PartBuild, Err: err}
	}
	b := builder{root: root, progress: func(format string, args ...any) { progress(fmt.Sprintf(format, args...)) }}
	return b.tool(ctx, name, pkg)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package workflows_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A C compiler that is there but does not run counts as none.
func TestCompilerThatDoesNotRun(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "-C", root, "-n", "test-unit")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0", "CGO_ENABLED=1", "CC=false")
	said, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(said), " -race") || !strings.Contains(string(said), "No C compiler found") {
		t.Errorf("%v, it would run\n%s", err, said)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package just_test runs the Justfile, so that its recipes stay what the Makefile
// offers.
package just_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// limit is for a single run of just.
const limit = time.Minute

// justPath is the just of this machine. A test fetches nothing.
func justPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("just")
	if err != nil {
		t.Skip("just is not installed: the Justfile is not tested here (.ci/run installs that of package.json)")
	}
	return path
}

// run calls just in the repository's root and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, justPath(t), args...)
	cmd.Dir = root
	// `make test` hands its own flags down; they are not meant for these runs.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// TestEveryRecipeIsAMakeTarget also shows that the Justfile parses.
func TestEveryRecipeIsAMakeTarget(t *testing.T) {
	recipes := strings.Fields(run(t, "--summary"))
	targets := regexp.MustCompile(`(?m)^  ([a-z0-9-]+) `).FindAllStringSubmatch(run(t, "help"), -1)
	var names []string
	for _, target := range targets {
		names = append(names, target[1])
	}
	for _, recipe := range recipes {
		if !slices.Contains(names, recipe) {
			t.Errorf("recipe %q is no target of make: %q", recipe, names)
		}
	}
	for _, wanted := range []string{"dev", "start", "demo", "mock", "test"} {
		if !slices.Contains(recipes, wanted) {
			t.Errorf("recipe %q is missing: %q", wanted, recipes)
		}
	}
}

// TestArgumentsReachMake has make print what it would run: -n changes nothing.
func TestArgumentsReachMake(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a target without arguments": {
			args: []string{"build", "-n"},
			want: "-o bin/machine-controller ./cmd/machine-controller",
		},
		"variables, one with a space": {
			args: []string{"start", "-n", "CONTROL_KUBECONFIG=/a b", "TARGET_KUBECONFIG=none", "CONTROL_NAMESPACE=shoot--x"},
			want: `set -- --control-kubeconfig="/a b" --target-kubeconfig="none"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if output := run(t, test.args...); !strings.Contains(output, test.want) {
				t.Errorf("want %q in what make would run:\n%s", test.want, output)
			}
		})
	}
}

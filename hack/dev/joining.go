// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// joinPath is the file, below the repository's root, by which `make start` finds the
// environment of `make dev`: a shell script that it reads.
var joinPath = filepath.Join("bin", "dev.sh")

// leaveJoinFile writes that file, and returns what removes it again, unless another
// environment has written its own meanwhile.
func leaveJoinFile(env *localenv.Env, sidecar string) (remove func(), err error) {
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, joinPath)
	args, variables := env.SidecarCommand()
	script := joinScript(os.Getpid(), sidecar, args, variables)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	return func() {
		if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, script) {
			_ = os.Remove(path)
		}
	}, os.WriteFile(path, script, 0o600)
}

// joinScript sets what make start asks for: whether the environment still runs (pid), and
// has a sidecar; the sidecar's environment; its flags, as the script's arguments.
func joinScript(pid int, sidecar string, args, variables []string) []byte {
	script := fmt.Sprintf("# How make start joins the environment of make dev.\npid=%d sidecar=%s\n", pid, sidecar)
	script += "unset STACKIT_API_ENDPOINT STACKIT_NO_AUTH\n" // the caller's
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		script += fmt.Sprintf("export %s=%s\n", name, quote(value))
	}
	script += "set --"
	for _, arg := range args {
		script += " " + quote(arg)
	}
	return []byte(script + "\n")
}

// quote makes one word of the shell of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

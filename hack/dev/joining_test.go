// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sidecarInPlace shows how it was started.
const sidecarInPlace = `#!/bin/sh
echo "endpoint $STACKIT_IAAS_ENDPOINT"
for arg; do echo "arg $arg"; done
`

// TestMakeStart runs make start without variables, beside what make dev has left.
func TestMakeStart(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	script := func(pid int, sidecar string) []byte {
		return joinScript(pid, sidecar, []string{"--control-kubeconfig=/it's here", "--v=2"}, []string{"STACKIT_IAAS_ENDPOINT=http://a?b=c"})
	}
	for name, row := range map[string]struct {
		left      []byte
		variables []string
		want      []string
		refused   bool
	}{
		"an environment without a sidecar": {left: script(os.Getpid(), noSidecar),
			want: []string{"endpoint http://a?b=c", "arg --control-kubeconfig=/it's here", "arg --v=2", "arg --v=4"}},
		"none":                           {refused: true, want: []string{"make dev SIDECAR=none", "CONTROL_KUBECONFIG"}},
		"one that was killed":            {left: script(gone.Process.Pid, noSidecar), refused: true, want: []string{"There is no environment"}},
		"one with a sidecar of its own":  {left: script(os.Getpid(), ownSidecar), refused: true, want: []string{"has a sidecar of its own"}},
		"clusters that are named partly": {left: script(os.Getpid(), noSidecar), variables: []string{"CONTROL_KUBECONFIG=a"}, refused: true, want: []string{"TARGET_KUBECONFIG is not set"}},
		"clusters that are named": {left: script(os.Getpid(), ownSidecar),
			variables: []string{"CONTROL_KUBECONFIG=a", "TARGET_KUBECONFIG=b", "CONTROL_NAMESPACE=c"},
			want:      []string{"arg --control-kubeconfig=a", "arg --target-kubeconfig=b", "arg --namespace=c"}},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			write(t, filepath.Join(bin, "machine-controller"), []byte(sidecarInPlace))
			if row.left != nil {
				write(t, filepath.Join(bin, filepath.Base(joinPath)), row.left)
			}
			// GO=true builds nothing.
			make := exec.Command("make", append([]string{"-C", "../..", "-s", "start", "BIN=" + bin, "GO=true", "ARGS=--v=4"}, row.variables...)...)
			make.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
			printed, err := make.CombinedOutput()
			if (err != nil) != row.refused {
				t.Errorf("ended with %v", err)
			}
			for _, wanted := range row.want {
				if !strings.Contains(string(printed), wanted) {
					t.Errorf("%q is missing in %s", wanted, printed)
				}
			}
		})
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
}

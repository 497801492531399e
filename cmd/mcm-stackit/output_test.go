// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// process is the command in a process of its own, whose standard output is the caller's to
// set.
func process(ctx context.Context, t *testing.T, args, env []string, stdin string) (command *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, stderr = exec.CommandContext(ctx, self, args...), &bytes.Buffer{}
	command.Env = append([]string{asCommand + "=1", "HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(t.TempDir(), "none")}, env...)
	command.Stdin, command.Stderr = strings.NewReader(stdin), stderr
	return command, stderr
}

func TestStandardOutputThatCannotBeWritten(t *testing.T) {
	cloud, env := startProject(t)
	text := manifests(t, cloud)
	for name, args := range map[string][]string{
		"version": {"version"}, "--version": {"--version"}, "help": {"--help"}, "completion": {"completion", "bash"},
		"validate": {"validate", "-f", "-"}, "validate as JSON": {"validate", "-f", "-", "-o", "json"},
		"doctor": {"doctor", "--cloud-only"}, "doctor as YAML": {"doctor", "--cloud-only", "-o", "yaml"},
		"servers": {"list", "servers"}, "servers as JSON": {"list", "servers", "-o", "json"}, "options": {"options"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, stderr := process(t.Context(), t, args, env, text)
			command.Stdout = fullDisk(t)
			_ = command.Run()
			const says = "standard output cannot be written: "
			if code := command.ProcessState.ExitCode(); code != report.ExitUnknown || strings.Count(stderr.String(), says) != 1 {
				t.Errorf("exit code %d and %q, want %d and %q once", code, stderr, report.ExitUnknown, says)
			}
		})
	}
}

func fullDisk(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no disk that is always full: ", err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// Whoever interrupts a deletion is told so.
func TestSignalEndsDeleteServer(t *testing.T) {
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte(`{"clusters": [{"name": "a", "cluster": {"server": "`+server.URL+`"}}],
		"contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := deleteServer(aServer, "--target-kubeconfig", target, "--yes", "--server", server.URL, "--project-id", iaasmock.DefaultProjectID, "--region", "eu01")
	command, stderr := process(t.Context(), t, args, []string{"STACKIT_API_ENDPOINT=" + server.URL, "STACKIT_NO_AUTH=true"}, "")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("nothing was asked")
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() }).Stop()
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != report.ExitUnknown || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d and %q, want %d and that it was interrupted", code, stderr, report.ExitUnknown)
	}
}

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
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
		for state, open := range map[string]func(*testing.T) *os.File{"closed pipe": closedPipe, "full disk": fullDisk} {
			t.Run(name+"/"+state, func(t *testing.T) {
				t.Parallel()
				command, stderr := process(t.Context(), t, args, env, text)
				command.Stdout = open(t)
				_ = command.Run()
				const says = "standard output cannot be written: "
				if code := command.ProcessState.ExitCode(); code != report.ExitUnknown || strings.Count(stderr.String(), says) != 1 {
					t.Errorf("exit code %d and %q, want %d and %q once", code, stderr, report.ExitUnknown, says)
				}
			})
		}
	}
}

func closedPipe(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	t.Cleanup(func() { _ = writer.Close() })
	return writer
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

// A command that waits for an answer says that it was interrupted, and that it could not be
// told, whatever it had found by then.
func TestSignalEndsWaiting(t *testing.T) {
	cloud, _ := startMock(t)
	text := manifests(t, cloud)
	project := []string{"--project-id", "10000000-0000-4000-8000-000000000001", "--region", "eu01"}
	for name, args := range map[string][]string{
		"validate":                          {"validate", "-f", "-", "--online"},
		"doctor":                            append([]string{"doctor", "--cloud-only"}, project...),
		"doctor that found something wrong": append([]string{"doctor", "--kubeconfig", "<broken>"}, project...),
		"doctor of a cluster":               append([]string{"doctor", "--server", "<api>"}, project...),
		"servers":                           append([]string{"list", "servers"}, project...),
		"machines":                          append([]string{"list", "machines", "--server", "<api>"}, project...),
		"delete":                            append(project, deleteTarget("--target-kubeconfig", "<target>", "--server", "<api>")...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			broken, _ := kubeconfigs(t)
			target := filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, []byte(`{"clusters": [{"name": "a", "cluster": {"server": "`+server.URL+`"}}],
				"contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			replace := strings.NewReplacer("<api>", server.URL, "<broken>", broken, "<target>", target)
			var line []string
			for _, arg := range args {
				line = append(line, replace.Replace(arg))
			}
			command, stderr := process(t.Context(), t, line, []string{"STACKIT_API_ENDPOINT=" + server.URL, "STACKIT_NO_AUTH=true"}, text)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-asked:
			case <-time.After(20 * time.Second):
				t.Error("nothing was asked")
			}
			interrupt(t, command, os.Interrupt)
			if code := command.ProcessState.ExitCode(); code != report.ExitUnknown || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("exit code %d and %q, want %d and that it was interrupted", code, stderr, report.ExitUnknown)
			}
		})
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	_, env := startProject(t)
	for name, row := range map[string]struct {
		env  string
		want bool
	}{
		"on a terminal": {"TERM=xterm", true}, "on one that knows none": {"TERM=dumb", false}, "not wanted": {"NO_COLOR=1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terminal, out, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = terminal.Close() }()
			command, stderr := process(t.Context(), t, []string{"doctor", "--cloud-only"}, append(slices.Clone(env), row.env), "")
			command.Stdout = out
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			_ = out.Close()
			var shown bytes.Buffer
			_, _ = shown.ReadFrom(terminal) // ends with an error when the command has ended
			if err := command.Wait(); err != nil {
				t.Errorf("%v: %s", err, stderr)
			}
			if got := strings.Contains(shown.String(), "\x1b[32mFINE"); got != row.want || !strings.Contains(shown.String(), "FINE") {
				t.Errorf("got %q, want colours: %t", shown.String(), row.want)
			}
		})
	}
}

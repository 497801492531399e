// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A flag without a value would leave out what it was to name: all objects of a cluster
// would be read instead of a file.
func TestEmptyFlags(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "-f", ""}, {"validate", "-n", ""}, {"validate", "--secret="}, {"validate", "--kubeconfig", ""},
		{"list", "servers", "--project-id", ""}, {"list", "servers", "--region="}, {"list", "servers", "--service-account-key-path="}, {"list", "servers", "--class="},
		{"doctor", "--target-kubeconfig="}, {"delete", "server", "--target-kubeconfig="},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			got := invocation{args: args}.run(t)
			if got.code != 64 || got.stdout != "" || !strings.Contains(got.stderr, " is empty: give it a value, or leave it out") {
				t.Errorf("got %+v, want exit code 64", got)
			}
		})
	}
}

func TestContentInPlaceOfAPath(t *testing.T) {
	text, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	key, encoded := string(text), base64.StdEncoding.EncodeToString(text)
	inOneLine := strings.ReplaceAll(key, "\n", "")
	account := []string{"STACKIT_PROJECT_ID=" + iaasmock.DefaultProjectID, "STACKIT_REGION=eu01"}
	for name, row := range map[string]struct {
		args, env []string
		code      int
		says      string
	}{
		"key path":              {[]string{"list", "servers", "--service-account-key-path", key}, nil, 64, "--service-account-key-path has the content of a file"},
		"key in one line":       {[]string{"list", "servers", "--service-account-key-path", inOneLine}, nil, 64, "--service-account-key-path has"},
		"key in base64":         {[]string{"list", "servers", "--service-account-key-path", encoded}, nil, 64, "--service-account-key-path has"},
		"file":                  {[]string{"validate", "-f", key}, nil, 64, "--filename has"},
		"second file":           {[]string{"validate", "-f", "a.yaml", "-f", key}, nil, 64, "--filename has"},
		"kubeconfig":            {[]string{"validate", "--kubeconfig", key}, nil, 64, "--kubeconfig has"},
		"target":                {[]string{"list", "servers", "--target-kubeconfig", key}, nil, 64, "--target-kubeconfig has"},
		"Secret":                {[]string{"validate", "--secret", key}, nil, 64, "--secret has"},
		"context":               {[]string{"validate", "--context", key}, nil, 64, "--context has"},
		"word":                  {[]string{"validate", key}, nil, 64, "an argument has"},
		"server ID":             {[]string{"delete", "server", key}, nil, 64, "an argument has"},
		"variable":              {[]string{"list", "servers"}, append(account, "STACKIT_SERVICE_ACCOUNT_KEY_PATH="+key), 2, "$STACKIT_SERVICE_ACCOUNT_KEY_PATH has"},
		"variable in one line":  {[]string{"list", "servers"}, append(account, "STACKIT_SERVICE_ACCOUNT_KEY_PATH="+inOneLine), 2, "$STACKIT_SERVICE_ACCOUNT_KEY_PATH has"},
		"variable not used":     {[]string{"version"}, []string{"STACKIT_SERVICE_ACCOUNT_KEY_PATH=" + key}, 0, ""},
		"variable of kubectl's": {[]string{"validate", "-v=1"}, []string{"KUBECONFIG=" + key}, 64, "$KUBECONFIG has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args, env: row.env}.run(t)
			if got.code != row.code || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
			for _, canary := range []string{"PRIVATE KEY", "credentials", encoded[:40]} {
				if strings.Contains(got.stdout+got.stderr, canary) && strings.Contains(key+encoded, canary) {
					t.Errorf("%q was printed", canary)
				}
			}
		})
	}
}

// A variable that is set for other tools keeps nobody from what does not need it.
func TestKeyOfTheEnvironmentIsReadWhereItIsUsed(t *testing.T) {
	cloud, env := startMock(t)
	env = append(env, "STACKIT_PROJECT_ID="+iaasmock.DefaultProjectID, "STACKIT_REGION=eu01", "STACKIT_SERVICE_ACCOUNT_KEY_PATH=/nowhere/key.json")
	text := manifests(t, cloud)
	invocation{args: []string{"validate", "-f", "-", "--online"}, env: env, stdin: text}.run(t).expect(t, 0, "nothing is wrong")
	invocation{args: []string{"list", "servers", "-f", "-"}, env: env, stdin: text}.run(t).expect(t, 0, "0 servers")
	got := invocation{args: []string{"list", "servers"}, env: env}.run(t)
	if got.code != 2 || !strings.Contains(got.stderr, "reading the key of $STACKIT_SERVICE_ACCOUNT_KEY_PATH: open /nowhere/key.json: no such file") {
		t.Errorf("got %+v, want exit code 2 and the variable", got)
	}
}

// An empty file must not leave the choice to what comes next.
func TestEmptyKey(t *testing.T) {
	got := invocation{args: []string{"list", "servers", "--service-account-key-path", os.DevNull}}.run(t)
	if got.code != 2 || !strings.Contains(got.stderr, "--service-account-key-path: /dev/null is empty") {
		t.Errorf("got %+v, want exit code 2 and the flag", got)
	}
}

// A pipe whose writer stays must not keep the command from ending.
func TestSignalEndsReading(t *testing.T) {
	for name, row := range map[string]struct {
		args   []string
		signal os.Signal
	}{
		"files": {[]string{"validate", "-f"}, os.Interrupt},
		"key":   {[]string{"list", "servers", "--service-account-key-path"}, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), os.Args[0], append(row.args, pipe)...)
			command.Env = []string{asCommand + "=1", "HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(t.TempDir(), "none")}
			var stderr bytes.Buffer
			command.Stderr = &stderr
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the command has opened it
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = writer.Close() }()
			interrupt(t, command, row.signal)
			if code := command.ProcessState.ExitCode(); code != 2 || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("exit code %d, %q; want 2 and that it was interrupted", code, &stderr)
			}
		})
	}
}

func TestSignalEndsReadingOfStandardInput(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "validate", "-f", "-")
	command.Env = []string{asCommand + "=1", "HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(t.TempDir(), "none")}
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it returns when the command reads
		t.Fatal(err)
	}
	interrupt(t, command, os.Interrupt)
	if code := command.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}

// interrupt sends a command the signal, and waits until it has ended.
func interrupt(t *testing.T, command *exec.Cmd, signal os.Signal) {
	t.Helper()
	if err := command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() }).Stop()
	_ = command.Wait()
}

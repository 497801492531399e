// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		{"list", "servers", "--project-id", ""}, {"list", "servers", "--region="}, {"list", "servers", "--service-account-key-path="}, {"list", "--cluster="},
		{"delete", "server", "--target-kubeconfig="},
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

// The variables may be set for other tools.
func TestCredentialsWithoutASecret(t *testing.T) {
	cloud, env := startProject(t)
	path := env[len(env)-1][len(envKeyPath)+1:]
	text := manifests(t, cloud)
	missing := append(slices.Clone(env), envKeyPath+"=/nowhere/key.json")
	for name, row := range map[string]struct {
		args, env []string
		code      int
		says      string
	}{
		"by variables":                   {[]string{"list"}, env, 2, "0 servers read in project " + iaasmock.DefaultProjectID + " in eu01"},
		"by flags":                       {[]string{"list", "--project-id", iaasmock.DefaultProjectID, "--region", "eu01", "--service-account-key-path", path}, env[:2], 2, "0 servers read"},
		"region by flag":                 {[]string{"list", "--region", "eu02"}, env, 2, "in eu02"},
		"some variables":                 {[]string{"list", noControl}, env[:3], 2, "MachineClasses, Machines, age of readiness, servers unknown: the cluster"},
		"a flag alone":                   {[]string{"list", "--project-id", iaasmock.DefaultProjectID}, env[:2], 64, "credentials without a Secret need all of "},
		"a flag beside a Secret":         {[]string{"list", "--project-id", iaasmock.DefaultProjectID, "--secret", "a"}, env, 64, "--secret goes without "},
		"a key that is missing":          {[]string{"list"}, missing, 2, "reading the service-account key: open /nowhere/key.json: no such file"},
		"a missing key that is not used": {[]string{"validate", "-f", "-", "--online"}, missing, 0, "nothing is wrong"},
		"an empty key":                   {[]string{"list"}, append(slices.Clone(env), envKeyPath+"="+os.DevNull), 2, "/dev/null is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args, env: row.env, stdin: text}.run(t)
			if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
		})
	}
}

// A pipe whose writer stays must not keep the command from ending.
func TestSignalEndsReading(t *testing.T) {
	for name, row := range map[string]struct {
		args   []string
		signal os.Signal
	}{
		"files": {[]string{"validate", "-f"}, os.Interrupt},
		"again": {[]string{"validate", "-f"}, syscall.SIGTERM},
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// start runs the command on a free port; stop ends it and returns its error.
func start(t *testing.T, args ...string) (url, intro string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--address", "127.0.0.1:0"}, args...), writer)
		_ = writer.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewScanner(reader)
	var text strings.Builder
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "export STACKIT_IAAS_ENDPOINT") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(text.String())
	if url == "" {
		cancel()
		t.Fatalf("no URL in %q: %v", text.String(), <-ended)
	}
	t.Cleanup(cancel)
	return url, text.String(), func() error { cancel(); return <-ended }
}

func TestServesUntilInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sa.json")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	url, intro, stop := start(t, "--key-file", path)
	response, err := http.Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	info, err := os.Stat(path)
	raw, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || info.Mode().Perm() != 0o600 || !json.Valid(raw) {
		t.Errorf("the key has mode %v and %d bytes; %v, %v", info.Mode(), len(raw), err, readErr)
	}
	if !strings.Contains(intro, path) || !strings.Contains(intro, "STACKIT_TOKEN_BASEURL="+url+"/oauth/v2/token") {
		t.Errorf("intro %q", intro)
	}
	if err := stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

func TestClearErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for want, args := range map[string][]string{
		"choose another with --address":                        {"--address", taken.Addr().String()},
		"--boot must not be negative":                          {"--boot", "-1s"},
		"must be live; for the preset of a fault use --fault":  {"--preset", "slow"},
		`unexpected argument "now"`:                            {"now"},
		`--fault {"count":"many"}: json: cannot unmarshal str`: {"--fault", `{"count":"many"}`},
		"--key-file: open /nonexistent/sa.json: no such file or": {"--address", "127.0.0.1:0",
			"--key-file", "/nonexistent/sa.json"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", args, err, want)
		}
	}
}

// What the README and the command itself show works when it is pasted into a shell.
func TestShownCommandsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	commands := regexp.MustCompile(`(?m)^go run ./test/iaasmock/cmd/iaasmock (.*)$`).FindAllStringSubmatch(readme, -1)
	if len(commands) != 2 {
		t.Fatalf("the README starts %q", commands)
	}
	for i, command := range commands {
		words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command[1]).Output()
		if err != nil {
			t.Fatalf("a shell does not take %s: %v", command[1], err)
		}
		args := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
		url, intro, _ := start(t, append(args, "--boot", "1h")...)
		if i > 0 {
			continue
		}
		text := strings.ReplaceAll(readme, "http://127.0.0.1:8080", url) + intro
		script := "set -eu\ncurl() { command curl -f \"$@\"; }\n"
		for _, line := range regexp.MustCompile(`(?m)^ *((?:API=|curl ).*)$`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(line[1], "<id>") {
				script += line[1] + "\n"
			}
		}
		output, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
		if err != nil || strings.Count(script, "\n") < 8 || !strings.Contains(string(output), `"status":"CREATING"`) {
			t.Errorf("%s\nanswered %s: %v", script, output, err)
		}
	}
}

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
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
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
	url, _, stop := start(t)
	if response, err := http.Get(url + "/healthz"); err != nil {
		t.Error(err)
	} else {
		_ = response.Body.Close()
	}
	if err := stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sa.json")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	url, intro, stop := start(t, "--key-file", path, "--key=2025")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !json.Valid(raw) || strings.Contains(string(raw), "tokenEndpoint") {
		t.Errorf("key %d bytes, %v", len(raw), err)
	}
	if !strings.Contains(intro, path) || !strings.Contains(intro, "STACKIT_TOKEN_BASEURL="+url+"/oauth/v2/token") {
		t.Errorf("intro %q", intro)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files left behind: %v", entries)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestClearErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"taken port":         {[]string{"--address", taken.Addr().String()}, "choose another with --address"},
		"negative time":      {[]string{"--boot", "-1s"}, "--boot must not be negative"},
		"negative lag":       {[]string{"--list-replicas", "1s,-1s"}, "--list-replicas: a lag must not be negative"},
		"latencies reversed": {[]string{"--latency-min", "2s", "--latency-max", "1s"}, "--latency-max"},
		"unknown preset": {[]string{"--preset", "slow"},
			`--preset is "slow": must be live; for the preset of a fault use --fault`},
		"form of a key": {[]string{"--key", "2024"}, `--key is "2024": must be 2026 or 2025`},
		"argument":      {[]string{"now"}, `unexpected argument "now"`},
		"fault":         {[]string{"--fault", `{"count":"many"}`}, `--fault {"count":"many"}: count: invalid "many"`},
		"no such folder": {[]string{"--address", "127.0.0.1:0", "--key-file", "/nonexistent/sa.json"},
			"--key-file: open /nonexistent/sa.json: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), row.args, io.Discard); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error is %v, want %q", err, row.want)
			}
		})
	}
}

// Each switch changes what a client sees.
func TestSwitches(t *testing.T) {
	const body = `{"name":"a","labels":{"a":"1"},"machineType":"c2i.2","imageId":"` + iaasmock.DefaultImageID +
		`","networking":{"networkId":"` + iaasmock.DefaultNetworkID + `"}}`
	for flag, want := range map[string]string{
		"--null-lists": `{"items":null}`, "--list-replicas=1h,2h": `{"items":[]}`,
		"--replace-labels": `"labels":{"b":"2"}`, "--server-labels": `"stackit_project_id":`,
		"--load-balancer": `"machineType":"t1.2"`, "--preset=live": `"machineType":"t1.2"`,
	} {
		url, _, _ := start(t, "--no-auth", flag)
		call := func(method, path, body string) string {
			header := http.Header{"Content-Type": {"application/json"}}
			const region = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/" + iaasmock.DefaultRegion
			return string(example{method: method, url: url + region + path, header: header, body: body}.run(t))
		}
		seen := call(http.MethodGet, "/servers", "") + call(http.MethodPost, "/servers", body)
		server := "/servers/" + servers(t, url)[0].ID
		seen += call(http.MethodPatch, server, `{"labels":{"b":"2"}}`)
		if flag == "--list-replicas=1h,2h" {
			seen = call(http.MethodGet, "/servers", "")
		}
		if !strings.Contains(seen, want) {
			t.Errorf("%s: %s", flag, seen)
		}
	}
}

func TestTimesBesideAPresetWin(t *testing.T) {
	const region = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/" + iaasmock.DefaultRegion
	made := func(args ...string) (status string, nics int) {
		url, intro, _ := start(t, append(args, "--no-auth", "--preset", "live")...)
		runExamples(t, strings.NewReplacer("<id>", "ID", "-X DELETE", "").Replace(intro))
		shown := example{method: http.MethodGet, url: url + region + "/nics"}.run(t)
		return servers(t, url)[1].Status, strings.Count(string(shown), `"device"`)
	}
	if status, nics := made("--boot", "0s", "--boot-spread", "0s"); status != iaasmock.StatusActive || nics != 1 {
		t.Errorf("with a boot of no time: the server is %s, %d NICs are attached; want ACTIVE, 1", status, nics)
	}
	if status, nics := made("--nic-delay", "0s"); status != iaasmock.StatusCreating || nics != 2 {
		t.Errorf("without a delay of NICs: the server is %s, %d NICs are attached; want CREATING, 2", status, nics)
	}
}

func TestFaultsFromTheCommandLine(t *testing.T) {
	url, intro, _ := start(t, "--no-auth", "--seed", "42", "--fault", "slow", "--fault",
		`{"preset":"token-down","after":"1h"}`)
	if !strings.Contains(intro, "--seed 42 repeats this run") {
		t.Errorf("the seed is not told: %s", intro)
	}
	var active struct {
		Items []struct{ Name, StartsAt string }
	}
	if err := json.Unmarshal(example{method: http.MethodGet, url: url + "/admin/faults"}.run(t), &active); err != nil {
		t.Fatal(err)
	}
	if a := active.Items; len(a) != 2 || a[0].Name != "slow" || a[0].StartsAt != "" || a[1].Name != "token-down" ||
		a[1].StartsAt == "" {
		t.Errorf("the faults are %v", a)
	}
}

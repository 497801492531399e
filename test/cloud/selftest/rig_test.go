// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package selftest_test runs the suite of test/cloud as whoever has an account does, as a
// program, against the mock as a process with authentication on: green if the API is as it
// should be, red and swept if it is not.
package selftest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// version looks like an ID, and is to be in the report nevertheless.
const version = "v1.2.3-4-g0123456789abcdef0123456789abcdef01234567"

// programs are built once.
var programs = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "cloud-selftest-")
	if err != nil {
		return "", err
	}
	for name, pkg := range map[string]string{"test-cloud": "test/cloud", "iaasmock": "test/iaasmock/cmd/iaasmock"} {
		target := filepath.Join(folder, name)
		build := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", target, "./"+pkg)
		build.Dir = "../../.."
		if out, err := build.CombinedOutput(); err != nil {
			return folder, fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	return folder, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if !testing.Short() {
		folder, _ := programs()
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

func program(t *testing.T, name string) string {
	t.Helper()
	skipShort(t)
	folder, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the suite for minutes: make test-cloud-mock")
	}
}

// mock is the mock as a process.
type mock struct{ url, keyFile string }

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// startMock starts the mock on a free port. It ends with the test.
func startMock(t *testing.T, args ...string) mock {
	t.Helper()
	m := mock{keyFile: filepath.Join(t.TempDir(), "sa.json")}
	args = append([]string{"--address=127.0.0.1:0", "--key-file=" + m.keyFile}, args...)
	process := exec.Command(program(t, "iaasmock"), args...)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if m.url = servedAt.FindString(first); m.url == "" {
		t.Fatalf("the mock says %q", first)
	}
	return m
}

// state is what the mock holds.
type state struct {
	Servers []iaasmock.Server
	NICs    []iaasmock.NIC
	Volumes []iaasmock.Volume
}

func (m mock) state(t *testing.T) state {
	t.Helper()
	response, err := http.Get(m.url + "/admin/state")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var s state
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// ids are those of all things, with their kind: the networks, too.
func (m mock) ids(t *testing.T) map[string]bool {
	t.Helper()
	ids, s := map[string]bool{}, m.state(t)
	for _, server := range s.Servers {
		ids["server "+server.ID] = true
	}
	for _, nic := range s.NICs {
		ids["NIC "+nic.ID] = true
	}
	for _, volume := range s.Volumes {
		ids["volume "+volume.ID] = true
	}
	networks, err := m.client(t).Networks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range networks {
		ids["network "+network.ID] = true
	}
	return ids
}

// client is one of somebody who works in the same project, without the suite.
func (m mock) client(t *testing.T) *api.Client {
	t.Helper()
	key, err := os.ReadFile(m.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(api.Account{
		ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Key: key, TokenURL: m.url + "/token",
	}, m.url)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// inject adds a fault, or removes all for an empty one.
func (m mock) inject(t *testing.T, fault string) {
	t.Helper()
	method := http.MethodPost
	if fault == "" {
		method = http.MethodDelete
	}
	request, err := http.NewRequestWithContext(t.Context(), method, m.url+"/admin/faults", strings.NewReader(fault))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %q: %s", method, fault, response.Status)
	}
}

// timings are short ones for a mock that is quick.
var timings = []string{"--settle=3s", "--poll=500ms", "--patience=75s", "--limit=8m"}

// suite is a run of the suite's program.
type suite struct {
	*exec.Cmd

	output *lockedBuffer
	report string
}

// newSuite returns a run against the mock.
func newSuite(t *testing.T, m mock, args ...string) suite {
	t.Helper()
	s := suite{output: &lockedBuffer{}, report: filepath.Join(t.TempDir(), "report.md")}
	s.Cmd = exec.Command(program(t, "test-cloud"), append(slices.Clone(timings), args...)...)
	s.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, environment(m)...)
	s.Env = append(s.Env, "REPORT="+s.report)
	for _, name := range []string{"TMPDIR", "KUBEBUILDER_ASSETS"} {
		if value, ok := os.LookupEnv(name); ok {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	s.Stdout, s.Stderr = s.output, s.output
	return s
}

// environment is what a person sets.
func environment(m mock) []string {
	return []string{
		"STACKIT_PROJECT_ID=" + iaasmock.DefaultProjectID, "STACKIT_REGION=" + iaasmock.DefaultRegion,
		"STACKIT_IMAGE_ID=" + iaasmock.DefaultImageID,
		"STACKIT_MACHINE_TYPE=" + iaasmock.DefaultMachineType, "STACKIT_SERVICE_ACCOUNT_KEY_PATH=" + m.keyFile,
		"STACKIT_IAAS_ENDPOINT=" + m.url, "STACKIT_TOKEN_BASEURL=" + m.url + "/token", "YES=1",
	}
}

// run runs the suite, which is to end with this exit code.
func (s suite) run(t *testing.T, code int) {
	t.Helper()
	s.begin(t)
	s.expectEnd(t, code)
}

func (s suite) begin(t *testing.T) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Signal(syscall.SIGKILL) })
}

// expectEnd waits for the end of a run.
func (s suite) expectEnd(t *testing.T, code int) {
	t.Helper()
	_ = s.Wait() // the exit code says it
	if s.ProcessState.ExitCode() != code {
		t.Fatalf("%s, want the exit code %d:\n%s", s.ProcessState, code, s.output)
	}
}

// lockedBuffer is read while a process writes.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(content []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(content)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// await returns when the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // another process is waited for
	}
}

// makes makes a thing, as somebody does, and returns its ID.
func makes(t *testing.T, m mock, path string, body map[string]any) string {
	t.Helper()
	answer, err := m.client(t).Do(t.Context(), http.MethodPost, path, body)
	var made struct{ ID string }
	if err != nil || answer.Status >= http.StatusBadRequest || json.Unmarshal(answer.Body, &made) != nil {
		t.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
	}
	return made.ID
}

// makesServer makes one, as somebody does.
func makesServer(t *testing.T, m mock, network, name string, labels map[string]string) string {
	t.Helper()
	return makes(t, m, api.PathServers, map[string]any{
		"name": name, "machineType": iaasmock.DefaultMachineType, "labels": labels,
		"networking": map[string]any{"networkId": network},
		"bootVolume": map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
	})
}

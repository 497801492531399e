// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

const (
	// asProgram is a variable that makes the test binary the suite's program: a run has to be a process that
	// can be interrupted and killed.
	asProgram = "MCM_TEST_CLOUD"
	// testVersion looks like an ID, and is to be in the report nevertheless.
	testVersion = "v1.2.3-4-g0123456789abcdef0123456789abcdef01234567"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		version = testVersion
		main()
	}
	os.Exit(m.Run())
}

// project is one in a mock, which wants to know who calls.
type project struct {
	*iaasmock.Cloud

	url, keyFile string
	// client is one of somebody who works in the same project, without the suite.
	client *api.Client
}

func newProject(t *testing.T, options []iaasmock.Option, faults ...string) project {
	t.Helper()
	cloud := iaasmock.New(options...)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	p := project{Cloud: cloud, url: server.URL, keyFile: filepath.Join(t.TempDir(), "sa.json")}
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.client, err = api.New(api.Account{
		ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Key: key, TokenURL: p.url + "/oauth/v2/token",
	}, p.url); err != nil {
		t.Fatal(err)
	}
	for _, text := range faults {
		p.fault(t, text)
	}
	return p
}

// fault adds a fault, a preset's name or JSON.
func (p project) fault(t *testing.T, text string) {
	t.Helper()
	f, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p.Inject(f)
}

// ids are those of all things, with their kind.
func (p project) ids() map[string]bool {
	ids := map[string]bool{}
	for _, server := range p.Servers() {
		ids["server "+server.ID] = true
	}
	for _, nic := range p.NICs() {
		ids["NIC "+nic.ID] = true
	}
	for _, volume := range p.Volumes() {
		ids["volume "+volume.ID] = true
	}
	for _, network := range p.Networks() {
		ids["network "+network.ID] = true
	}
	return ids
}

// expectOnly expects that nothing else is there than what is wanted.
func (p project) expectOnly(t *testing.T, wanted map[string]bool) {
	t.Helper()
	if seen := p.ids(); !maps.Equal(wanted, seen) {
		t.Errorf("there is to be\n%v\nthere is\n%v", slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(seen)))
	}
}

// make makes a thing, as somebody does, and returns its ID.
func (p project) make(t *testing.T, path string, body map[string]any) string {
	t.Helper()
	answer, err := p.client.Do(t.Context(), http.MethodPost, path, body)
	made := api.Item[api.Server](answer).ID
	if err != nil || made == "" {
		t.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
	}
	return made
}

// makeServer makes a server in the mock's own network, as somebody does; fields override.
func (p project) makeServer(t *testing.T, name string, fields map[string]any) string {
	t.Helper()
	body := map[string]any{
		"name": name, "machineType": iaasmock.DefaultMachineType, "networking": inNetwork(iaasmock.DefaultNetworkID),
		"bootVolume": map[string]any{
			"size": 10, "deleteOnTermination": true, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID},
		},
	}
	maps.Copy(body, fields)
	return p.make(t, api.PathServers, body)
}

func inNetwork(id string) map[string]any { return map[string]any{"networkId": id} }

// program is the suite as a process of its own.
type program struct {
	*exec.Cmd

	output, report string
}

// newProgram returns a run against the project. Its times are short ones for a mock that is quick.
func newProgram(t *testing.T, p project, args ...string) program {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the suite for minutes: make test-cloud-mock")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	r := program{output: filepath.Join(folder, "output"), report: filepath.Join(folder, "report.md")}
	output, err := os.Create(r.output)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	times := []string{"--settle=3s", "--poll=500ms", "--patience=75s", "--limit=8m"}
	r.Cmd = exec.Command(executable, append(times, args...)...)
	r.Stdout, r.Stderr = output, output
	r.Env = []string{
		asProgram + "=1", envYes + "=1", envReport + "=" + r.report, envKeyPath + "=" + p.keyFile,
		envProjectID + "=" + iaasmock.DefaultProjectID, envRegion + "=" + iaasmock.DefaultRegion,
		envImageID + "=" + iaasmock.DefaultImageID, envMachineType + "=" + iaasmock.DefaultMachineType,
		spi.EnvIaaSEndpoint + "=" + p.url, spi.EnvTokenURL + "=" + p.url + "/oauth/v2/token",
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "KUBEBUILDER_ASSETS"} {
		if value, ok := os.LookupEnv(name); ok {
			r.Env = append(r.Env, name+"="+value)
		}
	}
	return r
}

// run runs the suite, which is to end with this exit code.
func (r program) run(t *testing.T, code int) {
	t.Helper()
	r.begin(t)
	r.expectEnd(t, code)
}

func (r program) begin(t *testing.T) {
	t.Helper()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() })
}

// expectEnd waits for the end of a run.
func (r program) expectEnd(t *testing.T, code int) {
	t.Helper()
	_ = r.Wait() // the exit code says it
	if r.ProcessState.ExitCode() != code {
		t.Fatalf("%s, want the exit code %d:\n%s", r.ProcessState, code, r.said(t))
	}
}

func (r program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// said is what the run has printed up to now.
func (r program) said(t *testing.T) string {
	t.Helper()
	return readFile(t, r.output)
}

func (r program) expectSaid(t *testing.T, wanted ...string) {
	t.Helper()
	said := r.said(t)
	for _, text := range wanted {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in:\n%s", text, said)
		}
	}
}

var printedRun = regexp.MustCompile(`Run (\S+) begins`)

// name is the run's name. It is printed before anything is made.
func (r program) name(t *testing.T) string {
	t.Helper()
	return printedRun.FindStringSubmatch(r.said(t))[1]
}

// sweepRun runs the sweep of a run, which is to leave nothing.
func sweepRun(t *testing.T, p project, run string) {
	t.Helper()
	r := newProgram(t, p, "sweep")
	r.Env = append(r.Env, envRun+"="+run)
	r.run(t, exitGreen)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
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

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

const (
	// asProgram is a variable that makes the test binary the suite's program: a run has to be a process
	// that can be interrupted.
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

// mock is a project of the mock, and the session of another user of it.
type mock struct {
	*iaasmock.Cloud
	*project

	url, keyFile string
	settings     settings
}

func newMock(t *testing.T, options ...iaasmock.Option) *mock {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(time.Second), iaasmock.WithDeleteDuration(time.Second),
	}, options...)...)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	m := &mock{Cloud: cloud, url: server.URL, keyFile: filepath.Join(t.TempDir(), "sa.json")}
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	m.settings = settings{
		projectID: iaasmock.DefaultProjectID, region: iaasmock.DefaultRegion, key: string(key),
		config:  spi.Config{Endpoint: m.url, TokenURL: m.url + "/oauth/v2/token"},
		imageID: iaasmock.DefaultImageID, machineType: iaasmock.DefaultMachineType,
	}
	if m.project, err = newProject(m.settings, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// fault adds a fault, a preset's name or JSON.
func (m *mock) fault(t *testing.T, text string) {
	t.Helper()
	f, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	m.Inject(f)
}

// ids returns all resources, as kind and ID.
func (m *mock) ids() map[string]bool {
	ids := map[string]bool{}
	for _, server := range m.Servers() {
		ids["server "+server.ID] = true
	}
	for _, nic := range m.NICs() {
		ids["NIC "+nic.ID] = true
	}
	for _, volume := range m.Volumes() {
		ids["volume "+volume.ID] = true
	}
	for _, network := range m.Networks() {
		ids["network "+network.ID] = true
	}
	return ids
}

// expectOnly expects exactly the wanted resources.
func (m *mock) expectOnly(t *testing.T, wanted map[string]bool) {
	t.Helper()
	if seen := m.ids(); !maps.Equal(wanted, seen) {
		t.Errorf("there is to be\n%v\nthere is\n%v", slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(seen)))
	}
}

// makeNetwork makes a network as another user, and returns its ID.
func (m *mock) makeNetwork(t *testing.T, name string) string {
	t.Helper()
	payload := *iaas.NewCreateNetworkPayload(name)
	made, err := m.API.CreateNetwork(t.Context(), m.ProjectID, m.region).CreateNetworkPayload(payload).Execute()
	if err != nil {
		t.Fatal(err)
	}
	return made.GetId()
}

// makeNIC makes a NIC.
func (m *mock) makeNIC(t *testing.T, network, name string) string {
	t.Helper()
	payload := iaas.CreateNicPayload{Name: &name}
	made, err := m.API.CreateNic(t.Context(), m.ProjectID, m.region, network).CreateNicPayload(payload).Execute()
	if err != nil {
		t.Fatal(err)
	}
	return made.GetId()
}

// makeServer makes a server in a network, or with the NIC if there is one.
func (m *mock) makeServer(t *testing.T, name, network, nic string) string {
	t.Helper()
	size, isDeleted := int64(10), true
	payload := iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType,
		BootVolume: &iaas.BootVolume{
			Size: &size, DeleteOnTermination: &isDeleted,
			Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image"),
		},
	}
	payload.Networking.CreateServerNetworking = &iaas.CreateServerNetworking{NetworkId: &network}
	if nic != "" {
		payload.Networking = iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nic}},
		}
	}
	made, err := m.API.CreateServer(t.Context(), m.ProjectID, m.region).CreateServerPayload(payload).Execute()
	if err != nil {
		t.Fatal(err)
	}
	return made.GetId()
}

// program is the suite as a process of its own.
type program struct {
	*exec.Cmd

	output, report string
}

// newProgram returns a run against the mock, with times for an API that is quick.
func newProgram(t *testing.T, m *mock, args ...string) *program {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the suite as a program: make test-cloud-mock")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	r := &program{output: filepath.Join(folder, "output"), report: filepath.Join(folder, "report.md")}
	output, err := os.Create(r.output)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	times := []string{"--settle=1s", "--poll=500ms", "--idle=100ms,200ms"}
	r.Cmd = exec.Command(executable, append(times, args...)...)
	r.Stdout, r.Stderr = output, output
	r.Env = []string{
		asProgram + "=1", envYes + "=1", envReport + "=" + r.report, envKeyPath + "=" + m.keyFile,
		envProjectID + "=" + iaasmock.DefaultProjectID, envRegion + "=" + iaasmock.DefaultRegion,
		envImageID + "=" + iaasmock.DefaultImageID, envMachineType + "=" + iaasmock.DefaultMachineType,
		spi.EnvIaaSEndpoint + "=" + m.url, spi.EnvTokenURL + "=" + m.url + "/oauth/v2/token",
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "KUBEBUILDER_ASSETS"} {
		if value, ok := os.LookupEnv(name); ok {
			r.Env = append(r.Env, name+"="+value)
		}
	}
	return r
}

// run runs the suite, which is to end with this exit code.
func (r *program) run(t *testing.T, code int) {
	t.Helper()
	r.begin(t)
	r.expectEnd(t, code)
}

func (r *program) begin(t *testing.T) {
	t.Helper()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() })
}

// expectEnd waits for the end of a run.
func (r *program) expectEnd(t *testing.T, code int) {
	t.Helper()
	_ = r.Wait() // the exit code is compared below
	if r.ProcessState.ExitCode() != code {
		t.Fatalf("%s, want the exit code %d:\n%s", r.ProcessState, code, r.said(t))
	}
}

func (r *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// said returns what the run has printed so far.
func (r *program) said(t *testing.T) string {
	t.Helper()
	return readFile(t, r.output)
}

func (r *program) expectSaid(t *testing.T, wanted ...string) {
	t.Helper()
	said := r.said(t)
	for _, text := range wanted {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in:\n%s", text, said)
		}
	}
}

var printedRun = regexp.MustCompile(`Run (\S+) begins`)

// name returns the run's name. It is printed before anything is made.
func (r *program) name(t *testing.T) string {
	t.Helper()
	return printedRun.FindStringSubmatch(r.said(t))[1]
}

// exchanges returns the file with the exchanges.
func (r *program) exchanges(t *testing.T) string {
	t.Helper()
	return readFile(t, strings.TrimSuffix(r.report, ".md")+".jsonl")
}

// sweepRun runs the sweep of a run, which is to leave nothing.
func sweepRun(t *testing.T, m *mock, run string) {
	t.Helper()
	r := newProgram(t, m, "sweep")
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// update writes the page's generated part anew: go test ./cmd/mcm-stackit -update.
var update = flag.Bool("update", false, "write generated parts of pages anew")

// asCommand in the environment makes the test binary behave as the command.
const asCommand = "MCM_STACKIT_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// serviceAccountKey is a key that each test's cloud accepts: making one is slow.
var serviceAccountKey = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// aServer is none of any cloud's; noCluster makes the control cluster one that refuses connections.
const (
	aServer   = "20000000-0000-4000-8000-000000000001"
	noCluster = "--server=http://127.0.0.1:1"
)

// invocation is a run of the command in a process of its own, with no environment but its own, and no kubeconfig.
type invocation struct {
	args  []string
	env   []string
	stdin string
}

func (i invocation) command(t *testing.T) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, stdout, stderr = exec.CommandContext(ctx, self, i.args...), &bytes.Buffer{}, &bytes.Buffer{}
	command.Env = append(
		[]string{asCommand + "=1", "HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(t.TempDir(), "none")}, i.env...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(i.stdin), stdout, stderr
	return command, stdout, stderr
}

// expect runs the command, and wants an exit code, these texts in what it prints, and no secret. It returns standard
// output.
func (i invocation) expect(t *testing.T, code int, says ...string) string {
	t.Helper()
	command, stdout, stderr := i.command(t)
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	printed := stdout.String() + stderr.String()
	if got := command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range says {
		if !strings.Contains(printed, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	for _, secret := range []string{"the-canary", "PRIVATE KEY", "MIIE"} {
		if strings.Contains(printed, secret) {
			t.Errorf("a secret was printed: %s", secret)
		}
	}
	if t.Failed() {
		t.Logf("%s:\n%s", strings.Join(i.args, " "), printed)
	}
	return stdout.String()
}

// startProject starts a mock, and returns the environment that reaches it and names its default project, and the file
// of the key that it names.
func startProject(t *testing.T) (cloud *iaasmock.Cloud, env []string, path string) {
	t.Helper()
	cloud, path = iaasmock.New(iaasmock.WithBootDuration(0)), filepath.Join(t.TempDir(), "key.json")
	key, err := serviceAccountKey()
	if err := errors.Join(err, os.WriteFile(path, key, 0o600),
		cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return cloud, []string{"STACKIT_API_ENDPOINT=" + server.URL, "STACKIT_TOKEN_BASEURL=" + server.URL + "/oauth/v2/token",
		envProjectID + "=" + iaasmock.DefaultProjectID, envRegion + "=" + iaasmock.DefaultRegion,
		envKeyPath + "=" + path}, path
}

// inProject are the flags that name the default project, with the key in a file.
func inProject(key string, args ...string) []string {
	return append(args, "--project-id", iaasmock.DefaultProjectID, "--region", iaasmock.DefaultRegion,
		"--service-account-key-path", key)
}

func TestWrongUsage(t *testing.T) {
	target := "--target-kubeconfig=x"
	for says, args := range map[string][]string{
		`unknown command "bogus" for "mcm-stackit"`:      {"bogus"},
		`unknown command "bogus" for "mcm-stackit list"`: {"list", "bogus"},
		"--secret cannot be combined with --cloud-only":  {"doctor", "--cloud-only", "--secret", "a"},
		"unknown flag: --nope":                           {"list", "--nope"},
		"no server IDs given":                            {"delete", "server", target},
		"--target-kubeconfig is missing":                 {"delete", "server", aServer, "--dry-run"},
		"standard input or error is not a terminal":      {"delete", "server", aServer, target},
		"unknown flag: --yes":                            {"delete", "server", aServer, target, "--yes"},
		"must be a UUID in lower case, or server/UUID":   {"delete", "server", "machine/a", target, "--dry-run"},
		"unknown flag: --orphans":                        {"list", "--orphans"},
		"--request-timeout must be a time with its unit": {"list", "--request-timeout", "abc"},
		"-o must be one of: wide, json, yaml, name":      {"list", "servers", "-o", "bad"},
		"-o must be one of: json":                        {"doctor", "-o", "yaml"},
		"no manifests given: pass files with -f":         {"validate"},
		`argument "samples": pass each file or folder`:   {"validate", "samples"},
		"describe needs one Machine or server":           {"describe", "pod", "x"},
		"--project-id must be a UUID":                    {"list", "--project-id", "mine"},
		"--region must be a region such as eu01":         {"doctor", "--region", "eu/01"},
		"credentials without a Secret need all of":       {"list", "--project-id", iaasmock.DefaultProjectID},
		"--secret cannot be combined with --project-id":  {"list", "--project-id", aServer, "--secret", "a"},
		"-f is the content of a file, not a path":        {"validate", "-f", `{"token": "the-canary"}`},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			if stdout := (invocation{args: args}).expect(t, report.ExitUsage, says, "--help'."); stdout != "" {
				t.Errorf("standard output has %q", stdout)
			}
		})
	}
}

// From files to the API: what is printed where, and how it ends.
func TestValidate(t *testing.T) {
	cloud, env, _ := startProject(t)
	good, err := os.ReadFile("../../pkg/operator/validate/testdata/good.yaml")
	key, keyErr := serviceAccountKey()
	if err := errors.Join(err, keyErr); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(good), "KEY", strconv.Quote(string(key)), 1)
	const checked = "Checked 1 Machine, 1 MachineClass, 1 MachineDeployment, 1 Secret: 0 wrong, 0 unknown, 0 hints.\n"
	invocation{args: []string{"validate", "-f", "-", "--online"}, env: env, stdin: text}.expect(t, 0, checked)
	cloud.Inject(iaasmock.Fault{Operation: "GetImage", Status: 403})
	invocation{args: []string{"validate", "-f", "-", "--online", "-o", "json"}, env: env, stdin: text}.expect(t, 0,
		`"verdict": "hint",`, `"found": "not checked: image 3000`)
	samples := []string{"validate", "-f", "../../samples"}
	invocation{args: samples}.expect(t, 1, "wrong    ../../samples/secret.yaml:", ": serviceAccountKey: Invalid value")
	invocation{args: append(samples, "--allow-missing-secret")}.expect(t, 0, "hint     ../../samples/", " 0 wrong")
}

func TestDoctor(t *testing.T) {
	cloud, env, key := startProject(t)
	fine := invocation{args: []string{"doctor", "--cloud-only"}, env: env}
	fine.expect(t, 0, "or their variables\n",
		"fine     token: granted and accepted\n", "not tried: POST, PATCH", "4 fine, 0 wrong, 0 unknown, 0 hints.\n")
	fine.args = append(fine.args, "-o", "json")
	fine.expect(t, 0, `"subject": "token",`, `"notTried": [`)
	invocation{args: inProject(key, "doctor"), env: env}.expect(t, 2, "credentials: --project-id, --region and --ser",
		"unknown  cluster with the Machines: not checked: ")
	cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 403})
	fine.expect(t, 1)
	content := append(env[:4:4], envKeyPath+`={"privateKey": "the-canary"}`)
	invocation{args: []string{"doctor", "--cloud-only"}, env: content}.expect(t, 64, "is the content of a file")
}

// What is down is said once, with exit code 2, and the rest is shown.
func TestWhatIsDown(t *testing.T) {
	_, env, key := startProject(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Config\n  clusters: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const read = "0 servers read in project " + iaasmock.DefaultProjectID + " in eu01\n"
	target := []string{"delete", "server", aServer, "--dry-run", "--target-kubeconfig", broken}
	for name, row := range map[string]struct {
		args []string
		says []string
	}{
		"a cluster":       {inProject(key, "list", noCluster), []string{read, "MachineClasses, Machines unknown: "}},
		"servers":         {inProject(key, "list", "servers", noCluster), []string{read, "connection refused"}},
		"a kubeconfig":    {inProject(key, "list", "--kubeconfig", broken), []string{read, "reading the kubeconfig"}},
		"no kubeconfig":   {[]string{"list"}, []string{"Machines, servers unknown: "}},
		"describe":        {[]string{"describe", "machine", "a", noCluster}, []string{"servers unknown: the cluster with"}},
		"the target":      {append(target, noCluster), []string{"reading --target-kubeconfig " + broken}},
		"another Secret":  {[]string{"validate", "-f", "../../samples", "--secret", "a"}, []string{"refused"}},
		"a key's file":    {inProject("/nowhere", "list"), []string{"key: open /nowhere: no such file"}},
		"JSON of nothing": {inProject(key, "list", "-o", "json", noCluster), []string{`"items": []`, "Machines unknown: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invocation{args: row.args, env: env}.expect(t, report.ExitUnknown, row.says...)
		})
	}
}

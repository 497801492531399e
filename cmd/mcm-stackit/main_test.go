// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// update writes the golden files anew: go test ./cmd/mcm-stackit -update.
var update = flag.Bool("update", false, "write the golden files anew")

// asCommand in the environment makes the test binary behave as the command.
const asCommand = "MCM_STACKIT_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run())
	}
	flag.Parse()
	// Rows mostly wait: for processes to start, and for the limit of reads.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// serviceAccountKey is a key that each test's cloud accepts: making one is slow.
var serviceAccountKey = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// outcome is what a run of the command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// aServer is none of any cloud's.
const aServer = "20000000-0000-4000-8000-000000000001"

// deleteServer is a command line, deleteTarget one of which the rest is right.
func deleteServer(words ...string) []string { return append([]string{"delete", "server"}, words...) }

func deleteTarget(words ...string) []string {
	return append(deleteServer(aServer, "--target-kubeconfig=x", "--dry-run"), words...)
}

func manyServers(number int) (ids []string) {
	for i := range number {
		ids = append(ids, fmt.Sprintf("30000000-0000-4000-8000-%012d", i))
	}
	return ids
}

// invocation is a run of the command.
type invocation struct {
	args  []string
	env   []string
	stdin string
}

// command is the command in a process of its own, with no environment but its own, and no
// kubeconfig.
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

// run runs the command to its end.
func (i invocation) run(t *testing.T) outcome {
	t.Helper()
	command, stdout, stderr := i.command(t)
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// startMock starts a cloud, and returns the environment that reaches it.
func startMock(t *testing.T, options ...iaasmock.Option) (*iaasmock.Cloud, []string) {
	t.Helper()
	cloud := iaasmock.New(options...)
	key, err := serviceAccountKey()
	if err == nil {
		err = cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return cloud, []string{"STACKIT_API_ENDPOINT=" + server.URL, "STACKIT_TOKEN_BASEURL=" + server.URL + "/oauth/v2/token"}
}

// startProject starts a mock, and returns the environment that reaches it and names its default project, and the file
// of the key that it names.
func startProject(t *testing.T) (cloud *iaasmock.Cloud, env []string, path string) {
	t.Helper()
	cloud, env = startMock(t)
	key, _ := serviceAccountKey()
	path = filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return cloud, append(env,
		envProjectID+"="+iaasmock.DefaultProjectID, envRegion+"="+iaasmock.DefaultRegion, envKeyPath+"="+path), path
}

// inProject are the flags that name the default project, with the key in a file.
func inProject(key string, args ...string) []string {
	return append(args, "--project-id", iaasmock.DefaultProjectID, "--region", iaasmock.DefaultRegion,
		"--service-account-key-path", key)
}

// expectGolden compares text with the file of the name in testdata.
func expectGolden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestWrongUsage(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"unknown command": {[]string{"bogus"}, `unknown command "bogus"`},
		"unknown list":    {[]string{"list", "bogus"}, `unknown command "bogus"`},
		"a typo":          {[]string{"docter"}, `unknown command "docter" for "mcm-stackit": did you mean doctor?`},
		"a typo below": {[]string{"list", "server"},
			`unknown command "server" for "mcm-stackit list": did you mean servers?`},
		"a typo before a flag": {[]string{"docter", "--cloud-only"}, `"docter" for "mcm-stackit": did you mean doctor?`},
		"a typo below, before a flag": {[]string{"delete", "servers", aServer, "--target-kubeconfig", "k"},
			`unknown command "servers" for "mcm-stackit delete": did you mean server?`},
		"unknown shell":         {[]string{"completion", "bogus"}, `unknown command "bogus"`},
		"help for a typo":       {[]string{"help", "docter"}, `for "mcm-stackit": did you mean doctor?`},
		"help for a typo below": {[]string{"help", "list", "server"}, `unknown command "server" for "mcm-stackit list"`},
		"Secret without a cluster": {[]string{"doctor", "--cloud-only", "--secret", "a"},
			"--secret cannot be combined with --cloud-only, which reads no cluster"},
		"unknown flag":         {[]string{"options", "--nope"}, "unknown flag: --nope"},
		"delete nothing":       {deleteServer("--target-kubeconfig=x"), "no server IDs given"},
		"delete without Nodes": {deleteServer(aServer, "--dry-run"), "--target-kubeconfig is missing"},
		"nobody to ask":        {deleteServer(aServer, "--target-kubeconfig=x"), "standard input or error is not a terminal"},
		"delete unasked":       {deleteServer(aServer, "--target-kubeconfig=x", "--yes"), "unknown flag: --yes"},
		"delete 101":           {deleteTarget(manyServers(101)...), "102 servers given: must be at most 100"},
		"flag of another":      {[]string{"list", "--orphans"}, "unknown flag: --orphans"},
		"timeout in words":     {[]string{"list", "--request-timeout", "abc"}, `--request-timeout is "abc": must be`},
		"negative timeout":     {[]string{"options", "--request-timeout", "-3s"}, `--request-timeout is "-3s": must be`},
		"format of list":       {[]string{"list", "servers", "-o", "bad"}, "must be one of: "},
		"validate nothing": {
			[]string{"validate", "-n", "default"},
			"no manifests given: pass files with -f or -k; for a cluster's objects, kubectl get -o yaml | mcm-stackit",
		},
		"-k with -f":      {[]string{"validate", "-k", "a", "-f", "b"}, "-k cannot be combined with -f or -R"},
		"-R without -f":   {[]string{"validate", "-R", "-k", "a"}, "-k cannot be combined with -f or -R"},
		"file without -f": {[]string{"validate", "samples"}, `argument "samples": pass each file or folder with -f, `},
		"an expanded pattern": {[]string{"validate", "-f", "dir/a.yaml", "dir/b.yaml"},
			`argument "dir/b.yaml": pass each file or folder with -f, and quote a pattern: -f 'dir/*.yaml'`},
		"no cluster label": {[]string{"list", "--cluster", "kubernetes.io/machine=a"}, "ends in /cluster"},
		"no label value": {[]string{"list", "servers", "--cluster", "kubernetes.io/cluster=a,b=c"},
			"not a valid label of a server"},
		"describe nothing": {[]string{"describe"}, "describe needs one Machine"},
		"describe another": {[]string{"describe", "pod", "x"}, "describe needs one Machine or server"},
		"describe two":     {[]string{"describe", "machine", "x", "y"}, "describe needs one Machine"},
		"describe no name": {[]string{"describe", "machine/"}, "describe needs one Machine"},
		"cluster of list":  {[]string{"list", "servers", "--cluster", "bad"}, "--cluster: "},
		"server of delete": {deleteTarget("machine/" + aServer), "must be a UUID"},
		"project":          {[]string{"list", "--project-id", "mine"}, "--project-id must be a UUID"},
		"region":           {[]string{"doctor", "--region", "eu/01"}, "--region must be a region such as eu01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args}.run(t)
			if got.code != 64 || got.stdout != "" || !strings.Contains(got.stderr, row.says) ||
				!strings.Contains(got.stderr, "--help'.") {
				t.Errorf("got %+v, want exit code 64, nothing on stdout, and %q", got, row.says)
			}
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// environmentRow is a command line in an environment that is partly broken.
type environmentRow struct {
	args []string
	code int
	// stdout and stderr are texts of either.
	stdout, stderr string
}

func (row environmentRow) run(t *testing.T, name string, env []string, stdin string) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		got := invocation{args: row.args, env: env, stdin: stdin}.run(t)
		if got.code != row.code || !strings.Contains(got.stdout, row.stdout) || !strings.Contains(got.stderr, row.stderr) {
			t.Errorf("got %+v, want exit code %d, %q and %q", got, row.code, row.stdout, row.stderr)
		}
	})
}

// kubeconfigs writes one that cannot be parsed, and one without a context.
func kubeconfigs(t *testing.T) (broken, whole string) {
	t.Helper()
	broken, whole = filepath.Join(t.TempDir(), "broken"), filepath.Join(t.TempDir(), "whole")
	for path, text := range map[string]string{
		broken: "apiVersion: v1\nkind: Config\n  clusters: [\n",
		whole: `{"apiVersion": "v1", "kind": "Config",
			"clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return broken, whole
}

func TestBrokenKubeconfig(t *testing.T) {
	t.Parallel()
	_, env, key := startProject(t)
	text := manifests(t)
	broken, whole := kubeconfigs(t)
	for state, flags := range map[string][]string{
		"cannot be parsed": {"--kubeconfig", broken}, "cannot be parsed, with -n": {"--kubeconfig", broken, "-n", "default"},
		"lacks the context": {"--kubeconfig", whole, "--context", "nope"},
	} {
		const says = "reading the kubeconfig of the cluster with the Machines: "
		for name, row := range map[string]environmentRow{
			"options":             {[]string{"options"}, 0, "--kubeconfig", ""},
			"completion":          {[]string{"completion", "bash"}, 0, "mcm-stackit", ""},
			"files":               {[]string{"validate", "-f", "-", "--online"}, 0, "nothing is wrong", ""},
			"doctor of the cloud": {[]string{"doctor", "--cloud-only"}, 0, "FINE     reads: servers: allowed", ""},
			"list":                {inProject(key, "list", "servers"), 2, "0 servers read", ""},
			"doctor": {[]string{"doctor"}, 2, "UNKNOWN  cluster with the Machines: not checked: " + says,
				"0 wrong, 1 unknown"},
			"list of Machines": {inProject(key, "list"), 2, "Machines unknown: " + says, ""},
			"delete server":    {deleteTarget(), 2, "", says},
		} {
			row.args = append(row.args, flags...)
			row.run(t, state+"/"+name, env, text)
		}
	}
}

// Without a kubeconfig, client-go asks localhost:8080, where nothing is.
func TestNoKubeconfig(t *testing.T) {
	_, whole := kubeconfigs(t)
	const says = "no kubeconfig with a current context: set --kubeconfig"
	for name, flags := range map[string][]string{"no file": nil, "no current context": {"--kubeconfig", whole}} {
		for command, row := range map[string]environmentRow{
			"list":   {[]string{"list"}, 2, "MachineClasses, Machines, servers unknown: " + says, ""},
			"doctor": {[]string{"doctor"}, 2, "UNKNOWN  cluster with the Machines: not checked: " + says, ""},
			"delete": {deleteTarget(), 2, "", says},
		} {
			row.args = append(row.args, flags...)
			row.run(t, name+"/"+command, nil, "")
		}
	}
}

func TestBrokenTargetKubeconfig(t *testing.T) {
	broken, whole := kubeconfigs(t)
	args := deleteServer(aServer, "--dry-run", "--server", "https://127.0.0.1:1", "--target-kubeconfig", broken)
	environmentRow{args, 2, "", "reading --target-kubeconfig"}.
		run(t, "cannot be parsed", nil, "")
	// In a pod, too, whose own cluster would be the wrong one.
	args = deleteServer(aServer, "--dry-run", "--server", "https://127.0.0.1:1", "--target-kubeconfig", whole)
	environmentRow{args, 2, "", "the kubeconfig has no cluster"}.
		run(t, "is empty", []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"}, "")
}

// Whoever writes "$(cat key.json)" in place of key.json must not find the key in the terminal or in a CI log.
func TestContentInPlaceOfAPath(t *testing.T) {
	_, env, path := startProject(t)
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	const canary = "the-canary-token"
	kubeconfig := `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: ` + canary + `}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a`
	// A client-key is a path; client-key-data is not.
	withKey := filepath.Join(t.TempDir(), "with-key")
	err = os.WriteFile(withKey, []byte(strings.Replace(kubeconfig, "token: "+canary, `client-certificate: a,
  client-key: "-----BEGIN PRIVATE KEY-----\nMIIEcanary\n-----END PRIVATE KEY-----\n"`, 1)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	const is = " is the content of a file, not a path"
	inVariable := append(slices.Clone(env), envKeyPath+"="+string(key))
	clusterInVariable := append(slices.Clone(env), "KUBECONFIG="+kubeconfig)
	for name, row := range map[string]struct {
		env  []string
		args []string
		code int
		says string
	}{
		"key":             {env, inProject(string(key), "doctor", "--cloud-only"), 64, "--service-account-key-path" + is},
		"key as JSON":     {env, inProject(string(key), "doctor", "-o=json"), 64, "--service-account-key-path" + is},
		"key of list":     {env, inProject(string(key), "list", "servers"), 64, "--service-account-key-path" + is},
		"key in variable": {inVariable, []string{"doctor", "--cloud-only"}, 64, "$" + envKeyPath + is},
		"key elsewhere": {append(slices.Clone(env), envRegion+"="+string(key)), []string{"doctor", "--cloud-only"}, 64,
			"$" + envRegion + is},
		"variable that is not used": {inVariable, inProject(path, "doctor", "--cloud-only"), 0, "servers: allowed"},
		"kubeconfig":                {env, []string{"list", "--kubeconfig", kubeconfig}, 64, "--kubeconfig" + is},
		"kubeconfig in variable":    {clusterInVariable, []string{"list", "-v=4"}, 2, "$KUBECONFIG" + is},
		"variable without clusters": {clusterInVariable, []string{"doctor", "--cloud-only", "-v=4"}, 0, "servers: allowed"},
		"target":                    {env, deleteTarget("--target-kubeconfig", kubeconfig), 64, "--target-kubeconfig" + is},
		"manifest":                  {env, []string{"validate", "-f" + kubeconfig}, 64, "-f" + is},
		"kustomization":             {env, []string{"validate", "-k=" + kubeconfig}, 64, "-k" + is},
		"Secret":                    {env, []string{"list", "--secret=" + kubeconfig}, 64, "--secret" + is},
		"argument":                  {env, deleteServer(string(key)), 64, "argument" + is},
		"key in a kubeconfig": {env, []string{"list", "--kubeconfig", withKey}, 2,
			"unable to read client-key " + filepath.Dir(withKey) + "/<redacted>"},
		"key in the target": {env, deleteServer(aServer, "--dry-run", "--server", "https://127.0.0.1:1",
			"--target-kubeconfig", withKey), 2, "unable to read client-key " + filepath.Dir(withKey) + "/<redacted>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args, env: row.env}.run(t)
			printed := got.stdout + got.stderr
			if got.code != row.code || !strings.Contains(printed, row.says) {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
			for _, secret := range []string{canary, "PRIVATE KEY", "MIIE"} {
				if strings.Contains(printed, secret) {
					t.Errorf("%q was printed: %s", secret, printed)
				}
			}
		})
	}
}

func TestMalformedEndpoint(t *testing.T) {
	text := manifests(t)
	const says = "STACKIT_API_ENDPOINT must be an http or https URL"
	env := []string{"STACKIT_API_ENDPOINT=nowhere"}
	for name, row := range map[string]environmentRow{
		"options":    {[]string{"options"}, 0, "--kubeconfig", ""},
		"help":       {[]string{"doctor", "--help"}, 0, "Usage:", ""},
		"completion": {[]string{"completion", "zsh"}, 0, "mcm-stackit", ""},
		"files":      {[]string{"validate", "-f", "-"}, 0, "nothing is wrong", ""},
		"online":     {[]string{"validate", "-f", "-", "--online"}, 2, "", says},
		"list":       {[]string{"list", "servers"}, 2, "", says},
		"delete":     {deleteTarget(), 2, "", says},
		"doctor": {[]string{"doctor", "--cloud-only"},
			1, "WRONG    environment: the API is not called: " + says, "0 fine, 1 wrong, 0 unknown, 0 hints."},
	} {
		row.run(t, name, env, text)
	}
}

// The variables may be set for other tools.
func TestCredentialsWithoutASecret(t *testing.T) {
	_, env, path := startProject(t)
	text := manifests(t)
	missing := append(slices.Clone(env), envKeyPath+"=/nowhere/key.json")
	for name, row := range map[string]struct {
		env []string
		environmentRow
	}{
		"by variables": {env, environmentRow{[]string{"doctor", "--cloud-only"},
			0, "FINE     reads: servers: allowed",
			"credentials: $STACKIT_PROJECT_ID, $STACKIT_REGION, $STACKIT_SERVICE_ACCOUNT_KEY_PATH\n"}},
		"by flags": {env[:2], environmentRow{inProject(path, "list"),
			2, "0 servers read in project " + iaasmock.DefaultProjectID + " in eu01",
			"credentials: --project-id, --region, --service-account-key-path\n"}},
		"variables beside a cluster": {env, environmentRow{[]string{"list", noControl},
			2, "MachineClasses, Machines, age of readiness, servers unknown: the cluster", ""}},
		"some variables": {env[:3], environmentRow{[]string{"doctor", "--cloud-only"},
			2, "UNKNOWN  credentials: no credentials: set all of --project-id, --region and --service-account-key-path", ""}},
		"help for a command with arguments": {env[:2], environmentRow{[]string{"help", "describe", "machine"},
			0, "Usage:\n  mcm-stackit describe", ""}},
		"a flag alone": {env[:2], environmentRow{[]string{"list", "--project-id", iaasmock.DefaultProjectID},
			64, "", "credentials without a Secret need all of "}},
		"a flag beside a Secret": {env, environmentRow{
			[]string{"list", "--project-id", iaasmock.DefaultProjectID, "--secret", "a"}, 64, "",
			"--secret cannot be combined with "}},
		"a key that is missing": {env[:2], environmentRow{inProject("/nowhere/key.json", "list"),
			2, "reading the service-account key: open /nowhere/key.json: no such file", ""}},
		"a missing key that is not used": {missing, environmentRow{[]string{"validate", "-f", "-", "--online"},
			0, "nothing is wrong", ""}},
	} {
		row.run(t, name, row.env, text)
	}
}

func TestStandardOutputThatCannotBeWritten(t *testing.T) {
	_, env, key := startProject(t)
	text := manifests(t)
	for name, args := range map[string][]string{
		"version": {"--version"}, "help": {"--help"}, "completion": {"completion", "bash"},
		"validate": {"validate", "-f", "-"},
		"doctor":   {"doctor", "--cloud-only"},
		"servers":  inProject(key, "list", "servers"), "servers as JSON": inProject(key, "list", "servers", "-o", "json"),
		"options": {"options"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, _, stderr := invocation{args: args, env: env, stdin: text}.command(t)
			command.Stdout = fullDisk(t)
			_ = command.Run()
			const says = "writing to standard output failed: "
			if code := command.ProcessState.ExitCode(); code != report.ExitUnknown || strings.Count(stderr.String(), says) != 1 {
				t.Errorf("exit code %d and %q, want %d and %q once", code, stderr, report.ExitUnknown, says)
			}
		})
	}
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

// Whoever interrupts a deletion is told so.
func TestSignalEndsDeleteServer(t *testing.T) {
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte(`{"clusters": [{"name": "a", "cluster": {"server": "`+server.URL+`"}}],
		"contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := deleteServer(aServer, "--target-kubeconfig", target, "--dry-run", "--server", server.URL,
		"--project-id", iaasmock.DefaultProjectID, "--region", "eu01")
	command, _, stderr := invocation{args: args,
		env: []string{"STACKIT_API_ENDPOINT=" + server.URL, "STACKIT_NO_AUTH=true"}}.command(t)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("nothing was asked")
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() }).Stop()
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != report.ExitUnknown ||
		!strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d and %q, want %d and that it was interrupted", code, stderr, report.ExitUnknown)
	}
}

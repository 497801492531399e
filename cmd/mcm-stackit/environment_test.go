// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
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
		whole:  `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return broken, whole
}

func TestBrokenKubeconfig(t *testing.T) {
	t.Parallel()
	cloud, env := startProject(t)
	text := manifests(t, cloud)
	broken, whole := kubeconfigs(t)
	for state, flags := range map[string][]string{
		"cannot be parsed": {"--kubeconfig", broken}, "cannot be parsed, with -n": {"--kubeconfig", broken, "-n", "default"},
		"lacks the context": {"--kubeconfig", whole, "--context", "nope"},
	} {
		const says = "reading the kubeconfig of the cluster with the Machines: "
		for name, row := range map[string]environmentRow{
			"version":              {[]string{"version"}, 0, "", ""},
			"completion":           {[]string{"completion", "bash"}, 0, "mcm-stackit", ""},
			"files":                {[]string{"validate", "-f", "-", "--online"}, 0, "nothing is wrong", ""},
			"doctor of the cloud":  {[]string{"doctor", "--cloud-only"}, 0, "FINE     reads: servers: allowed", ""},
			"list":                 {[]string{"list", "servers"}, 2, "0 servers read", ""},
			"doctor":               {[]string{"doctor"}, 2, "UNKNOWN  cluster with the Machines: not looked at: " + says, "0 wrong, 1 unknown"},
			"list of Machines":     {[]string{"list", "machines"}, 2, "Machines unknown: " + says, ""},
			"objects of a cluster": {[]string{"validate"}, 2, "", says},
			"delete server":        {deleteTarget(), 2, "", says},
		} {
			row.args = append(row.args, flags...)
			row.run(t, state+"/"+name, env, text)
		}
	}
}

func TestBrokenTargetKubeconfig(t *testing.T) {
	broken, whole := kubeconfigs(t)
	environmentRow{[]string{"delete", "server", aServer, "--yes", "--server", "https://127.0.0.1:1", "--target-kubeconfig", broken}, 2, "", "reading --target-kubeconfig"}.
		run(t, "cannot be parsed", nil, "")
	// In a pod, too, whose own cluster would be the wrong one.
	args := deleteServer(aServer, "--yes", "--server", "https://127.0.0.1:1", "--target-kubeconfig", whole)
	environmentRow{args, 2, "", "it names no cluster"}.
		run(t, "is empty", []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"}, "")
}

func TestMalformedEndpoint(t *testing.T) {
	cloud, project := startProject(t)
	key := project[len(project)-1][len(envKeyPath)+1:]
	text := manifests(t, cloud)
	const says = "STACKIT_API_ENDPOINT must be an http or https URL"
	env := []string{"STACKIT_API_ENDPOINT=nowhere"}
	for name, row := range map[string]environmentRow{
		"version":    {[]string{"version"}, 0, "", ""},
		"help":       {[]string{"doctor", "--help"}, 0, "Usage:", ""},
		"completion": {[]string{"completion", "zsh"}, 0, "mcm-stackit", ""},
		"files":      {[]string{"validate", "-f", "-"}, 0, "nothing is wrong", ""},
		"online":     {[]string{"validate", "-f", "-", "--online"}, 2, "", says},
		"list":       {[]string{"list", "servers"}, 2, "", says},
		"delete":     {deleteTarget(), 2, "", says},
		"doctor":     {[]string{"doctor", "--cloud-only", "--project-id", "10000000-0000-4000-8000-000000000001", "--region", "eu01", "--service-account-key-path", key}, 1, "WRONG    environment: the API is not asked: " + says, "0 fine, 1 wrong, 0 unknown, 0 hints."},
	} {
		row.run(t, name, env, text)
	}
}

// Whatever asks nevertheless does not reach STACKIT's own API, which is the default.
func TestMalformedEndpointReachesNothing(t *testing.T) {
	o := newOptions(genericiooptions.IOStreams{}, func(name string) (string, bool) { return "nowhere", name == spi.EnvAPIEndpoint })
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	sessions, ok := o.sessions(spi.NewTransport()).(*spi.PluginSPIImpl)
	if !ok {
		t.Fatal("sessions of another type")
	}
	response, err := sessions.Transport.RoundTrip(httptest.NewRequest(http.MethodGet, spi.DefaultEndpoint, http.NoBody))
	if err == nil || !strings.Contains(err.Error(), spi.EnvAPIEndpoint) {
		t.Errorf("got %v, %v, want the variable", response, err)
	}
}

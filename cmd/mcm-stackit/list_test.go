// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// startProject starts a mock, and returns the environment that reaches its default project.
func startProject(t *testing.T, options ...iaasmock.Option) (*iaasmock.Cloud, []string) {
	t.Helper()
	cloud, env := startMock(t, append([]iaasmock.Option{iaasmock.WithBootDuration(0)}, options...)...)
	key := keyOf(t, cloud)
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return cloud, append(env, envProjectID+"="+iaasmock.DefaultProjectID, envRegion+"="+iaasmock.DefaultRegion, envKeyPath+"="+path)
}

// addServer makes a server, and returns its ID.
func addServer(t *testing.T, env []string, name string, labels map[string]any) string {
	t.Helper()
	lookup := func(name string) (string, bool) {
		for _, variable := range slices.Backward(env) {
			if key, value, _ := strings.Cut(variable, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
	config, err := spi.ConfigFromEnvironment(lookup)
	if err != nil {
		t.Fatal(err)
	}
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	session, err := (&spi.PluginSPIImpl{Config: config}).Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := session.API.CreateServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: labels, UserData: new("c2VjcmV0"),
		BootVolume: &iaas.BootVolume{Size: new(int64(20)), Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: new(iaasmock.DefaultNetworkID)}},
	}).Execute()
	if err != nil {
		t.Fatal(err)
	}
	return server.GetId()
}

// noControl makes the control cluster one that refuses connections.
const noControl = "--server=http://127.0.0.1:1"

func workerLabels(machine string) map[string]any {
	return map[string]any{"kubernetes.io/machine": machine, "kubernetes.io/machineclass": "worker", "kubernetes.io/cluster": "shoot--demo--laptop"}
}

func TestListUsage(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"unknown word":            {[]string{"list", "bogus"}, `unknown command "bogus"`},
		"too many words":          {[]string{"list", "servers", "x"}, `unknown command "x"`},
		"cluster without a value": {[]string{"list", "servers", "--cluster", "kubernetes.io/cluster"}, "must be key=value"},
		"empty cluster":           {[]string{"list", "servers", "--cluster", ""}, "--cluster is empty"},
		"another label":           {[]string{"list", "machines", "--cluster", "kubernetes.io/machine=a"}, "ends in /cluster"},
		"no label value":          {[]string{"list", "servers", "--cluster", "kubernetes.io/cluster=a,b=c"}, "no label that a server can have"},
		"no selector":             {[]string{"list", "machines", "-l", "a=b=c"}, "--selector: "},
		"selector of clusters":    {[]string{"list", "clusters", "-l", "a=b"}, "unknown shorthand flag: 'l'"},
		"all namespaces' servers": {[]string{"list", "servers", "-A"}, "unknown shorthand flag: 'A'"},
		"JSON without headers":    {[]string{"list", "servers", "--no-headers", "-o", "json"}, "-o json cannot be used"},
		"watch":                   {[]string{"list", "servers", "--watch"}, "unknown flag: --watch"},
		"unknown format":          {[]string{"list", "servers", "-o", "xml"}, "must be one of"},
		"orphans among Machines":  {[]string{"list", "machines", "--orphans"}, "unknown flag: --orphans"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: row.args}.run(t)
			if got.code != report.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %+v, want exit code 64, nothing on stdout, and %q", got, row.says)
			}
		})
	}
}

func TestListWithoutACluster(t *testing.T) {
	cloud, env := startProject(t)
	first := addServer(t, env, "worker-1", workerLabels("worker-1"))
	second := addServer(t, env, "worker-2", workerLabels("worker-2"))
	bastion := addServer(t, env, "bastion", nil)
	if err := cloud.SetServerStatus(second, iaasmock.StatusError, "No valid host was found.\nSorry"); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args   []string
		code   int
		stdout []string
		not    []string
	}{
		"a table": {[]string{"servers"}, report.ExitFine, []string{first, second, "2 servers, 1 ACTIVE, Machines unknown, orphans unknown", "No valid host was found. Sorry"}, []string{bastion, "ADDRESSES"}},
		"all":     {[]string{"servers", "--all"}, report.ExitFine, []string{first, bastion, "unmanaged"}, nil},
		"wide":    {[]string{"server", "-o", "wide"}, report.ExitFine, []string{"ADDRESSES", "10.0.", "not all MachineClasses could be read"}, nil},
		"names":   {[]string{"servers", "-o", "name", "--machine", "worker-1"}, report.ExitFine, []string{first + "\n"}, []string{second, "SERVER"}},
		"clusters": {[]string{"clusters"}, report.ExitFine,
			[]string{"kubernetes.io/cluster=shoot--demo--laptop  unknown  2        1       unknown"}, nil},
		"names of clusters": {[]string{"clusters", "-o", "name"}, report.ExitFine, []string{"kubernetes.io/cluster=shoot--demo--laptop\n"}, nil},
		// These cannot be answered without Machines.
		"orphans":                       {[]string{"servers", "--orphans"}, report.ExitUnknown, []string{"orphans unknown"}, []string{first}},
		"machines":                      {[]string{"machines"}, report.ExitUnknown, []string{"2 servers, 1 ACTIVE, Machines unknown"}, nil},
		"orphans of a mistyped cluster": {[]string{"servers", "--orphans", "--cluster", "kubernetes.io/cluster=typo"}, report.ExitUnknown, nil, nil},
		"all namespaces":                {[]string{"machines", "-A"}, report.ExitUnknown, []string{"2 servers"}, nil},
		"labels": {[]string{"servers", "-l", "kubernetes.io/machine in (worker-1,x),!kubernetes.io/nope"}, report.ExitFine,
			[]string{first, "SERVER", "1 server, 1 ACTIVE"}, []string{second}},
		"no headers":           {[]string{"servers", "--no-headers"}, report.ExitFine, []string{first, second}, []string{"SERVER", "servers", "reason:"}},
		"no headers, all wide": {[]string{"servers", "--no-headers", "-o", "wide"}, report.ExitFine, []string{first, second, "10.0."}, []string{"ADDRESSES", "2 servers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"list", noControl}, row.args...), env: env}.run(t)
			if got.code != row.code || !strings.Contains(got.stderr, "Machines unknown: ") || strings.Contains(got.stdout, "c2VjcmV0") {
				t.Errorf("got %+v, want exit code %d, and the reason on stderr", got, row.code)
			}
			for _, want := range row.stdout {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
				}
			}
			for _, not := range row.not {
				if strings.Contains(got.stdout, not) {
					t.Errorf("stdout has %q:\n%s", not, got.stdout)
				}
			}
		})
	}
}

// A cluster label that nothing carries is said to be wrong, in every form.
func TestListOfAMistypedCluster(t *testing.T) {
	_, env := startProject(t)
	addServer(t, env, "worker-1", workerLabels("worker-1"))
	const says = "cluster unknown: no server and no MachineClass that was read carries kubernetes.io/cluster=shoot--demo--latpop\n"
	for _, kind := range listKinds {
		for _, output := range []string{"wide", "json", "name"} {
			got := invocation{args: []string{"list", noControl, kind.name, "-o", output, "--cluster", "kubernetes.io/cluster=shoot--demo--latpop"}, env: env}.run(t)
			if got.code != report.ExitUnknown || !strings.Contains(got.stderr, says) {
				t.Errorf("%s -o %s: got %+v", kind.name, output, got)
			}
		}
	}
}

func TestListFormats(t *testing.T) {
	_, env := startProject(t)
	id := addServer(t, env, "worker-1", workerLabels("worker-1"))
	for name, decode := range map[string]func([]byte, any) error{
		formatJSON: json.Unmarshal,
		formatYAML: func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: []string{"list", noControl, "servers", "-o", name}, env: env}.run(t)
			var found list.Inventory
			if err := decode([]byte(got.stdout), &found); err != nil {
				t.Fatal(err, got)
			}
			if len(found.Servers) != 1 || found.Servers[0].ID != id || len(found.Servers[0].Addresses) != 1 || found.Machines != nil || found.Totals.Machines != nil || len(found.Unread) == 0 {
				t.Errorf("got %+v", found)
			}
		})
	}
	got := invocation{args: []string{"list", noControl, "servers", "-o", "json", "--class", "none"}, env: env}.run(t)
	if !strings.Contains(got.stdout, `"servers": []`) {
		t.Errorf("got %s, want an empty list", got.stdout)
	}
}

func TestListIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		args  []string
		code  int
		says  string
	}{
		"servers":           {iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden}, []string{"servers"}, report.ExitUnknown, "servers unknown: project " + iaasmock.DefaultProjectID + " in eu01: no Secret"},
		"servers, orphans":  {iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden}, []string{"servers", "--orphans"}, report.ExitUnknown, string(provider.ReasonNoPermission)},
		"an answer of null": {iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: "null"}, []string{"servers"}, report.ExitUnknown, "the answer has no list"},
		"addresses":         {iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusForbidden}, []string{"servers", "-o", "wide"}, report.ExitFine, "addresses unknown: project"},
		"no list of NICs":   {iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusOK, Body: "{}"}, []string{"servers", "-o", "wide"}, report.ExitFine, "the answer cannot be read"},
		"NICs of null":      {iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusOK, Body: "null"}, []string{"servers", "-o", "wide"}, report.ExitFine, "the answer has no list"},
		"NICs of nothing":   {iaasmock.Fault{Operation: "ListProjectNICs", Status: http.StatusOK, Body: `{"items":[{},{"device":"x"}]}`}, []string{"servers", "-o", "wide"}, report.ExitFine, ""},
		"servers of nothing": {iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: `{"items":[{"name":"a","machineType":"b"},{"name":"a","machineType":"b","labels":null,"errorMessage":null}]}`},
			[]string{"servers", "--all"}, report.ExitFine, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud, env := startProject(t)
			addServer(t, env, "worker-1", workerLabels("worker-1"))
			cloud.Inject(row.fault)
			got := invocation{args: append([]string{"list", noControl}, row.args...), env: env}.run(t)
			if got.code != row.code || !strings.Contains(got.stderr, row.says) || strings.Contains(got.stderr, "panic") {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
		})
	}
}

// What depends on a target cluster that cannot be asked is unknown, and not absent.
func TestListWithoutItsTarget(t *testing.T) {
	_, env := startProject(t)
	addServer(t, env, "worker-1", workerLabels("worker-1"))
	target := filepath.Join(t.TempDir(), "nowhere")
	got := invocation{args: []string{"list", noControl, "servers", "-o", "json", "--target-kubeconfig", target}, env: env}.run(t)
	var found list.Inventory
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
		t.Fatal(err, got)
	}
	if found.Knows(list.PartNodes) || len(found.Servers) != 1 || found.Servers[0].Readiness != list.ReadinessUnknown {
		t.Errorf("got %+v, want that Nodes are unknown", found)
	}
	if got.code != report.ExitFine || strings.Count(got.stderr, "reading --target-kubeconfig "+target) != 1 || !strings.Contains(got.stderr, "Nodes unknown: reading") {
		t.Errorf("got %+v, want it on stderr once", got)
	}
}

func TestListWithAControlClusterThatCannotBeAsked(t *testing.T) {
	_, env := startProject(t)
	addServer(t, env, "worker-1", workerLabels("worker-1"))
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"list", "servers", "--server=https://127.0.0.1:1", "--certificate-authority", authority}
	for _, target := range [][]string{nil, {"--target-kubeconfig", noCluster}} {
		got := invocation{args: append(slices.Clone(args), target...), env: env}.run(t)
		if got.code != report.ExitFine || !strings.Contains(got.stderr, "Machines unknown: asking cluster https://127.0.0.1:1: ") || strings.Contains(got.stderr, "Nodes unknown: ") != (target == nil) {
			t.Errorf("%q: got %+v", target, got)
		}
	}
}

func TestRequestTimeoutBoundsReadsOfTheCloud(t *testing.T) {
	t.Parallel()
	cloud, env := startProject(t)
	cloud.Inject(iaasmock.Fault{Delay: 25 * time.Second})
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"list":     {[]string{"list", "servers", noControl}, report.ExitUnknown, "servers unknown: "},
		"doctor":   {[]string{"doctor", "--cloud-only"}, report.ExitUnknown, "UNKNOWN  reads: servers: "},
		"validate": {[]string{"validate", "--online", "-f", "../../samples/machine-class-minimal.yaml"}, report.ExitUnknown, "not checked to the end: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			got := invocation{args: append(row.args, "--request-timeout", "1s"), env: env}.run(t)
			if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
				t.Errorf("got %+v, want exit code %d and %q", got, row.code, row.says)
			}
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestListWithoutCredentials(t *testing.T) {
	got := invocation{args: []string{"list", "servers", noControl}}.run(t)
	if got.code != report.ExitUnknown || !strings.Contains(got.stderr, "servers unknown: ") || got.stdout != "servers unknown, Machines unknown, orphans unknown\n" {
		t.Errorf("got %+v", got)
	}
}

// exampleLine is a command of an Example section.
var exampleLine = regexp.MustCompile(`(?m)^  (mcm-stackit .*)$`)

func TestListExamples(t *testing.T) {
	_, env := startProject(t)
	addServer(t, env, "worker-1", workerLabels("worker-1"))
	for _, words := range [][]string{{"list"}, {"list", "servers"}, {"list", "machines"}, {"list", "clusters"}} {
		help := invocation{args: append(slices.Clone(words), "--help")}.run(t)
		_, section, _ := strings.Cut(help.stdout, "Examples:\n")
		section, _, _ = strings.Cut(section, "\n\n")
		examples := exampleLine.FindAllStringSubmatch(section, -1)
		if len(examples) == 0 {
			t.Errorf("%v has no example", words)
		}
		for _, example := range examples {
			t.Run(example[1], func(t *testing.T) {
				t.Parallel()
				args := strings.Fields(example[1])[1:]
				// Without a cluster, some cannot be told.
				if got := (invocation{args: append(args, noControl), env: env}).run(t); got.code != report.ExitFine && got.code != report.ExitUnknown {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

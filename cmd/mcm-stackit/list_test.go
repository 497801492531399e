// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// startServers starts a mock that asks for no token and has a Machine's server and another one, and returns
// their IDs and the environment that reaches it.
func startServers(t *testing.T) (worker, bastion string, env []string) {
	t.Helper()
	cloud, env := startMock(t, iaasmock.WithBootDuration(0), iaasmock.WithoutAuthentication())
	ids := map[string]string{}
	for name, labels := range map[string]string{"bastion": "{}", "worker-1": `{"kubernetes.io/machine": "worker-1",
		"kubernetes.io/machineclass": "worker", "kubernetes.io/cluster": "shoot--demo--laptop"}`} {
		body := fmt.Sprintf(`{"name": %q, "labels": %s, "machineType": %q, "userData": "c2VjcmV0",
			"networking": {"networkId": %q}, "bootVolume": {"size": 20, "source": {"type": "image", "id": %q}}}`,
			name, labels, iaasmock.DefaultMachineType, iaasmock.DefaultNetworkID, iaasmock.DefaultImageID)
		path := fmt.Sprintf("/v2/projects/%s/regions/%s/servers", iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
		request, answer := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)), httptest.NewRecorder()
		request.Header.Set("Content-Type", "application/json")
		cloud.ServeHTTP(answer, request)
		for _, server := range cloud.Servers() {
			ids[server.Name] = server.ID
		}
		if ids[name] == "" {
			t.Fatal(answer.Body)
		}
	}
	return ids["worker-1"], ids["bastion"],
		append(env, "STACKIT_NO_AUTH=true")
}

// noControl makes the control cluster one that refuses connections.
const noControl = "--server=http://127.0.0.1:1"

// Without a cluster, servers are shown, nobody is called an orphan, and the cause is told once.
func TestListWithoutACluster(t *testing.T) {
	first, bastion, env := startServers(t)
	const cause = "MachineClasses, Machines, age of readiness unknown: the cluster with the Machines: " +
		"dial tcp 127.0.0.1:1: connect: connection refused\n"
	const cluster = "kubernetes.io/cluster=shoot--demo--laptop"
	const counts = cluster + ": Machines unknown, ready unknown, 1 server, orphans unknown\n"
	for name, row := range map[string]struct {
		args           []string
		stdout, stderr []string
		not            []string
	}{
		"servers": {[]string{"servers"},
			[]string{"SERVER ", first, "  worker-1  ", "  unknown\n", cause, counts}, nil, []string{bastion, "CLUSTER"}},
		"servers, wide": {[]string{"servers", "-o", "wide"},
			[]string{"CLUSTER ", cluster + "   " + iaasmock.DefaultProjectID, counts}, nil, nil},
		"names": {[]string{"servers", "-o", "name"}, []string{"server/" + first + "\n"}, []string{cause}, []string{bastion}},
		"JSON": {[]string{"servers", "-o", "json"},
			[]string{`"apiVersion": "mcm-stackit/v1"`, `"kind": "Server"`, `"name": "` + first + `"`}, []string{cause}, nil},
		"YAML":    {[]string{"servers", "-o", "yaml"}, []string{"kind: List\n", "  kind: Server\n"}, []string{cause}, nil},
		"orphans": {[]string{"servers", "--orphans"}, []string{cause, "orphans unknown\n"}, nil, []string{first}},
		"orphans' names": {[]string{"servers", "--orphans", "-o", "name", "--cluster", cluster},
			nil, []string{cause}, []string{first}},
		"Machines": {nil,
			[]string{"2 servers read in project " + iaasmock.DefaultProjectID + " in eu01\n", cause, counts}, nil,
			[]string{"MACHINE"}},
		"no Machines": {[]string{"-o", "json"}, []string{`"items": []`}, []string{cause}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append(append([]string{"list"}, row.args...), noControl,
				"--project-id", iaasmock.DefaultProjectID, "--region", iaasmock.DefaultRegion), env: env}.run(t)
			if got.code != report.ExitUnknown || strings.Contains(got.stdout, "c2VjcmV0") ||
				strings.Count(got.stdout+got.stderr, "refused") != 1 {
				t.Errorf("got %+v, want exit code 2, and the cause once", got)
			}
			for _, want := range row.stdout {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
				}
			}
			for _, want := range row.stderr {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
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

func TestWithoutAnything(t *testing.T) {
	const counts = "no cluster label: Machines unknown, ready unknown, servers unknown\n"
	const unknown = "MachineClasses, Machines, age of readiness, servers unknown: the cluster"
	environmentRow{[]string{"describe", "machine", "worker-1", noControl}, 2, "", "Machine default/worker-1: " + unknown}.
		run(t, "describe", nil, "")
	environmentRow{[]string{"list", noControl}, 2, counts, ""}.run(t, "counts", nil, "")
	environmentRow{[]string{"doctor", "--cloud-only"}, 2, "UNKNOWN  credentials: ", ""}.run(t, "doctor", nil, "")
	environmentRow{[]string{"validate", "-f", "-", "--secret", "elsewhere"}, 2, "", "no kubeconfig with a current"}.
		run(t, "validate", nil, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
}

// Whatever hangs ends with --request-timeout.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	cloud, env, key := startProject(t)
	cloud.Inject(iaasmock.Fault{Delay: 2 * time.Minute})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // which nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for name, row := range map[string]struct {
		args []string
		says []string
	}{
		"list": {[]string{"list", "servers", "--server=http://" + listener.Addr().String()},
			[]string{"the cluster with the Machines does not answer within 3s",
				"servers of project " + iaasmock.DefaultProjectID + " in eu01 unknown: the API does not answer within 3s"}},
		"doctor": {[]string{"doctor", "--cloud-only"}, []string{"UNKNOWN  token: not granted by "}},
		"validate": {[]string{"validate", "--online", "-f", "../../samples/machine-class-minimal.yaml"},
			[]string{"not fully checked: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			got := invocation{args: inProject(key, append(row.args, "--request-timeout", "3s")...), env: env}.run(t)
			for _, says := range row.says {
				if got.code != report.ExitUnknown || strings.Count(got.stdout+got.stderr, says) != 1 {
					t.Errorf("got %+v, want exit code 2 and %q once", got, says)
				}
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
}

// listNothing answers as a cluster that has no Machines and no MachineClasses.
func listNothing(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	kind := "MachineClassList"
	if strings.HasSuffix(request.URL.Path, "/machines") {
		kind = "MachineList"
	}
	_, _ = fmt.Fprintf(answer, `{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": %q, "items": []}`, kind)
}

// Who mistypes a name is told so, also while something else is down.
func TestDescribeNobody(t *testing.T) {
	t.Parallel()
	cloud, env, key := startProject(t)
	cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
	cluster := httptest.NewServer(http.HandlerFunc(listNothing))
	t.Cleanup(cluster.Close)
	environmentRow{inProject(key, "describe", "machine", "nobody", "--server", cluster.URL), 2, "",
		"there is no Machine default/nobody: check the namespace (-n)\n"}.run(t, "nobody", env, "")
}

// A login plugin may take its time: it is named, and the cluster still has its own.
func TestLoginPlugin(t *testing.T) {
	t.Parallel()
	_, _, env := startServers(t)
	var asked atomic.Int32
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") == "Bearer of-the-plugin" {
			asked.Add(1)
		}
		listNothing(answer, request)
	}))
	t.Cleanup(cluster.Close)
	folder := t.TempDir()
	plugin, config := filepath.Join(folder, "plugin"), filepath.Join(folder, "config")
	const apiVersion = `"apiVersion": "client.authentication.k8s.io/v1"`
	const script = "#!/bin/sh\nsleep 6\n" +
		`echo '{` + apiVersion + `, "kind": "ExecCredential", "status": {"token": "of-the-plugin"}}'` + "\n"
	kubeconfig := `{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
		"clusters": [{"name": "a", "cluster": {"insecure-skip-tls-verify": true, "server": "` + cluster.URL + `"}}],
		"users": [{"name": "a", "user": {"exec": {` + apiVersion + `, "command": "` + plugin +
		`", "interactiveMode": "Never"}}}]}`
	for file, text := range map[string]string{plugin: script, config: kubeconfig} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := invocation{args: []string{"list", "--kubeconfig", config, "--request-timeout", "5s"},
		env: append(env, "PATH="+os.Getenv("PATH"))}.run(t)
	if strings.Count(got.stderr, "still waiting for the login plugin "+plugin+"\n") != 1 || asked.Load() < 3 ||
		strings.Contains(got.stdout, "Machines unknown") {
		t.Errorf("got %+v, asked %d times", got, asked.Load())
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	cluster := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		if request.URL.Path == "/api/v1/namespaces" {
			_, _ = io.WriteString(answer,
				`{"apiVersion": "v1", "kind": "NamespaceList", "items": [{"metadata": {"name": "shoot--demo"}}]}`)
		}
	}))
	t.Cleanup(cluster.Close)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{"clusters": [{"name": "a", "cluster": {"server": "`+cluster.URL+`"}}],
		"contexts": [{"name": "seed-1", "context": {"cluster": "a"}}], "current-context": "seed-1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"seed-1": {"list", "--context", ""}, "shoot--demo": {"list", "-n", ""},
		"wide": {"list", "-o", ""}, ":4": {"list", "servers", ""},
	} {
		got := invocation{args: append([]string{"__complete", "--kubeconfig", config}, args...)}.run(t)
		if got.code != 0 || !strings.HasPrefix(got.stdout, want+"\n") || !strings.Contains(got.stdout, ":4\n") {
			t.Errorf("%v: got %+v, want %s", args, got, want)
		}
	}
	got := invocation{args: []string{"__complete", "--server", "http://127.0.0.1:1", "list", "-n", ""}}.run(t)
	if got.stdout != ":4\n" {
		t.Errorf("got %+v, want nothing", got)
	}
}

// Names and IDs are the cluster's and the API's; delete server has those of orphans alone.
func TestCompletionOfNamesAndIDs(t *testing.T) {
	t.Parallel()
	worker, bastion, env := startServers(t)
	const class = `{"metadata": {"namespace": "default", "name": "worker"},
		"secretRef": {"namespace": "default", "name": "credentials"},
		"providerSpec": {"labels": {"kubernetes.io/cluster": "shoot--demo--laptop"}}}`
	var machine atomic.Value
	machine.Store("lost")
	cluster := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		switch path.Base(request.URL.Path) {
		case "machineclasses":
			_, _ = io.WriteString(answer,
				`{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClassList", "items": [`+class+`]}`)
		case "credentials":
			_, _ = fmt.Fprintf(answer, `{"apiVersion": "v1", "kind": "Secret", "data": {"projectId": %q, "region": "ZXUwMQ=="}}`,
				base64.StdEncoding.EncodeToString([]byte(iaasmock.DefaultProjectID)))
		case "machines":
			_, _ = fmt.Fprintf(answer, `{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineList", "items": [
				{"metadata": {"namespace": "default", "name": %q}}]}`, machine.Load())
		default:
			_, _ = io.WriteString(answer, `{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList"}`)
		}
	}))
	t.Cleanup(cluster.Close)
	run := func(args ...string) string {
		return invocation{args: append([]string{"__complete", "--server", cluster.URL}, args...), env: env}.run(t).stdout
	}
	for line, want := range map[string]string{
		"describe": "machine\nserver\n:4\n", "describe machine": "lost\n:4\n", "describe server": worker + "\tworker-1\n:4\n",
		"delete server": worker + "\tworker-1\n:4\n", "delete server " + worker: ":4\n", "describe server " + worker: ":4\n",
	} {
		if got := run(append(strings.Fields(line), "")...); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	machine.Store("worker-1")
	if got := run("delete", "server", ""); got != ":4\n" {
		t.Errorf("delete server: got %q, want no server of a Machine", got)
	}
	described := invocation{args: []string{"describe", "server/" + bastion, "--server", cluster.URL}, env: env}.run(t)
	described.expect(t, 0, "Server:         "+bastion+"\n", "Note:           not managed here\n",
		"Console log:    -\n",
		"\nnot managed here\n  of:     "+bastion+"\n  reason: it lacks one of the driver's labels\n")
	environmentRow{[]string{"describe", "server", "nobody", "--server", cluster.URL}, 2, "",
		"server nobody not found in project " + iaasmock.DefaultProjectID +
			" in eu01: check namespace and context\n"}.run(t, "nobody", env, "")
}

// The healthy Machines of a class are one line, unless all are asked for, or there is but one.
func TestHealthyMachinesShareALine(t *testing.T) {
	machine := func(namespace, class, name, state string, notes ...list.Note) *list.Machine {
		return &list.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Class: class, Phase: "Running",
			State: state, Ready: list.Ready, Notes: notes}
	}
	found := &list.Result{Machines: []*list.Machine{
		machine("a", "worker", "a1", "ACTIVE"), machine("a", "worker", "a2", "ACTIVE", list.Note{Kind: list.NoteOrphan}),
		machine("a", "worker", "a3", "ACTIVE"), machine("a", "worker", "a4", "ACTIVE"),
		machine("a", "single", "a5", "ACTIVE"), machine("b", "worker", "b1", "ACTIVE"),
		machine("b", "worker", "b2", list.Unknown), machine("b", "worker", "b3", "ACTIVE"),
	}}
	for all, want := range map[bool]string{
		false: "a/3 Machines ready a/a2 a/a5 b/2 Machines ready b/b2", true: "a/a1 a/a2 a/a3 a/a4 a/a5 b/b1 b/b2 b/b3",
	} {
		var rows []string
		for _, row := range machinesTable(found, true, all).Rows {
			rows = append(rows, fmt.Sprintf("%v/%v", row.Cells[0], row.Cells[1]))
		}
		if got := strings.Join(rows, " "); got != want {
			t.Errorf("all is %t: got %s, want %s", all, got, want)
		}
	}
}

// A Machine's cells, its server's, and why it is stuck.
func TestDescribedText(t *testing.T) {
	now := time.Now()
	machine := &list.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "seed", Name: "worker-1"},
		Phase:      "CrashLoopBackOff", PhaseSince: metav1.NewTime(now.Add(-time.Minute)),
		LastOperation: &v1alpha1.LastOperation{Type: "Create", State: "Failed",
			LastUpdateTime: metav1.NewTime(now.Add(-time.Hour)), Description: "a\nb"},
		Notes: []list.Note{
			{Kind: list.NoteStuck, About: "NoCapacity", Reason: "full", Remedy: "wait"},
			{Kind: list.NoteUnknown, Reason: "not read"}, {Kind: list.NoteFault, Reason: "server a: no host"},
			{Kind: list.NoteFault, Reason: "server b: no volume"},
		},
		Servers: []*list.Server{{ObjectMeta: metav1.ObjectMeta{Name: aServer}, State: "ERROR", Region: "eu01",
			Addresses: []string{"10.0.0.1", "fd00::1"}, ConsoleLog: []string{"a\x1b[31m", "b"}}},
	}
	got := describedText(&list.Result{Time: now, Machines: []*list.Machine{machine},
		Unknown: []string{"Leases unknown: x"}})
	expectGolden(t, "described.txt", got)

	machine.LastOperation.LastUpdateTime = metav1.Time{}
	got = describedText(&list.Result{Time: now, Machines: []*list.Machine{machine}})
	if want := "\nLast operation: Create Failed: a b\n"; !strings.Contains(got, want) {
		t.Errorf("without a time, got\n%s\nwant %q", got, want)
	}
}

// What a tenant writes into a status, and an API into an ID, forges no line and moves no cursor.
func TestNothingOfOthersCommandsATerminal(t *testing.T) {
	const hostile = "a\x1b]0;owned\x07\u009b31m\u202e\nserver/20000000-0000-4000-8000-000000000001 gone"
	var stdout, stderr bytes.Buffer
	o := newOptions(genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
	server := &list.Server{TypeMeta: metav1.TypeMeta{Kind: "Server"}, ObjectMeta: metav1.ObjectMeta{Name: hostile}}
	for _, format := range []string{formatName, formatJSON, "yaml"} {
		if err := printObjects(o, format, []*list.Server{server}); err != nil {
			t.Fatalf("-o %s: %v", format, err)
		}
	}
	note := list.Note{Kind: list.NoteStuck, About: hostile, Reason: hostile, Cause: hostile, Remedy: hostile}
	found := &list.Result{
		Machines: []*list.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Phase: hostile, Notes: []list.Note{note}}},
		Unknown:  []string{"servers unknown: a\x1b"}}
	if err := (&listing{options: o}).print(found); err != nil {
		t.Fatal(err)
	}
	o.say("%s", hostile)
	for stream, text := range map[string]string{"output": stdout.String(), "error": stderr.String()} {
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "server/2") ||
				strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }) {
				t.Errorf("standard %s has the line %q", stream, line)
			}
		}
	}
}

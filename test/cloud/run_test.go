// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var boot = flag.Duration("boot", 3*time.Second, "boot time of the green run's servers")

// mockOptions are those of a mock whose servers boot in this time, with others.
func mockOptions(boot time.Duration, others ...iaasmock.Option) []iaasmock.Option {
	return append([]iaasmock.Option{
		iaasmock.WithBootDuration(boot), iaasmock.WithDeleteDuration(time.Second),
	}, others...)
}

// TestGreen runs the whole suite with lag, faults that the driver lives with, and authentication.
func TestGreen(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(*boot,
		iaasmock.WithListLag(time.Second), iaasmock.WithDeleteDuration(2*time.Second), iaasmock.WithServerLabels(),
		iaasmock.WithSeed(7)),
		`{"operation":"ListNetworks","status":503,"count":1}`, // the first request of all
		`{"preset":"unavailable","probability":0.01}`, `{"preset":"lost-answers","count":1}`,
		`{"preset":"rate-limited-retry-after","probability":0.002}`,
		`{"preset":"random-404","probability":0.3,"count":8}`,
		`{"operation":"DeleteServer","dropAfter":true,"count":1}`,
		`{"operation":"ListServers","ignoreSelector":true}`, `{"operation":"GetServer","forbiddenAfterDelete":true}`,
	)
	before := p.ids()
	r := newProgram(t, p, "--patience="+(time.Minute+6**boot).String())
	r.run(t, exitGreen)
	p.expectOnly(t, before)
	expectNoSecrets(t, p, r)
	expectReport(t, r.report,
		`A server that was just made is there for GET \| .*\d–\d`,
		`Lists show a new server within settle, 30 s \| .*\d–\d`,
		`A server boots within .* \| .*\d–\d`, `A DELETE shows as DELETING within 15 s \| .*\d–\d`,
		`A deleted server is gone within minutes, to GET \| .*\d–\d`,
		`A deleted server is gone within minutes, to lists \| .*\d–\d`,
		`DELETE is accepted in any status.* \| .*CREATING: 204`,
		`GET after a deletion answers 404, or 403 \| 403`, `Statuses of servers \| ACTIVE`,
		`A server that goes takes its NIC .* \| 0 left, and 0 that`,
		`key in \(value-none\): IGNORED`, `key!=value: IGNORED`,
		`Labels may have keys .* \| NIC: 200; server: 200; volume: 200`,
		`A server may have 256 labels \| 256 more: 200, 2[56]\d shown`,
		`Metadata that was sent shows \| sent 1 key, shown {"mcm-cloud-test":"probe"}`,
		`The console log can be read \| 200, 0 characters \d+s after its POST`,
		`An X-Request-Id that was sent is kept \| kept: `, `Volumes show bootable \| of a boot volume: true`,
		`Names of servers are not unique \| a second server of a name: 201`,
		`userData over 64 KiB \| 70 KiB of base64: 201`,
		`imageId: \w+, .*machineType: \w+, `, `errorMessage says why .* \| ERROR: "`,
		`Headers of answers.* \| .*429 with Retry-After: "5".*X-Request-Id`,
		`Answers by operation.* \| .*404 application/json {"code":404.*POST /servers: 201`,
		"version "+testVersion, `and made \d+ servers`, `quota \| not met`,
	)
}

// oldRun is a run that is over, and has left a server.
const (
	oldRun    = "20200101-000000-abcd"
	oldServer = "mcm-cloud-test-" + oldRun + "-first"
)

// makeOld makes what the old run has left, and returns the IDs.
func (p project) makeOld(t *testing.T) (network, server string) {
	t.Helper()
	network = p.make(t, api.PathNetworks, map[string]any{"name": api.NetworkName(oldRun)})
	return network, p.makeServer(t, oldServer, map[string]any{"networking": inNetwork(network)})
}

// expectNoSecrets looks for what is nobody's business in what the run printed and reported: the output alone
// names the project. Each exchange is a line of JSON.
func expectNoSecrets(t *testing.T, p project, r program) {
	t.Helper()
	key, lines := readFile(t, p.keyFile), readFile(t, strings.TrimSuffix(r.report, ".md")+".jsonl")
	secrets := []string{iaasmock.DefaultProjectID, "BEGIN ", "eyJ"}
	for _, found := range regexp.MustCompile(`"(?:kid|iss|sub|id)": ?"([^"]+)"`).FindAllStringSubmatch(key, -1) {
		secrets = append(secrets, found[1])
	}
	if len(secrets) < 6 {
		t.Fatalf("the key has no more secrets than %d", len(secrets))
	}
	output := strings.ReplaceAll(r.said(t), iaasmock.DefaultProjectID, "")
	for what, text := range map[string]string{"output": output, "report": readFile(t, r.report), "exchanges": lines} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s have %.12q…", what, secret)
			}
		}
	}
	for _, secret := range []string{"10.0.", "@", "IyBjbG91ZC1pbml0"} {
		if strings.Contains(lines, secret) {
			t.Errorf("the exchanges have %q", secret)
		}
	}
	count := 0
	for line := range strings.Lines(lines) {
		var exchange struct {
			Method, Path string
			Status       int
		}
		if err := json.Unmarshal([]byte(line), &exchange); err != nil || exchange.Method == "" || exchange.Path == "" {
			t.Fatalf("%s: %v", line, err)
		}
		count++
	}
	if count < 200 {
		t.Errorf("there are %d exchanges", count)
	}
}

// expectReport looks for what was to be measured.
func expectReport(t *testing.T, path string, rows ...string) {
	t.Helper()
	content := readFile(t, path)
	for _, row := range rows {
		if !regexp.MustCompile(row).MatchString(content) {
			t.Errorf("%q is not in\n%s", row, content)
		}
	}
}

// TestRed runs the suite against APIs that are wrong in one way each, and without a control plane: it is red,
// says in a line what it saw, and nothing of the run is left.
func TestRed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		boot   time.Duration
		args   []string
		faults []string
		want   string
	}{
		{
			name: "is slower than the limit", boot: time.Hour, args: []string{"--limit=3m", "--patience=1h"},
			want: `not all was done after 2m`,
		},
		{
			name: "never deletes", args: []string{"--patience=1m"},
			faults: []string{`{"preset":"stuck-deleting","count":5}`},
			want:   `wanted: no server of the run; seen: .*server \S+ \(\S+-probe\)`,
		},
		{
			name: "keeps volumes that it names", faults: []string{`{"operation":"CreateServer","ownBootVolume":true}`},
			want: `wanted: no NIC or boot volume without its server; seen: \[volume \S+ \(of \S+\)`,
		},
		{
			name: "doubles", faults: []string{"duplicate-servers"}, want: `2 servers of the name \S+, after 1 POSTs`,
		},
		{
			name: "boots no server", faults: []string{"boot-error"},
			want: `ended in ERROR: "Build of instance aborted: Failed to allocate`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, mockOptions(max(row.boot, time.Second)), row.faults...)
			before := p.ids()
			r := newProgram(t, p, row.args...)
			r.run(t, exitRed)
			r.expectVerdict(t, row.want)
			p.expectOnly(t, before)
		})
	}
}

// expectVerdict looks for a regular expression in the line that says why a run is red.
func (r program) expectVerdict(t *testing.T, want string) {
	t.Helper()
	verdict := regexp.MustCompile(`(?m)^RED: .*$`).FindString(r.said(t))
	if !regexp.MustCompile(want).MatchString(verdict) {
		t.Errorf("want %q in:\n%s", want, r.said(t))
	}
}

// TestFewRights has an account that may do less, an API that refuses what the driver never asks for, and an
// older run that cannot be swept: all of that is told, and none makes the run red. A control plane that does not
// start does.
func TestFewRights(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(time.Second),
		`{"operation":"GetVolume","status":403}`, `{"operation":"UpdateVolume","status":500}`,
		`{"operation":"GetServerLog","status":403}`,
		`{"operation":"DeleteServer","server":"`+oldServer+`","status":409}`,
		`{"operation":"DeleteServer","status":409,"count":9}`,
	)
	p.makeOld(t)
	before := p.ids()
	p.fault(t, `{"preset":"wrong-server","count":1}`)
	p.fault(t, `{"operation":"CreateNetwork","dropAfter":true,"count":1}`)
	r := newProgram(t, p)
	r.Env = append(r.Env, "KUBEBUILDER_ASSETS="+failingAssets(t))
	r.run(t, exitRed)
	r.expectVerdict(t, "^RED: the driver makes a server .*: etcd")
	p.expectOnly(t, before)
	expectReport(t, r.report,
		`A server that goes takes .* \| 0 left, and [1-9]\d* that`, `volume: 500`, `CREATING: 409`,
		`The console log can be read \| not allowed`, `Volumes show bootable \| not allowed`,
		`GET after a deletion answers 404, or 403 \| 404`,
		`key in \(value-none\): excludes it`, `key!=value: excludes it`,
		// What a POST made without showing it was found, and not made again.
		`and made 3 servers`, `PATCH [^;]*; POST /networks: no answer; POST /servers`,
	)
	r.expectSaid(t, "LEFT: server ", "("+oldServer+")", "LEFT: network ", "Try again: make test-cloud-sweep RUN="+oldRun)
	if strings.Contains(readFile(t, strings.TrimSuffix(r.report, ".md")+".jsonl"), oldServer) {
		t.Error("the exchanges name a server that is not the run's")
	}
}

// failingAssets returns a folder with an etcd and a kube-apiserver that end at once.
func failingAssets(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Without settings, programs or a yes, nothing is made. Who is asked reads where, what, how much, and what
// older runs have left, which a sweep deletes. It fails as long as somebody's NIC keeps the network.
func TestNothingIsMadeUnasked(t *testing.T) {
	t.Parallel()
	p := newProject(t, mockOptions(time.Second))
	before := p.ids()
	network, server := p.makeOld(t)
	left := p.ids()
	for variable, said := range map[string][]string{
		"YES=": {
			"region eu01, at " + p.url + "\n  WHICH IS NOT https://iaas.api.stackit.cloud", "about 10, at most 18",
			"mcm-cloud-test-<run>, for this run alone", "7 to 10 minutes", "at most 144, and 48 GB hours",
			"what older runs have left", "network " + network, "server " + server, "Type yes",
		},
		"KUBEBUILDER_ASSETS=" + t.TempDir(): {"KUBEBUILDER_ASSETS must name"},
		"STACKIT_PROJECT_ID=":               {"STACKIT_PROJECT_ID is not set"},
	} {
		r := newProgram(t, p)
		r.Env = append(r.Env, variable)
		r.run(t, exitNothingMade)
		r.expectSaid(t, said...)
	}
	p.expectOnly(t, left)
	nic := p.make(t, api.PathNICs(network), map[string]any{"name": "database"})
	r := newProgram(t, p, "sweep")
	r.run(t, exitRed)
	r.expectSaid(t, "since NIC "+nic, "LEFT: network "+network, "Try again: make test-cloud-sweep RUN="+oldRun)
	if _, err := p.client.Do(t.Context(), http.MethodDelete, api.PathNICs(network)+"/"+nic, nil); err != nil {
		t.Fatal(err)
	}
	sweepRun(t, p, "")
	p.expectOnly(t, before)
}

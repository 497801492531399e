// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var boot = flag.Duration("boot", 3*time.Second, "boot time of the green run's servers")

// TestGreen runs the whole suite with lag, faults that the driver lives with, and authentication.
func TestGreen(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, row := range map[string]struct {
		mock []string
		// there is what was there before, and what stays.
		there func(*testing.T, mock)
		// rows are what the report has, as regular expressions; said is what the run says.
		rows, said []string
	}{
		"faults": {
			mock: []string{
				"--list-lag=1s", "--server-labels", `--fault={"preset":"unavailable","probability":0.01}`,
				`--fault={"preset":"lost-answers","count":1}`,
				`--fault={"preset":"rate-limited-retry-after","probability":0.002}`,
				`--fault={"preset":"random-404","probability":0.3,"count":8}`, "--seed=7",
				`--fault={"operation":"DeleteServer","dropAfter":true,"count":1}`,
			},
			rows: []string{
				`A server that was just made is there for GET \| .*\d–\d`,
				`Lists show a new server within settle, 30 s \| .*\d–\d`,
				`A server boots within .* \| .*\d–\d`, `A DELETE shows as DELETING within 15 s \| .*\d–\d`,
				`A deleted server is gone within minutes, to GET \| .*\d–\d`,
				`A deleted server is gone within minutes, to lists \| .*\d–\d`,
				`to GET \| 0?[12]\.\d–[1-4]\.\d s`, `DELETE is accepted in any status.* \| .*CREATING: 204`,
				`GET after a deletion answers 404, or 403 \| 404`, `Statuses of servers \| ACTIVE`,
				`A server that goes takes its NIC .* \| 0 left, and 0 that`, `key in \(value-none\): excludes it`,
				`key!=value: excludes it`,
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
			},
		},
		"rights and selectors": {
			mock: []string{
				`--fault={"operation":"GetVolume","status":403}`, `--fault={"operation":"UpdateVolume","status":500}`,
				`--fault={"operation":"GetNic","status":403}`, `--fault={"operation":"GetServerLog","status":403}`,
				`--fault={"operation":"ListServers","ignoreSelector":true}`,
				`--fault={"operation":"GetServer","forbiddenAfterDelete":true}`,
				`--fault={"operation":"DeleteServer","server":"` + oldServer + `","status":409}`,
				`--fault={"operation":"DeleteServer","status":409,"count":9}`,
			},
			there: func(t *testing.T, m mock) {
				t.Helper()
				network := makes(t, m, api.PathNetworks, map[string]any{"name": api.NetworkName(oldRun)})
				makesServer(t, m, network, oldServer, map[string]string{})
				m.inject(t, `{"preset":"wrong-server","count":1}`)
				m.inject(t, `{"operation":"CreateNetwork","dropAfter":true,"count":1}`)
			},
			rows: []string{
				`A server that goes takes .* and [1-9]\d* that`, `volume: 500`, `CREATING: 409`,
				`The console log can be read \| not allowed`,
				`Volumes show bootable \| not allowed`, `GET after a deletion answers 404, or 403 \| 403`,
				`key in \(value-none\): IGNORED`, `key!=value: IGNORED`,
			},
			said: []string{
				"LEFT: server ", "(" + oldServer + ")", "LEFT: network ", "Try again: make test-cloud-sweep RUN=" + oldRun,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMock(t, append([]string{"--boot=" + boot.String(), "--delete=2s"}, row.mock...)...)
			if row.there != nil {
				row.there(t, m)
			}
			before := m.ids(t)
			s := newSuite(t, m, "--patience="+(time.Minute+6**boot).String())
			s.run(t, 0)
			expectOnly(t, m, before)
			expectNoSecrets(t, m, s)
			expectReport(t, s.report, row.rows)
			expectSaid(t, s, row.said...)
		})
	}
}

// oldRun is a run that is over, and has left a server.
const (
	oldRun    = "20200101-000000-abcd"
	oldServer = "mcm-cloud-test-" + oldRun + "-first"
)

// expectNoSecrets looks for what is nobody's business in what the run printed and reported: the output alone
// names the project. Each exchange is a line of JSON.
func expectNoSecrets(t *testing.T, m mock, s suite) {
	t.Helper()
	key, lines := readFile(t, m.keyFile), readFile(t, strings.TrimSuffix(s.report, ".md")+".jsonl")
	secrets := []string{iaasmock.DefaultProjectID, "BEGIN ", "eyJ"}
	for _, found := range regexp.MustCompile(`"(?:kid|iss|sub|id)": ?"([^"]+)"`).FindAllStringSubmatch(key, -1) {
		secrets = append(secrets, found[1])
	}
	if len(secrets) < 6 {
		t.Fatalf("the key has no more secrets than %d", len(secrets))
	}
	output := strings.ReplaceAll(s.output.String(), iaasmock.DefaultProjectID, "")
	for what, text := range map[string]string{"output": output, "report": readFile(t, s.report), "exchanges": lines} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s have %.12q…", what, secret)
			}
		}
	}
	for _, secret := range []string{"database-of-somebody", "10.0.", "@", "IyBjbG91ZC1pbml0"} {
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
func expectReport(t *testing.T, path string, rows []string) {
	t.Helper()
	content := readFile(t, path)
	for _, row := range append(rows, "version "+version, `and made \d+ servers`, `quota \| not met`) {
		if !regexp.MustCompile(row).MatchString(content) {
			t.Errorf("%q is not in\n%s", row, content)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestRed runs the suite against APIs that are wrong in one way each: it is red, says in a line
// what it saw, and nothing of the run is left.
func TestRed(t *testing.T) {
	t.Parallel()
	skipShort(t)
	rows := []struct {
		name string
		mock []string
		args []string
		want string
		// within is how long it may take at most, if not what the flags say.
		within time.Duration
	}{
		{
			name: "never deletes", args: []string{"--patience=10s"},
			mock: []string{`--fault={"preset":"stuck-deleting","count":5}`},
			want: `wanted: no server of the run; seen: .*server \S+ \(\S+-probe\)`,
		},
		{
			name: "keeps volumes that it names", mock: []string{`--fault={"operation":"CreateServer","ownBootVolume":true}`},
			want: `wanted: no NIC or boot volume without its server; seen: \[volume \S+ \(of \S+\)`,
		},
		{
			name: "doubles", mock: []string{`--fault={"preset":"duplicate-servers"}`},
			want: `2 servers of the name \S+, after 1 POSTs`,
		},
		{
			name: "is slower than the limit", mock: []string{"--boot=5m"}, args: []string{"--limit=30s"},
			want: `not all was done after 20s`, within: 4 * time.Minute,
		},
		{
			name: "boots no server", mock: []string{`--fault={"preset":"boot-error"}`},
			want: `ended in ERROR: "Build of instance aborted: Failed to allocate`, within: 4 * time.Minute,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := startMock(t, append([]string{"--boot=1s", "--delete=1s"}, row.mock...)...)
			before, began := m.ids(t), time.Now()
			s := newSuite(t, m, row.args...)
			s.run(t, 1)
			if took := time.Since(began); row.within != 0 && took > row.within {
				t.Errorf("it took %s", took)
			}
			verdict := regexp.MustCompile(`(?m)^RED: .*$`).FindString(s.output.String())
			if !regexp.MustCompile(row.want).MatchString(verdict) {
				t.Errorf("want %q in:\n%s", row.want, s.output)
			}
			expectOnly(t, m, before)
		})
	}
}

// Without settings, programs or a yes, nothing is made. Who is asked reads where, what, how much, and what
// older runs have left, which a sweep deletes.
func TestNothingIsMadeUnasked(t *testing.T) {
	t.Parallel()
	skipShort(t)
	m := startMock(t, "--boot=1s")
	before := m.ids(t)
	network := makes(t, m, api.PathNetworks, map[string]any{"name": api.NetworkName(oldRun)})
	server := makesServer(t, m, network, oldServer, map[string]string{})
	left := m.ids(t)
	for variable, said := range map[string][]string{
		"YES=": {
			"region eu01, at " + m.url + "\n  WHICH IS NOT https://iaas.api.stackit.cloud", "about 10, at most 18",
			"mcm-cloud-test-<run>, for this run alone", "7 to 10 minutes", "at most 144, and 48 GB hours",
			"what older runs have left", "network " + network, "server " + server, "Type yes",
		},
		"KUBEBUILDER_ASSETS=" + t.TempDir(): {"KUBEBUILDER_ASSETS must name"},
		"STACKIT_PROJECT_ID=":               {"STACKIT_PROJECT_ID is not set"},
		"STACKIT_REGION=":                   {"STACKIT_REGION is not set"},
		"STACKIT_IMAGE_ID=":                 {"STACKIT_IMAGE_ID is not set"},
		"STACKIT_MACHINE_TYPE=":             {"STACKIT_MACHINE_TYPE is not set"},
		"STACKIT_SERVICE_ACCOUNT_KEY_PATH=": {"STACKIT_SERVICE_ACCOUNT_KEY_PATH is not set"},
	} {
		s := newSuite(t, m)
		s.Env = append(s.Env, variable)
		s.run(t, 2)
		expectSaid(t, s, said...)
	}
	expectOnly(t, m, left)
	sweep(t, m, "", 0)
	expectOnly(t, m, before)
}

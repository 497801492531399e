// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var boot = flag.Duration("boot", 3*time.Second, "boot time of the green run's servers")

// TestGreen runs the whole suite. Each question has an answer, and nothing is left.
func TestGreen(t *testing.T) {
	t.Parallel()
	quota := iaasmock.Quota{VCPUs: 100, RAM: 1_000_000, Volumes: 100, Gigabytes: 1_000, NICs: 100}
	m := newMock(t, iaasmock.WithBootDuration(*boot), iaasmock.WithQuota(quota))
	m.makeServer(t, "database", iaasmock.DefaultNetworkID, "")
	before := m.ids()
	r := newProgram(t, m)
	r.run(t, exitGreen)
	m.expectOnly(t, before)
	if made := m.History().ServersCreated; made < 4 || made > 1+4+maxProbeServers {
		t.Errorf("%d servers were made", made)
	}
	expectRows(t, r.report, map[string]string{
		"The driver makes three Machines":                  `in \d+`,
		"The driver rolls one Machine":                     `in \d+`,
		"The driver deletes three Machines":                `in \d+`,
		"GET of a server that never was":                   `refused: 404 {"code":404`,
		"Claims of an access token":                        `exp, iat, .*; valid for 600 s`,
		"List in a region that does not exist":             `refused: 404`,
		"Time until a list by selector shows a new server": `\d\.\d to \d+\.\d s after`,
		"Labels in lists without details":                  `1 shown, 1 was sent`,
		"DELETE of a server that is CREATING":              `accepted$`,
		"GET of a server after its DELETE":                 `after 1 s: .*; gone after .* s, refused: 404 .* 1 h: not told`,
		"POST above the quota":                             `refused: 403 .*Quota exceeded for gigabytes`,
		"userData of 64 KiB":                               `64 KiB of base64: accepted; 64 KiB before base64: accepted`,
		"A server with 65 labels":                          `^accepted$`,
		"A server with imageId alone":                      `accepted; \w+, no boot volume shown`,
		"The boot volume of a server in ERROR":             `ERROR, `,
		"Idle connections":                                 `after 100ms: still open; 200ms: still open`,
		"Headers of answers":                               `X-Request-Id`,
		"Left at the end":                                  `no server, NIC or volume`,
	})
	head := readFile(t, r.report)
	t.Log(head)
	if !strings.Contains(head, "version "+testVersion) || !strings.Contains(head, "\nGreen.\n") {
		t.Error(head)
	}
	r.expectSaid(t, "stackit server describe ")
	expectNoSecrets(t, m, r)
}

// expectRows expects exactly these rows in the report, by regular expressions.
func expectRows(t *testing.T, path string, rows map[string]string) {
	t.Helper()
	content, found := readFile(t, path), 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*) \|$`).FindAllStringSubmatch(content, -1) {
		if row[1] == "Question" {
			continue
		}
		found++
		if want := rows[row[1]]; want == "" || !regexp.MustCompile(want).MatchString(row[2]) {
			t.Errorf("%s: %s; want %s", row[1], row[2], want)
		}
	}
	if found != len(rows) {
		t.Errorf("%d rows, want %d:\n%s", found, len(rows), content)
	}
}

// expectNoSecrets looks for secrets in what the run has printed and written: the output alone names the
// project. Each exchange is a line of JSON.
func expectNoSecrets(t *testing.T, m *mock, r *program) {
	t.Helper()
	lines := r.exchanges(t)
	secrets := []string{iaasmock.DefaultProjectID, "BEGIN ", "eyJ", "@sa.stackit", "database"}
	fields := regexp.MustCompile(`"(?:kid|iss|sub|id)": ?"([^"]+)"`)
	for _, found := range fields.FindAllStringSubmatch(m.settings.key, -1) {
		secrets = append(secrets, found[1])
	}
	if len(secrets) < 8 {
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
	for _, secret := range []string{"10.128.", "I2Nsb3Vk"} { // addresses, userData
		if strings.Contains(lines, secret) {
			t.Errorf("the exchanges have %q", secret)
		}
	}
	calls := map[bool]int{}
	for line := range strings.Lines(lines) {
		var e exchange
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Sidecar == "" && (e.Method == "" || e.Path == "") {
			t.Fatalf("%s: %v", line, err)
		}
		calls[e.Sidecar != ""]++
	}
	if calls[false] < 50 || calls[true] < 15 || !strings.Contains(lines, "(and 1 that are not the run's)") {
		t.Errorf("there are %v exchanges", calls)
	}
}

// A server that does not boot ends the life, and so do two servers of one request. The verdict has their IDs, and they
// are deleted.
func TestWrongServersAreRed(t *testing.T) {
	t.Parallel()
	for preset, verdict := range map[string]string{
		"boot-error":        `server \S+ is in ERROR: Build of instance aborted`,
		"duplicate-servers": `servers \S+ and \S+ have the same Machine's name`,
	} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			m := newMock(t)
			before := m.ids()
			m.fault(t, preset)
			r := newProgram(t, m, "--only=life")
			r.run(t, exitRed)
			r.expectVerdict(t, "the life: The driver makes three Machines: "+verdict)
			m.expectOnly(t, before)
		})
	}
}

// An API that accepts a DELETE and never carries it out ends the life, and the servers are named.
func TestServersThatStayAreRed(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	m.fault(t, "stuck-deleting")
	r := newProgram(t, m, "--only=life", "--patience=20s", "--limit=75s")
	r.run(t, exitRed)
	r.expectVerdict(t, `the life: The driver \w+ \w+ Machines?: `)
	for id := range m.ids() {
		if server, is := strings.CutPrefix(id, "server "); is && !before[id] {
			r.expectSaid(t, "LEFT: server "+server)
		}
	}
}

// expectVerdict looks for a regular expression in the line with the reason why a run is red.
func (r *program) expectVerdict(t *testing.T, want string) {
	t.Helper()
	verdict := regexp.MustCompile(`(?ms)^RED: .*`).FindString(r.said(t))
	if !regexp.MustCompile(want).MatchString(verdict) {
		t.Errorf("want %q in:\n%s", want, r.said(t))
	}
}

const keepsVolumes = `{"operation":"CreateServer","ownBootVolume":true}`

// An API that keeps volumes makes a run red. They are named and deleted.
func TestLeftoverIsRed(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	m.fault(t, keepsVolumes)
	r := newProgram(t, m, "--only=probes")
	r.run(t, exitRed)
	r.expectVerdict(t, `left without their server: timed out after 4s: .*volume \S+ \(of \S+-probe-first\)`)
	m.expectOnly(t, before)
}

// What cannot be deleted is named once more at the end, with commands that try again.
func TestLeftoverIsNamed(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	m.fault(t, keepsVolumes)
	m.fault(t, `{"operation":"DeleteVolume","status":409}`)
	r := newProgram(t, m, "--only=probes")
	r.begin(t)
	await(t, "a refused DELETE", func() bool { return strings.Contains(r.said(t), "sweep: DELETE of volume") })
	r.signal(t, syscall.SIGINT)
	r.expectEnd(t, exitRed)
	wanted := []string{"Try again: make test-cloud-sweep RUN=" + r.name(t)}
	for id := range m.ids() {
		if volume, is := strings.CutPrefix(id, "volume "); is && !before[id] {
			wanted = append(wanted, "stackit volume delete "+volume)
		}
		if !before[id] {
			wanted = append(wanted, "LEFT: "+id)
		}
	}
	if len(wanted) < 4 {
		t.Errorf("no more was left than %v", wanted)
	}
	r.expectSaid(t, wanted...)
}

// After Ctrl-C the run deletes what the driver and the probes have made.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	m := newMock(t, iaasmock.WithBootDuration(time.Hour))
	before := m.ids()
	r := newProgram(t, m)
	r.begin(t)
	await(t, "the driver's servers", func() bool {
		count := 0
		for _, server := range m.Servers() {
			if strings.Contains(server.Name, "-stays-") || strings.Contains(server.Name, "-rolled-") {
				count++
			}
		}
		return count == 3
	})
	r.signal(t, syscall.SIGINT)
	r.expectEnd(t, exitRed)
	r.expectVerdict(t, "interrupt")
	r.expectSaid(t, "Deleting the network and what is left of the run. Ctrl-C stops this at once.")
	m.expectOnly(t, before)
}

// The terminal is closed, and with it the program that reads the output.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	r := newProgram(t, m, "--only=probes")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Stdout, r.Stderr = writer, writer
	r.begin(t)
	_ = writer.Close()
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	await(t, "a server", func() bool { return len(m.Servers()) > 0 })
	_ = reader.Close()
	r.signal(t, syscall.SIGHUP)
	r.expectEnd(t, exitRed)
	m.expectOnly(t, before)
}

// Another user's server in the run's network stays, and so does the network. Both are named.
func TestForeignServerStays(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	r := newProgram(t, m, "--only=probes")
	r.begin(t)
	await(t, "a server", func() bool { return len(m.Servers()) > 0 })
	network := m.Servers()[0].NetworkID
	foreign := m.makeServer(t, "database", network, "")
	r.expectEnd(t, exitRed)
	r.expectVerdict(t, `the network stays, because it is used by resources of others: server `+foreign)
	r.expectSaid(t, "LEFT: network "+network, "Try again: make test-cloud-sweep RUN="+r.name(t))
	servers := m.Servers()
	if len(servers) != 1 || servers[0].ID != foreign || servers[0].Status != iaasmock.StatusActive {
		t.Errorf("there are %v", servers)
	}
	if err := m.RemoveServer(foreign); err != nil {
		t.Fatal(err)
	}
	sweepRun(t, m, r.name(t))
	m.expectOnly(t, before)
}

// Without settings, programs or a yes, nothing is made. The question shows where, what and how much.
func TestNothingIsMadeUnasked(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	before := m.ids()
	for variable, said := range map[string][]string{
		"YES=": {
			"region eu01, at " + m.url + "\n  WHICH IS NOT https://iaas.api.stackit.cloud", "each with a volume of 20 GB",
			"mcm-cloud-test-<run>, for this run alone", "at most 15m0s", "half an hour of one such server", "Type yes",
		},
		"KUBEBUILDER_ASSETS=" + t.TempDir(): {"KUBEBUILDER_ASSETS must name"},
		"STACKIT_PROJECT_ID=":               {"STACKIT_PROJECT_ID is not set"},
		"STACKIT_IMAGE_ID=":                 {"STACKIT_IMAGE_ID is not set"},
	} {
		r := newProgram(t, m)
		r.Env = append(r.Env, variable)
		r.run(t, exitNothingMade)
		r.expectSaid(t, said...)
	}
	m.expectOnly(t, before)
	if calls := m.Calls(); len(calls) > 0 {
		t.Errorf("there were calls: %v", calls)
	}
}

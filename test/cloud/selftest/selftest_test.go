// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var boot = flag.Duration("boot", 3*time.Second, "boot time of the green run's servers")

// TestGreen runs the whole suite with lag, faults and authentication.
func TestGreen(t *testing.T) {
	t.Parallel()
	buildControlPlane(t)
	m := startMock(t, "--boot="+boot.String(), "--delete=2s", "--list-lag=1s", "--server-labels",
		"--fault=unavailable,probability=0.01", "--fault=lost-answers,count=1", "--fault=rate-limited-retry-after,probability=0.002", "--seed=7")
	before := m.state(t).ids()
	s := newSuite(t, m, m.url, "--patience="+(time.Minute+6**boot).String())
	if code := s.run(t); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, s.output)
	}
	if left := m.state(t).ids(); !maps.Equal(before, left) {
		t.Errorf("before there were %v, now %v", before, left)
	}
	expectNoSecrets(t, m, s)
	expectReport(t, s.report)
}

// expectNoSecrets looks for what is nobody's business in what the run printed and reported.
func expectNoSecrets(t *testing.T, m mock, s suite) {
	t.Helper()
	key, err := os.ReadFile(m.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(s.report)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{iaasmock.DefaultProjectID, "BEGIN ", "eyJ"}
	for _, found := range regexp.MustCompile(`"(?:kid|iss|sub|id)": ?"([^"]+)"`).FindAllSubmatch(key, -1) {
		secrets = append(secrets, string(found[1]))
	}
	if len(secrets) < 6 {
		t.Fatalf("the key has no more secrets than %d", len(secrets))
	}
	for _, secret := range secrets {
		if strings.Contains(s.output.String(), secret) {
			t.Errorf("the output has %.12q…", secret)
		}
		if strings.Contains(string(report), secret) {
			t.Errorf("the report has %.12q…", secret)
		}
	}
	if strings.Contains(string(report), "@") {
		t.Error("the report has a mail address")
	}
}

var assumptions = []string{
	"A server that was just made is there for GET", "Lists show a new server within settle", "A server boots within",
	"After a DELETE that was accepted", "GET and lists show DELETING", "An empty list is", "Errors are JSON", "Retry-After may come",
	"The API adds labels of its own", "A PATCH of labels merges", "Metadata of servers from OpenStack", "Metadata that was sent shows",
	"A server that goes takes its NIC", "Labels of a NIC", "Labels of a volume", "50 calls a second", "What is wrong with a class or a key",
}

// expectReport looks for what was to be measured. Each row names files that there are.
func expectReport(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, assumption := range assumptions {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(assumption) + `.*$`).FindString(string(content))
		if row == "" || strings.Contains(row, "not seen") {
			t.Errorf("%s: measured %q", assumption, row)
		}
	}
	for _, file := range regexp.MustCompile(`\b(?:pkg|test)/[a-z_/]+(?:\.go)?`).FindAllString(string(content), -1) {
		if _, err := os.Stat("../../../" + file); err != nil {
			t.Errorf("the driver rests on %s: %v", file, err)
		}
	}
}

// TestRed runs the suite against APIs that are wrong in one way each: it is red, says what it
// saw, and nothing of the run is left that can be told from others'.
func TestRed(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		mock []string
		api  func(*testing.T, mock) string
		args []string
		want string
	}{
		{name: "leaks servers", mock: []string{"--fault=stuck-deleting,count=2"}, args: []string{"--patience=15s"}, want: `what is left of the run.*server .*-probe\), DELETING`},
		{name: "leaks volumes", api: leakVolumes, args: []string{"--patience=15s"}, want: `what is left of the run.*volume .*, whose server .* has gone`},
		{name: "doubles", mock: []string{"--fault=duplicate-servers"}, want: `(2 servers of the name .* exist at a time|a list shows a server .* that nobody asked for).*1 POST of this name was (accepted|sent, whose answer is not there yet)`},
		{name: "ignores a label selector", api: ignoreSelectors, want: `the selector is ignored`},
		{name: "answers 404 for a running server", api: forgetRunning, want: `answered 404 .* after it was seen ACTIVE, and nobody has deleted it`},
		{name: "drops labels", mock: []string{"--fault=dropped-labels"}, want: `was made with 3 labels, and GET .* shows it without kubernetes.io/cluster, kubernetes.io/machine, kubernetes.io/machineclass`},
		{name: "shows labels to lists alone", api: dropLabels, want: `GET /servers/\{id\} shows it without kubernetes.io/cluster`},
		{name: "is slower than the guards", mock: []string{"--boot=5m"}, args: []string{"--limit=10s"}, want: `guard: the run has not ended after 10s`},
		{name: "hides servers from lists", mock: []string{"--list-lag=1h"}, want: `does not show server .*, which matches it`},
		{name: "answers with somebody's server", mock: []string{"--fault=wrong-server"}, api: withStranger, want: `without kubernetes.io/cluster|a list shows a server .* that nobody asked for`},
		{name: "lets nobody make a second server", args: []string{"--in-all=0"}, want: `asked for after 0, the most that a run may make`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := startMock(t, append([]string{"--boot=1s", "--delete=1s"}, row.mock...)...)
			api := m.url
			if row.api != nil {
				api = row.api(t, m)
			}
			before := m.state(t).ids()
			s := newSuite(t, m, api, row.args...)
			if code := s.run(t); code != 1 {
				t.Fatalf("exit code %d:\n%s", code, s.output)
			}
			said := strings.Join(strings.Fields(s.output.String()), " ")
			verdict := regexp.MustCompile(`RED: .*`).FindString(said)
			if !regexp.MustCompile(row.want).MatchString(verdict) {
				t.Errorf("want %q in:\n%s", row.want, s.output)
			}
			if row.name == "hides servers from lists" {
				return // Lists are all that a sweep goes by.
			}
			if left := m.state(t).ids(); !maps.Equal(before, left) {
				t.Errorf("before there were %v, now %v:\n%s", before, left, s.output)
			}
		})
	}
}

// TestTheSuiteKnowsNoMock looks at what the suite links.
func TestTheSuiteKnowsNoMock(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"./test/cloud", "./test/cloud/cmd/test-cloud"} {
		list := exec.Command("go", "list", "-deps", "-test", pkg)
		list.Dir = "../../.."
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if !slices.ContainsFunc(linked, func(p string) bool { return strings.HasSuffix(p, "/test/cloud/guard") }) {
			t.Errorf("go list shows %d packages of %s, not the suite's", len(linked), pkg)
		}
		for _, p := range linked {
			if strings.Contains(p, "iaasmock") {
				t.Errorf("%s links %s", pkg, p)
			}
		}
	}
}

// Without settings, or without a yes, nothing is asked of the API.
func TestNothingIsMadeUnasked(t *testing.T) {
	t.Parallel()
	m := startMock(t, "--boot=1s")
	s := newSuite(t, m, m.url)
	s.Env = slices.DeleteFunc(s.Env, func(v string) bool { return v == "YES=1" })
	if code := s.run(t); code != 2 || !strings.Contains(s.output.String(), "set YES=1") || !strings.Contains(s.output.String(), "at most 4 at a time and 12 in all") {
		t.Errorf("exit code %d:\n%s", code, s.output)
	}
	s = newSuite(t, m, m.url)
	s.Env = []string{"PATH=" + os.Getenv("PATH")}
	if code := s.run(t); code != 2 {
		t.Errorf("exit code %d without settings", code)
	}
	for _, name := range []string{"STACKIT_PROJECT_ID", "STACKIT_REGION", "STACKIT_NETWORK_ID", "STACKIT_IMAGE_ID", "STACKIT_MACHINE_TYPE", "STACKIT_SERVICE_ACCOUNT_KEY_PATH"} {
		if !strings.Contains(s.output.String(), name+" is not set") {
			t.Errorf("%s is not named:\n%s", name, s.output)
		}
	}
	if servers := m.state(t).Servers; len(servers) > 0 {
		t.Errorf("there are servers: %v", servers)
	}
}

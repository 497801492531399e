// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// consoleLog returns a log of testdata/console. Each is named after what went wrong, and written from
// the sources that console.go names, with what cloud-init and scripts print of secrets in between.
func consoleLog(t testing.TB, cause string) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("testdata", "console", cause+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

func TestTheConsoleLogTellsWhatFailed(t *testing.T) {
	const nodeInitFailed = "[FAILED] Failed to start gardener-node-init.service"
	for cause, excerpts := range map[string][]string{
		"kernel-panic": {"[    1.713402] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"},
		"disk-full": {": No space left on device", ": no space left on device",
			nodeInitFailed},
		"emergency-mode": {"[  OK  ] Reached target emergency.target - Emergency Mode", "You are in emergency mode",
			"Cannot open access to console, the root account is locked",
			`[ TIME ] Timed out waiting for device dev-disk-by\x2dlabel-data.device - /dev/disk/by-label/data.`,
			"[DEPEND] Dependency failed for var-lib-containerd.mount - /var/lib/containerd.",
			"[DEPEND] Dependency failed for local-fs.target - Local File Systems."},
		"no-address": {
			"[FAILED] Failed to start systemd-networkd-wait-online.service - Wait for Network to be Configured",
			"No DHCPOFFERS received", "No working leases in persistent database",
			"[Errno 101] Network is unreachable", "No instance datasource found"},
		"certificate": {"SSL certificate problem: unable to get local issuer certificate",
			"x509: certificate signed by unknown authority"},
		"dns": {"Could not resolve host: api.a.b.example.com", "lookup registry.example.com on 10.0.0.53:53: no such host",
			"Temporary failure resolving 'deb.debian.org'", nodeInitFailed},
		"refused": {"Failed to connect to api.a.b.example.com port 443 after 3 ms: Connection refused",
			"dial tcp 10.0.0.5:6443: connect: connection refused",
			"Failed to run module scripts-user"},
		"cloud-init": {"Failed loading yaml blob. Invalid format at line 3 column 1",
			"Failed loading yaml blob. Invalid format at line 9 column 11"},
		"node-agent": {"failed formatting kubelet data volume", nodeInitFailed},
		causeUnitFailed: {"[FAILED] Failed to start containerd.service - containerd container runtime.",
			"[FAILED] Failed to start Load Kernel Modules."},
		causeNoCloudInit: nil,
		causeUnknown:     nil,
	} {
		t.Run(cause, func(t *testing.T) {
			got, lines := Explain(consoleLog(t, cause), "")
			if got != cause || !slices.Equal(lines, excerpts) {
				t.Errorf("%s:\n%s\nwant\n%s", got, strings.Join(lines, "\n"), strings.Join(excerpts, "\n"))
			}
		})
	}
}

// TestNoSecretLeavesTheConsole puts secrets around and into what the patterns look for.
func TestNoSecretLeavesTheConsole(t *testing.T) {
	const secret, userData = "geheim-4711", "#!/bin/sh\nhostname registry.example.com\n"
	hostile := []string{
		"debian:" + secret + " curl: (6) Could not resolve host: " + secret + "@registry.example.com",
		`Get "https://admin:` + secret + `@api:443/": dial tcp 10.0.0.5:443: connect: connection refused ` + secret,
		"password " + secret + ": No space left on device",
		"[FAILED] Failed to start " + secret + ".service - token=" + secret + ".",
		"[FAILED] Failed to start join.service - Join with 07401b.f395accd246ae52d.",
		"Failed loading yaml blob. Invalid format at line 1 column 1: \"found undefined alias '" + secret + "'",
		"Unhandled non-multipart (text/x-not-multipart) userdata: 'pw: " + secret + "...'",
		"x509: certificate is valid for a.example.com, not b.example.com " + secret,
		"lookup eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl on 10.0.0.53:53: no such host",
		"[    1.7] Kernel panic - not syncing: " + secret,
		"ctr: failed to authorize: " + secret,
		strings.Repeat("x", 1<<16) + secret,
	}
	for _, entry := range consolePatterns { // and every other pattern's line of the logs
		hostile = append(hostile, strings.Split(consoleLog(t, entry.cause), "\n")...)
	}
	for _, line := range hostile {
		_, excerpts := Explain(line+"\n", userData)
		for _, excerpt := range excerpts {
			for _, hidden := range []string{secret, "07401b.f395", "eyJhbGci", "scripts-user (scripts"} {
				if strings.Contains(excerpt, hidden) {
					t.Errorf("%q is logged of %q", excerpt, line)
				}
			}
			if len(excerpt) > 200 {
				t.Errorf("%d bytes are logged of %q", len(excerpt), line)
			}
		}
	}
}

func TestNoExcerptRepeatsUserData(t *testing.T) {
	const userData = "join.service joins the cluster with 4 keys of mine"
	_, excerpts := Explain("[FAILED] Failed to start "+userData+".\n", userData)
	if len(excerpts) != 1 || strings.Contains(excerpts[0], "joins the cluster") {
		t.Errorf("%q is logged of a unit whose name is user data", excerpts)
	}
}

// Hosts and units are in user data by nature, and are what an operator needs.
func TestExcerptsShowHostsAndUnits(t *testing.T) {
	const userData = "#cloud-config\nwrite_files:\n- path: /etc/systemd/system/gardener-node-init.service\n" +
		"  content: |\n    Description=Downloads the gardener-node-agent\n" +
		"    ExecStart=curl https://europe-docker.pkg.dev https://api.shoot.example.com:443\n"
	_, excerpts := Explain("[FAILED] Failed to start gardener-node-init.service - Downloads the gardener-node-agent.\n"+
		"Could not resolve host: europe-docker.pkg.dev\n"+
		"Failed to connect to api.shoot.example.com port 443 after 2 ms: Connection refused\n", userData)
	if len(excerpts) != 3 || slices.Contains(excerpts, withheld) {
		t.Errorf("got %q", excerpts)
	}
}

func TestTheConsoleLogIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, and nothing in it is concurrent")
	}
	var log strings.Builder
	for i := range 30 {
		unit := strings.Repeat("u", i+1) + ".service - " + strings.Repeat("long ", 100)
		log.WriteString("[FAILED] Failed to start " + unit + "\n")
	}
	cause, excerpts := Explain(log.String(), "")
	if cause != causeUnitFailed || len(excerpts) != 10 || len(excerpts[0]) > 200 {
		t.Errorf("%s, and %d lines are logged", cause, len(excerpts))
	}
	// A panic before the end that is looked at does not count, and one in it does.
	panicked := "[    1.7] Kernel panic - not syncing: VFS\n"
	if cause, _ := Explain(panicked+strings.Repeat("x", maxConsole), ""); cause != causeUnknown {
		t.Errorf("%s was found beyond %d bytes", cause, maxConsole)
	}
	if cause, _ := Explain(strings.Repeat("x", 3*maxConsole)+"\n"+panicked, ""); cause != "kernel-panic" {
		t.Errorf("%s at the end", cause)
	}
}

// TestAHostileConsoleLogTakesMilliseconds, with the longest user data: 0.2 s where it once took 20. On a busy machine,
// with the race detector, it took half a minute.
func TestAHostileConsoleLogTakesMilliseconds(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, and nothing in it is concurrent")
	}
	userData := strings.Repeat("u", 256<<10)
	for name, line := range map[string]string{
		"one long line":  "x",
		"failed units":   "[FAILED] Failed to start a.service - abc def.\n",
		"half a pattern": "lookup a.b.c on ",
		"colors":         "\x1b[0;1;31m",
	} {
		began := time.Now()
		Explain(strings.Repeat(line, maxConsole/len(line)), userData)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %s", name, took)
		}
	}
}

// TestALogThatIsCutOffDoesNotBlameTheImage: what cloud-init wrote may have been before.
func TestALogThatIsCutOffDoesNotBlameTheImage(t *testing.T) {
	log := consoleLog(t, causeNoCloudInit)
	for name, row := range map[string]struct {
		log  string
		want string
	}{
		"cut off":          {strings.Repeat("[    2.0] audit\n", consoleLines) + log, causeUnknown},
		"before the login": {strings.TrimSuffix(log, "login: "), causeUnknown},
		"with Ignition":    {"[  OK  ] Finished ignition-files.service - Ignition (files).\n" + log, causeUnknown},
		"with a failed unit": {"[FAILED] Failed to start ssh.service - OpenBSD Secure Shell server.\n" + log,
			causeNoCloudInit},
	} {
		if cause, _ := Explain(row.log, ""); cause != row.want {
			t.Errorf("%s: %s, want %s", name, cause, row.want)
		}
	}
}

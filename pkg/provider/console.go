// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
)

// The manager replaces a Machine that has no Node after its creation timeout, and with the server
// its console log is lost. So this log is read once before the first DELETE of such a server, and
// the sidecar logs why it never joined.

// consolePatterns find the cause in a line of a console log, root causes first: the first pattern
// that matches a line counts for it, and the first that matches any line for the log. Only the
// match is logged, never the rest of the line: so a pattern ends where text from user data could
// begin.
var consolePatterns = []struct {
	cause string
	line  *regexp.Regexp
}{
	// The kernel (Linux 6.1, kernel/panic.c, init/do_mounts.c, kernel/exit.c); systemd 252 as process 1.
	{"kernel-panic", regexp.MustCompile(`^(?:\[ *\d+\.\d+\] )?Kernel panic - not syncing` +
		`(?:: VFS: Unable to mount root fs on [\w(),-]+|: Attempted to kill init!)?|Freezing execution\.?$`)},
	// Every program: errno ENOSPC of glibc and Go, OSError of Python.
	{"disk-full", regexp.MustCompile(`(?i)(?:: |\[errno 28\] )no space left on device`)},
	// systemd 252 (sulogin-shell.c, emergency.target); util-linux 2.38 (sulogin.c).
	{"emergency-mode", regexp.MustCompile(`^You are in (?:emergency|rescue) mode|` +
		`^\[  OK  \] Reached target (?:emergency\.target - )?Emergency Mode|` +
		`^Cannot open access to console, the root account is locked`)},
	// systemd-networkd-wait-online; isc-dhcp 4.4 (dhclient.c); Python, as in cloud-init.
	{"no-address", regexp.MustCompile(`^\[FAILED\] Failed to start (?:[\w.-]+ - )?Wait for Network to be Configured|` +
		`^No (?:DHCPOFFERS received|working leases in persistent database)|\[Errno 101\] Network is unreachable`)},
	// Go (crypto/x509/verify.go), as in containerd and gardener-node-agent; curl with OpenSSL.
	{"certificate", regexp.MustCompile(`x509: certificate (?:signed by unknown authority|` +
		`has expired or is not yet valid|is (?:not )?valid for)|SSL certificate problem: [a-zA-Z -]+`)},
	// Go (net.DNSError); curl; glibc (gai_strerror), as in Python and apt.
	{"dns", regexp.MustCompile(`lookup ` + host + `(?: on [\w.:\[\]]+)?: ` +
		`(?:no such host|server misbehaving|(?:read|dial) udp)|` +
		`Could not resolve host: ` + host + `$|` +
		`Temporary failure (?:in name resolution|resolving '` + host + `')|Name or service not known`)},
	// Go (net.OpError); curl; Python.
	{"refused", regexp.MustCompile(`dial tcp [\w.:\[\]]+: connect: connection refused|Failed to connect to ` + host +
		` port \d+(?: after \d+ ms)?: (?:Connection refused|Couldn't connect to server)|\[Errno 111\] Connection refused`)},
	// cloud-init 22.4 (util.py, schema.py, handlers), for user data that it cannot read. The rest of
	// the line may quote it.
	{"cloud-init", regexp.MustCompile(`Failed loading yaml blob(?:\. Invalid format at line \d+ column \d+)?|` +
		`Invalid cloud-config provided|Unhandled (?:non-multipart|unknown content-type)`)},
	// cloud-init 22.4 (main.py, cc_scripts_user.py), and systemd for its units.
	{"cloud-init", regexp.MustCompile(`No instance datasource found|Consuming user data failed|` +
		`Failed to run module [\w-]+|` +
		`^\[FAILED\] Failed to start (?:cloud-(?:init|config|final)|` +
		`Initial cloud-init job|Execute cloud user/final scripts)`)},
	// Gardener 1.130 (gardener-node-agent's app.go and bootstrap.go), and systemd for its units.
	{"node-agent", regexp.MustCompile(`failed (?:getting REST config|fetching machine name from file|` +
		`requesting and storing kubeconfig|formatting kubelet data volume)|` +
		`^\[FAILED\] Failed to start (?:gardener-node-(?:init|agent)\.service|` +
		`Downloads the gardener-node-agent|Gardener Node Agent)`)},
	// systemd 252 (job.c, mount.c).
	{causeUnitFailed, regexp.MustCompile(`^\[(?:FAILED|DEPEND| TIME )\] ` +
		`(?:Failed to (?:start|mount)|Dependency failed for|Timed out (?:starting|waiting for)) [\w@:.,()/\\ -]+`)},
}

// host matches a host's name, as a part of patterns.
const host = `[\w.-]+`

// Causes in addition to those of consolePatterns.
const (
	causeUnitFailed = "unit-failed"
	// causeNoCloudInit is an image that boots to its login prompt without cloud-init or Ignition.
	causeNoCloudInit = "no-cloud-init"
	// causeUnknown is a log without any of these.
	causeUnknown = "unknown"
	// causeNotRunning is a server that is stopped or in ERROR: it has no boot log.
	causeNotRunning = "not-running"
	// causeNotRead is a log that was not read: another log was being read, or the API refused.
	causeNotRead = "not-read"
)

var (
	// secretLine matches lines that are skipped because they may contain a secret.
	secretLine = regexp.MustCompile(`(?i)passw|secret|token|bearer|authorization|private key`)
	// tokens matches bootstrap tokens and JWTs.
	tokens = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\beyJ[\w-]+\.[\w-]+\.[\w-]*`)
	// consoleNames matches hosts, addresses and units. User data always contains some, but without
	// them no excerpt shows what failed.
	consoleNames = regexp.MustCompile(`[\w@]+(?:[.:/-]+[\w@]+)+`)
	// terminalCodes matches colors and line ends of systemd's show-status.c.
	terminalCodes = regexp.MustCompile(`\x1b\[[0-9;:?]*[A-Za-z]|\x1bM|\r`)
	// loginPrompt matches the prompt of agetty (util-linux 2.38).
	loginPrompt = regexp.MustCompile(`(?m)^` + host + ` login: `)
	firstBoot   = regexp.MustCompile(`(?i)cloud-?init|ignition`)
)

const (
	// consoleLines limits the lines of a console log that are read, within consoleTimeout: the DELETE
	// waits for it.
	consoleLines   = 500
	consoleTimeout = 5 * time.Second
	// maxConsole limits the searched end of the log, in bytes: OpenStack keeps no more (Nova,
	// nova/virt/libvirt/driver.py, MAX_CONSOLE_BYTES).
	maxConsole = 100 << 10
	// maxExcerpts limits the logged lines, maxExcerpt each of them, in bytes.
	maxExcerpts = 10
	maxExcerpt  = 200
)

// Explain searches the last 100 KiB of a server's console log for the reason why the server did not
// become a Node. cause is one word, such as "dns" or "cloud-init", or "unknown"; kubernetes/runbooks.md
// has the remedy for each. excerpts are the matching parts of at most 10 lines, each at most 200
// bytes; nil if no line matches. They are safe to log: lines about passwords or tokens are skipped,
// and a note replaces each part that repeats the server's userData.
func Explain(log, userData string) (cause string, excerpts []string) {
	isWhole := strings.Count(log, "\n") < consoleLines && len(log) <= maxConsole
	log = terminalCodes.ReplaceAllString(log[max(0, len(log)-maxConsole):], "")
	found := findPatterns(log)
	cause = causeUnknown
	if first := slices.IndexFunc(found, func(matches []string) bool { return len(matches) > 0 }); first >= 0 {
		cause = consolePatterns[first].cause
	}
	hasNoCloudInit := isWhole && loginPrompt.MatchString(log) && !firstBoot.MatchString(log)
	if hasNoCloudInit && (cause == causeUnitFailed || cause == causeUnknown) {
		cause = causeNoCloudInit
	}
	for _, match := range slices.Concat(found...) {
		if len(excerpts) < maxExcerpts && !slices.Contains(excerpts, match) {
			excerpts = append(excerpts, match)
		}
	}
	for i, excerpt := range excerpts { // only now, as few are left: it is slow for long user data
		excerpt = strings.ToValidUTF8(tokens.ReplaceAllString(excerpt, "(token)"), "?")
		if repeatsUserData(excerpt, userData, consoleNames, nil) {
			excerpt = withheld
		}
		excerpts[i] = strings.TrimSpace(excerpt[:min(len(excerpt), maxExcerpt)])
	}
	return cause, excerpts
}

// findPatterns returns the matches of each of the consolePatterns.
func findPatterns(log string) [][]string {
	found := make([][]string, len(consolePatterns))
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if secretLine.MatchString(line) {
			continue
		}
		for i, pattern := range consolePatterns {
			if match := pattern.line.FindString(line); match != "" {
				found[i] = append(found[i], match)
				break
			}
		}
	}
	return found
}

// neverJoined reports whether the Machine is deleted because it never had a Node: it has a server,
// no conditions (the manager copies them from the Node), and was deleted after its creation
// timeout. This excludes a Machine that was scaled down while its server booted.
func (t creationTimes) neverJoined(machine *v1alpha1.Machine) bool {
	expires := t.expires(machine)
	return !expires.IsZero() && machine.DeletionTimestamp != nil && !machine.DeletionTimestamp.Time.Before(expires) &&
		machine.Spec.ProviderID != "" && len(machine.Status.Conditions) == 0
}

// consoles has the servers that this process has explained. It reads one log at a time.
type consoles struct {
	servers *recent.Map[string, bool]
	reading sync.Mutex
}

func newConsoles(clock clock.PassiveClock) *consoles {
	return &consoles{servers: recent.New[string, bool](clock, sessionLifetime)}
}

// explainUnjoined reads the console log of a server that never joined once, before its first
// DELETE; it logs and counts the cause. It skips every other server, and one that is being deleted
// already: a predecessor has counted it.
func (t *tracked) explainUnjoined(ctx context.Context) {
	if !t.call.neverJoined || !t.isNamed() {
		return
	}
	if _, ok := t.call.consoles.servers.Lookup(t.id); ok || t.last.server.IsDeleting() {
		return
	}
	t.call.consoles.servers.Set(t.id, true)
	cause, excerpts, err := t.readConsole(ctx)
	t.call.meters.neverJoined.WithLabelValues(cause).Inc()
	fields := []any{"machine", klog.KRef(loggable(t.call.ref.namespace), loggable(t.call.machine)),
		"machineClass", loggable(t.call.class), "server", t.id, "cause", cause}
	if len(excerpts) > 0 {
		fields = append(fields, "console", excerpts)
	}
	if err != nil {
		fields = append(fields, "err", err)
	}
	klog.InfoS("Deleting a server that never joined the cluster as a Node", fields...)
}

// readConsole reads the console log, if the server runs and no other log is being read.
func (t *tracked) readConsole(ctx context.Context) (cause string, excerpts []string, err error) {
	if !t.last.server.IsActive() {
		return causeNotRunning, nil, nil
	}
	if !t.call.consoles.reading.TryLock() {
		return causeNotRead, nil, errors.New("another console log is being read")
	}
	defer t.call.consoles.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	if err := t.call.turn(ctx); err != nil {
		return causeNotRead, nil, fmt.Errorf("waiting for the session's rate limit of reads: %w", err)
	}
	log, err := t.call.client.ConsoleLog(ctx, t.id, consoleLines)
	if err != nil {
		return causeNotRead, nil, err
	}
	cause, excerpts = Explain(log, t.call.spec.UserData)
	return cause, excerpts, nil
}

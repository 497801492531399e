// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
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

// Why a server never joined: the manager replaces a Machine that has no Node after its creation
// timeout, and with the server its console log is gone. So the first DELETE of such a server is
// preceded by one read of that log, and the log line of the sidecar says what is in it.

// joinFailure says in a word why a Machine never had a Node.
type joinFailure string

const (
	failKernelPanic joinFailure = "kernel-panic"
	failDiskFull    joinFailure = "disk-full"
	failEmergency   joinFailure = "emergency-mode"
	failNoAddress   joinFailure = "no-address"
	failCertificate joinFailure = "certificate"
	failDNS         joinFailure = "dns"
	failRefused     joinFailure = "refused"
	failCloudInit   joinFailure = "cloud-init"
	failNodeAgent   joinFailure = "node-agent"
	failUnit        joinFailure = "unit-failed"
	// failNoCloudInit is an image that boots to its login prompt without cloud-init or Ignition.
	failNoCloudInit joinFailure = "no-cloud-init"
	// failUnknown is a log without any of these.
	failUnknown joinFailure = "unknown"
	// failNotRunning is a server that is stopped or in ERROR: it has no log of a boot.
	failNotRunning joinFailure = "not-running"
	// failNotRead is a log that was not read: too many at a time, or the API refused.
	failNotRead joinFailure = "not-read"
)

// consolePattern finds a failure in a line of a console log. Only what it matches is logged, never
// the rest of the line: so it ends where text from user data could begin.
type consolePattern struct {
	failure joinFailure
	line    *regexp.Regexp
}

// Parts of patterns: a host, a unit or its description as systemd's show_status prints it, and the
// kernel's time stamp.
const (
	host   = `[\w.-]+`
	unit   = `[\w@:.,()/\\ -]+`
	kernel = `^(?:\[ *\d+\.\d+\] )?`
)

// consolePatterns are what is looked for, what explains the others first: a line counts for the first
// that it matches, and the log for the first that any line matches. Each names the source that
// prints the text: project and version, file and line, and the name of what is printed.
var consolePatterns = []consolePattern{
	// Linux 6.1, kernel/panic.c, panic: "Kernel panic - not syncing: %s"; init/do_mounts.c,
	// mount_block_root: "VFS: Unable to mount root fs on %s"; kernel/exit.c, do_exit.
	pattern(failKernelPanic, kernel+`Kernel panic - not syncing`+
		`(?:: VFS: Unable to mount root fs on [\w(),-]+|: Attempted to kill init!)?`),
	// systemd 252.39, src/core/crash-handler.c:35.
	pattern(failKernelPanic, `Freezing execution\.?$`),

	// glibc 2.36, errno ENOSPC; Go 1.26, syscall/zerrors_linux_amd64.go:1385.
	pattern(failDiskFull, `(?i:: no space left on device$)`),
	// Python 3.11, OSError.__str__ of the same.
	pattern(failDiskFull, `\[Errno 28\] No space left on device`),

	// systemd 252.39, src/sulogin-shell/sulogin-shell.c:83, and units/emergency.target:11.
	pattern(failEmergency, `^You are in (?:emergency|rescue) mode\.`),
	pattern(failEmergency, `^\[  OK  \] Reached target (?:emergency\.target - )?Emergency Mode\.`),
	// util-linux 2.38.1, login-utils/sulogin.c:584.
	pattern(failEmergency, `^Cannot open access to console, the root account is locked\.`),

	// systemd 252.39, src/core/job.c:601 and units/systemd-networkd-wait-online.service.in:11;
	// ifupdown 0.8.41, debian/networking.service:2.
	pattern(failNoAddress, `^\[FAILED\] Failed to start (?:`+
		`(?:\S+ - )?Wait for Network to be Configured|(?:\S+ - )?Raise network interfaces)\.`),
	// isc-dhcp 4.4.3, client/dhclient.c:2720 and 2811.
	pattern(failNoAddress, `^No (?:DHCPOFFERS received|working leases in persistent database - sleeping)\.`),
	// Python 3.11, OSError.__str__ in cloud-init 22.4.2, cloudinit/url_helper.py:577.
	pattern(failNoAddress, `\[Errno 101\] Network is unreachable`),
	// Go 1.26, net/net.go OpError.Error, syscall/zerrors_linux_amd64.go:1456; of IPv4 only.
	pattern(failNoAddress, `dial tcp [\d.]+:\d+: connect: network is unreachable`),

	// Go 1.26, crypto/x509/verify.go:77, 142 and 157, behind crypto/tls/common.go:1817.
	pattern(failCertificate, `x509: certificate (?:signed by unknown authority|has expired or is not yet valid|`+
		`is valid for [\w.:*, -]+, not `+host+`|is not valid for any names)`),
	// curl 7.88.1, lib/vtls/openssl.c:3936, with OpenSSL's X509_verify_cert_error_string.
	pattern(failCertificate, `SSL certificate problem: [a-zA-Z -]+`),

	// Go 1.26, net/net.go:649 and net/dnsclient_unix.go:46, in DNSError.Error.
	pattern(failDNS, `lookup `+host+`(?: on [\w.:\[\]]+)?: `+
		`(?:no such host|server misbehaving|(?:read|dial) udp)`),
	// curl 7.88.1, lib/url.c:3230.
	pattern(failDNS, `Could not resolve host: `+host+`$`),
	// glibc 2.36, sysdeps/posix/gai_strerror-strs.h: EAI_AGAIN and EAI_NONAME.
	pattern(failDNS, `Temporary failure in name resolution|Name or service not known`),
	// apt 2.6, methods/connect.cc.
	pattern(failDNS, `Temporary failure resolving '`+host+`'`),

	// Go 1.26, net/net.go OpError.Error, syscall/zerrors_linux_amd64.go:1466.
	pattern(failRefused, `dial tcp [\w.:\[\]]+: connect: connection refused`),
	// curl 7.88.1, lib/connect.c:710; newer ones end with "Couldn't connect to server".
	pattern(failRefused, `Failed to connect to `+host+` port \d+(?: after \d+ ms)?: `+
		`(?:Connection refused|Couldn't connect to server)`),
	// Python 3.11, OSError.__str__.
	pattern(failRefused, `\[Errno 111\] Connection refused`),

	// cloud-init 22.4.2, cloudinit/util.py:959 and 967. What follows may quote the user data.
	pattern(failCloudInit, `Failed loading yaml blob(?:\. Invalid format at line \d+ column \d+)?`),
	// cloud-init 22.4.2, cloudinit/config/schema.py:453, cloudinit/handlers/__init__.py:241 and
	// 247, cloudinit/config/cc_scripts_user.py:57, cloudinit/config/modules.py:255,
	// cloudinit/cmd/main.py:403 and 475.
	pattern(failCloudInit, `Invalid cloud-config provided`),
	pattern(failCloudInit, `Unhandled (?:non-multipart|unknown content-type) \([\w./+-]+\) userdata`),
	pattern(failCloudInit, `Failed to run module [\w-]+`),
	pattern(failCloudInit, `Running module [\w-]+ \([\w<>'./ -]+\) failed`),
	pattern(failCloudInit, `No instance datasource found!`),
	pattern(failCloudInit, `Consuming user data failed!`),
	// systemd 252.39, src/core/job.c:601, and the Descriptions of cloud-init's units.
	pattern(failCloudInit, `^\[FAILED\] Failed to start (?:cloud-(?:init|config|final)[\w.-]*(?: - `+unit+`)?|`+
		`Initial cloud-init job`+unit+`|Apply the settings specified in cloud-config\.|Execute cloud user/final scripts\.)`),

	// Gardener 1.130.0, pkg/component/extensions/operatingsystemconfig/nodeinit/nodeinit.go:134 and
	// original/components/nodeagent/component.go:98, by systemd 252.39, src/core/job.c:601.
	pattern(failNodeAgent, `^\[FAILED\] Failed to start `+
		`(?:gardener-node-(?:init|agent)\.service|Downloads the gardener-node-agent|Gardener Node Agent)`+unit),
	// Gardener 1.130.0, cmd/gardener-node-agent/app/app.go:113, 178 and 273;
	// pkg/nodeagent/bootstrap/bootstrap.go:45 to 72, kubelet_data_volume.go:63.
	pattern(failNodeAgent, `failed (?:getting REST config|fetching machine name from file|`+
		`requesting and storing kubeconfig)`),
	pattern(failNodeAgent, `failed formatting kubelet data volume`+
		`(?:: failed executing formatter bash script: exit status \d+)?`),
	pattern(failNodeAgent, `unable to (?:write unit file|enable unit|start unit|disable system unit)`),
	// What its nodeinit/templates/scripts/init.tpl.sh:15 runs: containerd 1.6, cmd/ctr/main.go.
	pattern(failNodeAgent, `^ctr: [a-z ]+`),

	// systemd 252.39, src/core/job.c:600 to 602, src/core/mount.c:2342.
	pattern(failUnit, `^\[(?:FAILED|DEPEND| TIME )\] `+
		`(?:Failed to (?:start|mount)|Dependency failed for|Timed out (?:starting|waiting for)) `+unit),
}

func pattern(failure joinFailure, line string) consolePattern {
	return consolePattern{failure, regexp.MustCompile(line)}
}

var (
	// secretive are lines that are not looked at, whatever else they say.
	secretive = regexp.MustCompile(`(?i)passw|secret|token|bearer|authorization|private key`)
	// tokens are bootstrap tokens and JWTs.
	tokens = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\beyJ[\w-]+\.[\w-]+\.[\w-]*`)
	// terminalCodes are colors and line ends of systemd's src/core/show-status.c.
	terminalCodes = regexp.MustCompile(`\x1b\[[0-9;:?]*[A-Za-z]|\x1bM|\r`)
	// util-linux 2.38.1, term-utils/agetty.c:147.
	loginPrompt = regexp.MustCompile(`(?m)^` + host + ` login: `)
	firstBoot   = regexp.MustCompile(`(?i)cloud-?init|ignition`)
)

const (
	// consoleLines is how many lines of a console log are read.
	consoleLines = 500
	// maxConsole is how much of it is looked at, in bytes, its end: OpenStack keeps no more (Nova,
	// nova/virt/libvirt/driver.py, MAX_CONSOLE_BYTES).
	maxConsole = 100 << 10
	// maxExcerpts is how many lines are logged, maxExcerpt how much of each, in bytes.
	maxExcerpts = 10
	maxExcerpt  = 200

	// consoleTimeout is how long a DELETE waits for the read.
	consoleTimeout = 5 * time.Second
	// consolePatience is how long the read waits for its turn. The deletion's own reads have just
	// taken one: the next is free after an eighth of a second, where nobody else waits.
	consolePatience = time.Second
	// consolesPerMinute is how many logs a process reads in a minute.
	consolesPerMinute = 10
)

var errTooManyConsoles = fmt.Errorf("another console log of the class is being read, or %d were in the last minute",
	consolesPerMinute)

// explain says what failed, and which parts of the log show it. userData is the server's.
func explain(log, userData string) (failure joinFailure, excerpts []string) {
	isWhole := strings.Count(log, "\n") < consoleLines && len(log) <= maxConsole
	log = terminalCodes.ReplaceAllString(log[max(0, len(log)-maxConsole):], "")
	found := findFailures(log)
	failure = failUnknown
	if first := slices.IndexFunc(found, func(lines []string) bool { return len(lines) > 0 }); first >= 0 {
		failure = consolePatterns[first].failure
	}
	hasNoCloudInit := isWhole && loginPrompt.MatchString(log) && !firstBoot.MatchString(log)
	if hasNoCloudInit && (failure == failUnit || failure == failUnknown) {
		failure = failNoCloudInit
	}
	for _, match := range slices.Concat(found...) {
		if len(excerpts) < maxExcerpts && !slices.Contains(excerpts, match) {
			excerpts = append(excerpts, match)
		}
	}
	for i, excerpt := range excerpts { // now that they are few: it takes its time with long user data
		excerpt = tokens.ReplaceAllString(redacted(excerpt, userData), "(token)")
		excerpts[i] = strings.TrimSpace(excerpt[:min(len(excerpt), maxExcerpt)])
	}
	return failure, excerpts
}

// findFailures returns what each of the consolePatterns matches.
func findFailures(log string) [][]string {
	found := make([][]string, len(consolePatterns))
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if secretive.MatchString(line) {
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

// neverJoined says that the Machine is deleted because it never had a Node: it has a server, no
// conditions (the manager copies them from the Node), and was deleted after its creation timeout.
// One that was scaled down while its server booted is no case.
func (t creationTimes) neverJoined(machine *v1alpha1.Machine) bool {
	expires := t.expires(machine)
	return !expires.IsZero() && machine.DeletionTimestamp != nil && !machine.DeletionTimestamp.Time.Before(expires) &&
		machine.Spec.ProviderID != "" && len(machine.Status.Conditions) == 0
}

// consoles are the servers that never joined of which this process knows, and the limits of reading
// their logs.
type consoles struct {
	clock   clock.PassiveClock
	servers *recent.Map[string, *unjoined]

	mu sync.Mutex
	// underWay are the classes of which a log is being read, begun when the last reads began.
	underWay map[classKey]bool
	begun    []time.Time
}

// unjoined is a server that never joined.
type unjoined struct {
	failure joinFailure
	// isCounted says that a DELETE of it was accepted.
	isCounted bool
}

func newConsoles(clock clock.PassiveClock) *consoles {
	servers := recent.New[string, *unjoined](clock, sessionLifetime)
	return &consoles{clock: clock, servers: servers, underWay: map[classKey]bool{}}
}

// begin says whether a log of the class may be read now; then end must follow.
func (l *consoles) begin(class classKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.begun = slices.DeleteFunc(l.begun, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if l.underWay[class] || len(l.begun) >= consolesPerMinute {
		return false
	}
	l.begun = append(l.begun, now)
	l.underWay[class] = true
	return true
}

func (l *consoles) end(class classKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.underWay, class)
}

// explainUnjoined looks once into the console log of a server that never joined, before its first
// DELETE, and logs why. It returns nil for every other server, and for one that is being deleted
// already: a predecessor has counted it.
func (t *tracked) explainUnjoined(ctx context.Context) *unjoined {
	if !t.call.neverJoined || !t.isNamed() {
		return nil
	}
	if known, ok := t.call.consoles.servers.Lookup(t.id); ok || t.last.server.IsDeleting() {
		return known
	}
	failure, excerpts, err := t.readConsole(ctx)
	found := &unjoined{failure: failure}
	t.call.consoles.servers.Set(t.id, found)
	fields := []any{"machine", klog.KRef(loggable(t.call.ref.namespace), loggable(t.call.machine)),
		"machineClass", loggable(t.call.class), "server", t.id, "cause", failure}
	if len(excerpts) > 0 {
		fields = append(fields, "console", excerpts)
	}
	if err != nil {
		fields = append(fields, "err", err)
	}
	klog.InfoS("The Machine's server never joined the cluster as a Node, and is deleted", fields...)
	return found
}

// readConsole reads the console log, if the server runs and the limits allow it.
func (t *tracked) readConsole(ctx context.Context) (joinFailure, []string, error) {
	if !t.last.server.IsActive() {
		return failNotRunning, nil, nil
	}
	class := t.call.classKey()
	if !t.call.consoles.begin(class) {
		return failNotRead, nil, errTooManyConsoles
	}
	defer t.call.consoles.end(class)
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	patience, giveUp := context.WithTimeout(ctx, consolePatience)
	defer giveUp()
	if err := t.call.turn(patience); err != nil {
		return failNotRead, nil, fmt.Errorf("other reads wait for their turn: %w", err)
	}
	log, err := t.call.client.ConsoleLog(ctx, t.id, consoleLines)
	if err != nil {
		return failNotRead, nil, err
	}
	failure, excerpts := explain(log, t.call.spec.UserData)
	return failure, excerpts, nil
}

// deleteAccepted counts the server, once.
func (u *unjoined) deleteAccepted(meters *meters) {
	if u == nil || u.isCounted {
		return
	}
	u.isCounted = true
	meters.neverJoined.WithLabelValues(string(u.failure)).Inc()
}

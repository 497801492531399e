// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Part is the name of a part of the environment, in errors and for Logs.
type Part string

// The parts of the environment, in start order.
const (
	partPrograms  Part = "programs"
	PartEtcd      Part = "etcd"
	partAPIServer Part = "kube-apiserver"
	// partTargetAPIServer is the kube-apiserver of WithTargetCluster.
	partTargetAPIServer Part = "target-kube-apiserver"
	partCRDs            Part = "custom resource definitions"
	PartManager         Part = "machine-controller-manager"
	PartSidecar         Part = "machine-controller"
)

// PartError is the error of a part that failed to start or ended unexpectedly.
type PartError struct {
	Part Part
	// Err is the cause of the failure.
	Err error
	// Log holds the last lines of the part's log; "" for parts without a log.
	Log string
}

// Error returns the part and the cause, followed by the end of the part's log if there is one.
func (e *PartError) Error() string {
	text := fmt.Sprintf("%s: %v", e.Part, e.Err)
	if e.Log == "" {
		return text
	}
	return text + "; the end of its log:\n    " + strings.ReplaceAll(e.Log, "\n", "\n    ")
}

// Unwrap returns Err.
func (e *PartError) Unwrap() error { return e.Err }

// tailLines is the number of log lines in an error.
const tailLines = 20

// command is a command line for a part.
type command struct {
	path string
	args []string
	// env is the whole environment: nothing is inherited.
	env []string
}

// minimalEnvironment returns the variables that any program may expect. Nothing else is passed on: settings for another
// cloud or another etcd must not reach the parts.
func minimalEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
}

// process is a part that runs as a child process.
type process struct {
	part    Part
	logPath string
	// logStart is the offset of this run in the log, to which a restart appends.
	logStart int64
	cmd      *exec.Cmd
	// exited is closed when the process has ended; err is then its result.
	exited chan struct{}
	err    error
	// ending means that the process is being ended on purpose.
	ending atomic.Bool
}

// spawn starts c and appends its output to the file logPath.
func spawn(part Part, c command, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, log, log
	cmd.SysProcAttr = childAttributes()
	p := &process{part: part, logPath: logPath, logStart: info.Size(), cmd: cmd, exited: make(chan struct{})}
	return p, p.start()
}

// start starts the process from a thread that lives as long as the process. Linux sends the parent-death signal when
// the thread that forked ends, not when the whole parent does.
func (p *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return <-started
}

// end ends the process: SIGTERM, then SIGKILL after grace. It returns when the process has ended.
func (p *process) end(grace time.Duration) {
	p.ending.Store(true)
	if grace > 0 {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.exited:
			return
		case <-time.After(grace):
		}
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) signal(s os.Signal) {
	// It only fails if the process has ended, which exited reports.
	_ = p.cmd.Process.Signal(s)
}

// failure returns the error of a process that ended unexpectedly.
func (p *process) failure() error {
	cause := p.err
	if cause == nil {
		cause = errors.New("exit status 0")
	}
	return p.explain(fmt.Errorf("exited: %w", cause))
}

// explain adds the part's name and the end of this run's log to err.
func (p *process) explain(err error) error {
	return &PartError{Part: p.part, Err: err, Log: p.tail()}
}

// crash matches the line in which a Go program or klog reports a fatal error. The stacks of all goroutines follow it.
var crash = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} )`)

// tail returns the most useful lines of this run's log: from the fatal error on, or else the last lines.
func (p *process) tail() string {
	lines := strings.Split(strings.TrimRight(p.output(), "\n"), "\n")
	start := max(0, len(lines)-tailLines)
	for i, line := range lines {
		if crash.MatchString(line) {
			start = i
		}
	}
	return strings.Join(lines[start:min(len(lines), start+tailLines)], "\n")
}

// output returns the log of this run.
func (p *process) output() string {
	content, err := os.ReadFile(p.logPath)
	if err != nil || int64(len(content)) < p.logStart {
		return ""
	}
	return string(content[p.logStart:])
}

// awaitReady returns once ready returns nil. It fails when the process exits, ctx ends or limit has passed.
func (p *process) awaitReady(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready(limited)
		select {
		case <-p.exited:
			return p.failure()
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.failure()
		case <-limited.Done():
			if ctx.Err() != nil {
				return &PartError{Part: p.part, Err: context.Cause(ctx)}
			}
			return p.explain(fmt.Errorf("not ready after %s: %w", limit, err))
		case <-ticker.C:
		}
	}
}

const (
	// readyLimit is the maximum time until a part is ready. All parts take a few seconds on two idle cores, and a minute
	// where a dozen API servers start while other programs compile.
	readyLimit = 2 * time.Minute
	// portAttempts is how often a part is started if another process takes its port between our choice and its bind.
	portAttempts = 5
	// stopGrace is the maximum time for a part to end after SIGTERM.
	stopGrace = 5 * time.Second
)

// portTaken is in the error of Go programs, which all parts are, for a port in use.
const portTaken = "address already in use"

// service is a part that listens on a port of its own.
type service struct {
	part Part
	// fixed is the required port, if other parts know it already; 0 means any.
	fixed int
	// command returns the command line for a port.
	command func(port int) command
	// ready returns nil when the part is ready.
	ready func(ctx context.Context, port int) error
	// ended is called when the part ends unexpectedly; nil makes that a failure of the environment.
	ended func(*process)
}

// errPortTaken means that another process listens on the chosen port.
var errPortTaken = errors.New(portTaken)

var errAlreadyRunning = errors.New("already running")

// launch runs s on a free port, waits until it is ready, and watches it from then on. It returns the port.
func (e *Env) launch(ctx context.Context, s service) (port int, err error) {
	if e.process(s.part) != nil {
		return 0, &PartError{Part: s.part, Err: errAlreadyRunning}
	}
	for attempt := 1; ; attempt++ {
		if port = s.fixed; port == 0 {
			if port, err = freePort(); err != nil {
				return 0, &PartError{Part: s.part, Err: err}
			}
		}
		p, err := e.attempt(ctx, s, port)
		if err == nil {
			return port, e.adopt(p, s.ended)
		}
		if !errors.Is(err, errPortTaken) || attempt == portAttempts || ctx.Err() != nil {
			return 0, err
		}
		e.progress("%s: another process took its port, trying another port", s.part)
	}
}

// attempt runs s on this port and returns its process when it is ready. It detects another process on the port, whose
// answers must not count as the part's.
func (e *Env) attempt(ctx context.Context, s service, port int) (*process, error) {
	c := s.command(port)
	if answers(ctx, port) {
		return nil, &PartError{Part: s.part, Err: errPortTaken}
	}
	p, err := spawn(s.part, c, e.LogPath(s.part))
	if err != nil {
		return nil, &PartError{Part: s.part, Err: err}
	}
	err = p.awaitReady(ctx, readyLimit, func(ctx context.Context) error { return s.ready(ctx, port) })
	if err == nil {
		return p, nil
	}
	p.end(0)
	if strings.Contains(p.output(), portTaken) || answers(ctx, port) {
		return nil, fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return nil, err
}

// answers reports whether a process listens on the port.
func answers(ctx context.Context, port int) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// adopt adds a running process to the environment: Stop ends it, and its unexpected end calls ended, or fails the
// environment if that is nil.
func (e *Env) adopt(p *process, ended func(*process)) error {
	if ended == nil {
		ended = func(p *process) { e.fail(p.failure()) }
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		p.end(0)
		return &PartError{Part: p.part, Err: errStopped}
	}
	if e.processes[p.part] != nil { // another call was faster
		p.end(0)
		return &PartError{Part: p.part, Err: errAlreadyRunning}
	}
	e.processes[p.part] = p
	e.watchers.Go(func() {
		<-p.exited
		if !p.ending.Load() {
			ended(p)
		}
	})
	return nil
}

// endPart ends a part's process, if there is one, and returns when it is gone.
func (e *Env) endPart(part Part, grace time.Duration) {
	e.mu.Lock()
	p := e.processes[part]
	delete(e.processes, part)
	e.mu.Unlock()
	if p != nil {
		p.end(grace)
	}
}

// LogPath returns the path of a part's log file. A restarted part appends to the file. Stop removes
// it.
func (e *Env) LogPath(part Part) string {
	return filepath.Join(e.logDir, string(part)+".log")
}

// freePort returns a loopback port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	address, err := netip.ParseAddrPort(l.Addr().String())
	return int(address.Port()), errors.Join(err, l.Close())
}

// httpOK returns nil if a GET of url returns 200.
func httpOK(ctx context.Context, client *http.Client, url, bearer string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("GET %s: %s: %s", url, resp.Status, body), err)
	}
	return nil
}

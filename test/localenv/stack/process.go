// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Part names one part of the environment, in errors and for Logs.
type Part string

// The parts of the environment, in the order they start.
const (
	PartPrograms  Part = "programs"
	PartEtcd      Part = "etcd"
	PartAPIServer Part = "kube-apiserver"
	// PartTargetAPIServer is that of WithTargetCluster.
	PartTargetAPIServer Part = "target-kube-apiserver"
	PartCRDs            Part = "custom resource definitions"
	PartCloud           Part = "IaaS API"
	PartManager         Part = "machine-controller-manager"
	PartSidecar         Part = "machine-controller"
)

// PartError tells which part failed and how.
type PartError struct {
	Part Part
	// Err is the cause.
	Err error
	// Log is the end of the part's log, empty for parts without one.
	Log string
}

// Error names the part, the cause and, where there is one, the end of the log.
func (e *PartError) Error() string {
	text := fmt.Sprintf("%s: %v", e.Part, e.Err)
	if e.Log == "" {
		return text
	}
	return text + "; the end of its log:\n    " + strings.ReplaceAll(e.Log, "\n", "\n    ")
}

// Unwrap returns the cause.
func (e *PartError) Unwrap() error { return e.Err }

// tailLines is how much of a log an error shows.
const tailLines = 20

// command is what to run for a part.
type command struct {
	path string
	args []string
	// env is the whole environment: nothing of ours leaks into a part.
	env []string
}

// minimalEnvironment is what any program may expect. Nothing else is passed on:
// settings for another cloud or another etcd must not reach these.
func minimalEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
}

// process is a part that runs as a child process of ours.
type process struct {
	part    Part
	logPath string
	// logStart is where this run begins in the log, which a restart appends to.
	logStart int64
	cmd      *exec.Cmd
	// exited is closed when the process is gone; err then tells how it ended.
	exited chan struct{}
	err    error
	// ending says that the end of the process is wanted.
	ending atomic.Bool
}

// spawn starts c with its output appended to the file logPath.
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

// start starts the process from a thread that lives as long as the process:
// Linux sends the parent-death signal when the thread that forked ends, not
// when the whole parent does.
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

// end stops the process: SIGTERM, and SIGKILL after grace. It returns when the
// process is gone.
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
	// The only failure is a process that is gone already, which exited tells.
	_ = p.cmd.Process.Signal(s)
}

// failure is the error of a process that ended by itself.
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

// crash is how a line begins in which a Go program or klog says why it ends. The
// stacks of all goroutines follow it.
var crash = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} )`)

// tail returns the lines of this run's log that tell most: those from where it
// says why it ends, else the last.
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

// output returns what this run has logged.
func (p *process) output() string {
	content, err := os.ReadFile(p.logPath)
	if err != nil || int64(len(content)) < p.logStart {
		return ""
	}
	return string(content[p.logStart:])
}

// awaitReady returns once ready answers without an error. It fails when the
// process exits, when ctx ends and when limit has passed.
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

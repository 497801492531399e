// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Part is the name of a controller that runs as a process, for Logs.
type Part string

// The controllers of an environment.
const (
	PartManager Part = "machine-controller-manager"
	PartSidecar Part = "machine-controller"
)

// command is how a controller is started.
type command struct {
	part Part
	path string
	// variables is the environment but for PATH and HOME. Nothing else is inherited: settings for another cloud must
	// not reach the controllers.
	variables, args []string
	// ended is called after an unexpected end; nil makes that a failure of the environment.
	ended func(error)
}

// process is a running controller.
type process struct {
	cmd *exec.Cmd
	// exited is closed when the process has ended; err is then its result.
	exited chan struct{}
	err    error
	// ending means that the process is being ended on purpose.
	ending atomic.Bool
}

const (
	// portTaken is what a Go program says if another process took its port between our choice and its bind.
	portTaken    = "address already in use"
	portAttempts = 5
	// stopGrace is the maximum time for a part to end after SIGTERM.
	stopGrace = 5 * time.Second
)

// launch runs a controller on a free port, waits until it answers on /healthz, and returns its port.
func (e *Env) launch(ctx context.Context, c command) (port int, err error) {
	for range portAttempts {
		if port, err = freePort(); err != nil {
			return 0, err
		}
		if err = e.run(ctx, c, port); err == nil || !strings.Contains(err.Error(), portTaken) {
			break
		}
	}
	return port, err
}

func (e *Env) run(ctx context.Context, c command, port int) error {
	log, err := os.OpenFile(e.LogPath(c.part), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p := &process{exited: make(chan struct{}),
		cmd: exec.Command(c.path, append(slices.Clone(c.args), "--port="+strconv.Itoa(port))...)}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, c.variables...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, childAttributes()
	if err := e.register(c.part, p); err != nil {
		return err
	}
	if err := awaitReady(ctx, p, localURL(port)+"/healthz"); err != nil {
		e.end(c.part, 0)
		return e.explain(c.part, err)
	}
	e.watchers.Go(func() {
		<-p.exited
		if p.ending.Load() {
			return
		}
		err := e.explain(c.part, errors.Join(errors.New("ended unexpectedly"), p.err))
		if c.ended == nil {
			e.stopped(err)
			return
		}
		e.end(c.part, 0)
		c.ended(err)
	})
	return nil
}

// register starts a process as a part.
func (e *Env) register(part Part, p *process) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.processes[part] != nil {
		return fmt.Errorf("%s: already running", part)
	}
	if err := p.start(); err != nil {
		return err
	}
	e.processes[part] = p
	if !slices.Contains(e.controllers, part) {
		e.controllers = append(e.controllers, part)
	}
	return nil
}

// start starts the process from a thread that lives as long as the process: Linux sends the parent-death
// signal when the thread that forked ends, not when the whole parent does.
func (p *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	return <-started
}

// awaitReady returns when the process answers 200 at the URL.
func awaitReady(ctx context.Context, p *process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.exited:
			return errors.Join(errors.New("ended before it was ready"), p.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explain adds the part's name and the end of its log to err.
func (e *Env) explain(part Part, err error) error {
	const tail = 20
	log, _ := e.Logs(part)
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return fmt.Errorf("%s: %w; the end of its log:\n%s", part, err, strings.Join(lines[max(0, len(lines)-tail):], "\n"))
}

// end ends a part's process, if there is one: SIGTERM, then SIGKILL after grace. It returns when it is gone.
func (e *Env) end(part Part, grace time.Duration) {
	e.mu.Lock()
	p := e.processes[part]
	delete(e.processes, part)
	e.mu.Unlock()
	if p == nil {
		return
	}
	p.ending.Store(true)
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
			return
		case <-time.After(grace):
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// LogPath returns the path of a part's log file, to which a restarted part appends. Stop removes it.
func (e *Env) LogPath(part Part) string { return filepath.Join(e.dir, "logs", string(part)+".log") }

// Logs returns the log that a part has written so far.
func (e *Env) Logs(part Part) (string, error) {
	content, err := os.ReadFile(e.LogPath(part))
	return string(content), err
}

func localURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// freePort returns a loopback port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address, err := netip.ParseAddrPort(l.Addr().String())
	return int(address.Port()), errors.Join(err, l.Close())
}

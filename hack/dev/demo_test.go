// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// fakeEnvironment is a cloud in which nothing happens.
type fakeEnvironment struct {
	cloud *iaasmock.Cloud
	done  chan struct{}
	err   error
}

func (e *fakeEnvironment) Cloud() *iaasmock.Cloud { return e.cloud }
func (e *fakeEnvironment) Done() <-chan struct{}  { return e.done }
func (e *fakeEnvironment) Err() error             { return e.err }

// testView is a view without a terminal.
func testView() *view {
	return &view{out: io.Discard, start: time.Now(), size: func() (int, int, bool) { return 0, 0, false }}
}

// testTour is a tour that sees s.
func testTour(s state) (*tour, *fakeEnvironment) {
	env := &fakeEnvironment{cloud: iaasmock.New(), done: make(chan struct{})}
	return newTour(env, func(context.Context) (state, error) { return s, nil }, testView()), env
}

func oneStep(limit time.Duration, reached error) []step {
	return []step{{
		title: "up", limit: limit,
		begin:   func(context.Context) error { return nil },
		reached: func(state) error { return reached },
	}}
}

func TestTour(t *testing.T) {
	empty := stateOf(nil, nil)
	failed := errors.New("etcd: exited")
	for name, test := range map[string]struct {
		state  state
		steps  []step
		change func(*tour, *fakeEnvironment)
		want   string
	}{
		"all well": {state: empty, steps: oneStep(time.Minute, nil)},
		"a step is never reached": {state: empty, steps: oneStep(time.Millisecond, errors.New("2 of 3 up")),
			want: "up: late: not reached after 1ms: 2 of 3 up"},
		"a step is reached too late": {state: empty, steps: oneStep(time.Nanosecond, nil), want: "up: too slow: took"},
		"a part dies": {state: empty, steps: oneStep(time.Minute, errors.New("2 of 3 up")), want: "up: etcd: exited",
			change: func(_ *tour, env *fakeEnvironment) { env.err = failed; close(env.done) }},
		"a machine is left": {state: stateOf([]machinev1alpha1.Machine{machine("worker-a", "", "", 0)}, nil), want: "left over: machine worker-a"},
		"a node is left":    {state: stateOf(nil, nil, node("worker-a", corev1.ConditionTrue)), want: "left over: node worker-a"},
		"a volume is left": {state: empty, want: "left over: volume " + iaasmock.DefaultVolumeID,
			change: func(t *tour, _ *fakeEnvironment) { delete(t.found, iaasmock.DefaultVolumeID) }},
		"a NIC stays attached": {state: empty, want: "left over: NIC " + iaasmock.DefaultNICID,
			change: func(t *tour, _ *fakeEnvironment) { t.found[iaasmock.DefaultNICID] = "NIC, otherwise" }},
		"a user's volume is gone": {state: empty, want: "lost: volume x",
			change: func(t *tour, _ *fakeEnvironment) { t.found["x"] = "volume x" }},
	} {
		t.Run(name, func(t *testing.T) {
			tour, env := testTour(test.state)
			if test.change != nil {
				test.change(tour, env)
			}
			err := tour.run(t.Context(), test.steps)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCalledWrongly(t *testing.T) {
	for _, args := range [][]string{nil, {"up"}, {"demo", "--sidecar=none"}, {"dev", "--sidecar=other"}} {
		var stderr bytes.Buffer
		if code := run(args, nil, &stderr); code != 2 || !strings.Contains(stderr.String(), "Usage:") {
			t.Errorf("%v: exit code %d, %q", args, code, &stderr)
		}
	}
}

// asDemo makes the test binary take the tour.
const asDemo = "HACK_DEV_TEST_DEMO"

// TestReaderThatHasGone is make demo | head.
func TestReaderThatHasGone(t *testing.T) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run([]string{"demo"}, os.Stdout, os.Stderr))
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), asDemo+"=true", "TMPDIR="+tmp)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1", err)
	}
	if !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("it says %q", &stderr)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// asWaiting makes the test binary wait until it is interrupted, for a minute at most.
const asWaiting = "HACK_DEV_TEST_WAITING"

// TestMakeThatIsKilled: whatever ends make or its terminal ends the command.
func TestMakeThatIsKilled(t *testing.T) {
	if os.Getenv(asWaiting) != "" {
		ctx, end := untilInterrupted()
		defer end(nil)
		fmt.Println(os.Getpid())
		select {
		case <-ctx.Done():
			fmt.Println(context.Cause(ctx))
		case <-time.After(time.Minute):
		}
		os.Exit(0)
	}
	for name, row := range map[string]struct {
		onTerminal bool
		end        func(terminal *os.File, parent, child int) error
	}{
		"SIGTERM, which make passes on": {
			end: func(_ *os.File, _, child int) error { return syscall.Kill(child, syscall.SIGTERM) }},
		"SIGKILL, which make cannot pass on": {
			end: func(_ *os.File, parent, _ int) error { return syscall.Kill(parent, syscall.SIGKILL) }},
		"Ctrl-C": {onTerminal: true, end: func(terminal *os.File, _, _ int) error {
			_, err := terminal.WriteString("\x03")
			return err
		}},
		"a terminal that goes away, of which make alone hears": {onTerminal: true,
			end: func(terminal *os.File, _, _ int) error { return terminal.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The shell waits, as make does.
			parent := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap : INT HUP; "$0" "$@"; :`,
				os.Args[0], "-test.run=^TestMakeThatIsKilled$")
			parent.Env = append(os.Environ(), asWaiting+"=true")
			pipe, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var terminal *os.File
			if row.onTerminal {
				terminal, err = pty.Start(parent)
			} else {
				err = parent.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = terminal.Close() }()
			var child int
			if _, err := fmt.Fscanln(pipe, &child); err != nil {
				t.Fatal(err)
			}
			if err := row.end(terminal, parent.Process.Pid, child); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(pipe)
			if err != nil || string(said) != errInterrupted.Error()+"\n" {
				t.Errorf("it says %q, %v, must be interrupted", said, err)
			}
			_ = parent.Wait()
		})
	}
}

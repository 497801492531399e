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
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// fakeEnvironment is one whose part has died, or none.
type fakeEnvironment struct {
	done chan struct{}
	err  error
}

func (e fakeEnvironment) Done() <-chan struct{} { return e.done }
func (e fakeEnvironment) Err() error            { return e.err }

func oneStep(reached error) []step {
	return []step{{
		title:   "up",
		begin:   func(context.Context) error { return nil },
		reached: func(state) error { return reached },
	}}
}

func TestTour(t *testing.T) {
	spare, other := iaasmock.NIC{ID: "nic", IPv4: "10.0.0.2"}, iaasmock.NIC{ID: "nic", IPv4: "10.0.0.2", ServerID: "x"}
	data := iaasmock.Volume{ID: "data", Size: 20}
	died := make(chan struct{})
	close(died)
	missing := errors.New("2 of 3 up")
	for name, test := range map[string]struct {
		before, after state
		steps         []step
		env           fakeEnvironment
		want          string
	}{
		"all well": {steps: oneStep(nil)},
		"a step is never reached": {steps: oneStep(missing),
			want: "up: timed out after 5m0s: 2 of 3 up"},
		"a part dies": {steps: oneStep(missing), want: "up: etcd: exited",
			env: fakeEnvironment{died, errors.New("etcd: exited")}},
		"a machine is left": {after: stateOf([]machinev1alpha1.Machine{machine("worker-a", "", "", 0)}, nil),
			want: "left over: machine worker-a"},
		"a node is left": {after: stateOf(nil, nil, node("worker-a", corev1.ConditionTrue)),
			want: "left over: node worker-a"},
		"a server is left": {after: stateOf(nil, []iaasmock.Server{server("1", "worker-a", "DELETING")}),
			want: "left over: server 1 (worker-a, DELETING)"},
		"a volume is left": {after: state{volumes: []iaasmock.Volume{data}}, want: "left over: volume data"},
		"a NIC stays attached": {before: state{nics: []iaasmock.NIC{spare}}, after: state{nics: []iaasmock.NIC{other}},
			want: "left over: NIC nic"},
		"a user's volume is gone": {before: state{volumes: []iaasmock.Volume{data}},
			want: "missing since the tour began: volume data"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				look := func(context.Context) (state, error) {
					looks++
					return map[bool]state{true: test.before, false: test.after}[looks == 1], nil
				}
				view := &view{out: io.Discard, start: time.Now(), size: func() (int, int, bool) { return 0, 0, false }}
				err := (&tour{view: view, look: look, env: test.env}).run(t.Context(), test.steps)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
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
				t.Errorf("it says %q, %v: must be interrupted", said, err)
			}
			_ = parent.Wait()
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
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

func TestInventorySince(t *testing.T) {
	cloud := iaasmock.New()
	before := takeInventory(cloud)
	if len(before) == 0 {
		t.Fatal("the catalogue's NICs and volumes are missing")
	}
	if left := takeInventory(cloud).since(before); left != nil {
		t.Errorf("nothing has changed, but there is %v", left)
	}
	now := inventory{"a": "server a", "b": "NIC b", "c": "volume c", "e": "NIC e (, attached to a)"}
	earlier := inventory{"c": "volume c", "d": "volume d", "e": "NIC e ()"}
	if diff := cmp.Diff([]string{"NIC b", "NIC e (, attached to a)", "server a"}, now.since(earlier)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"volume d"}, now.lostSince(earlier)); diff != "" {
		t.Error(diff)
	}
}

func TestCalledWrongly(t *testing.T) {
	for name, args := range map[string][]string{
		"without a command":  nil,
		"an unknown command": {"up"},
		"an unknown flag":    {"dev", "--fast"},
		"no duration":        {"demo", "--boot", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(args, nil, &stderr); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), "Usage:") {
				t.Errorf("no usage shown, but %q", stderr.String())
			}
		})
	}
}

func TestFailedStartIsReported(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	var stderr bytes.Buffer
	if code := run([]string{"demo"}, out, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if want := "Failed: programs: stat " + assets; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want it to say %q", stderr.String(), want)
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

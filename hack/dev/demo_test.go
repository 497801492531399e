// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

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

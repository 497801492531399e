// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// stepLimit limits a step to several times its usual duration: the manager itself waits for fixed times (25 s to
// delete a machine), and the computer may be slow.
const stepLimit = 5 * time.Minute

// step is one stage of the tour.
type step struct {
	title string
	// begin starts the step's change.
	begin func(context.Context) error
	// reached returns nil once the step's goal is reached, else an error with what is missing.
	reached func(state) error
}

// tour is a running demo.
type tour struct {
	view *view
	look func(context.Context) (state, error)
	// env reports when a part of the environment has died, and which.
	env interface {
		Done() <-chan struct{}
		Err() error
	}
}

// demo runs the tour. It fails if a step is late or anything is left at the end.
func demo(ctx context.Context, v *view) error {
	env, err := start(ctx, v, 2*time.Second, time.Second)
	if err != nil {
		return err
	}
	defer stop(env, v)
	t := tour{view: v, look: func(ctx context.Context) (state, error) { return look(ctx, env) }, env: env}
	err = t.run(ctx, steps(env))
	v.close()
	history, counts := env.Cloud().History(), env.Cloud().CallCounts()
	v.say("\nServers: %d created, %d deleted\nAPI calls:", history.ServersCreated, history.ServersDeleted)
	for _, operation := range slices.Sorted(maps.Keys(counts)) {
		v.say("  %6d %s", counts[operation], operation)
	}
	return err
}

// run runs the steps. Its error names the resources left over at the end, and the resources that were there before
// and are missing.
func (t *tour) run(ctx context.Context, steps []step) error {
	before, err := t.look(ctx)
	if err != nil {
		return err
	}
	for i, step := range steps {
		t.view.say("\n%d. %s", i+1, step.title)
		if err := t.take(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	if left := now.inventory().Difference(before.inventory()); len(left) > 0 {
		return fmt.Errorf("left over: %s", strings.Join(sets.List(left), ", "))
	}
	if lost := before.inventory().Difference(now.inventory()); len(lost) > 0 {
		return fmt.Errorf("missing since the tour began: %s", strings.Join(sets.List(lost), ", "))
	}
	return nil
}

func steps(env *localenv.Env) []step {
	d := deployment{env: env, name: "worker"}
	return []step{
		{
			title:   "Apply samples/: 3 machines come up",
			begin:   func(ctx context.Context) error { return applySamples(ctx, env) },
			reached: func(s state) error { return d.running(s, 3, "stackit-worker-minimal") },
		},
		{
			title:   "Scale to 5",
			begin:   func(ctx context.Context) error { return d.scale(ctx, 5) },
			reached: func(s state) error { return d.running(s, 5, "stackit-worker-minimal") },
		},
		{
			title: "Roll to the other MachineClass of samples/",
			begin: func(ctx context.Context) error {
				return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) {
					md.Spec.Template.Spec.Class.Name = "stackit-worker"
				})
			},
			reached: func(s state) error { return d.running(s, 5, "stackit-worker") },
		},
		{
			title:   "Scale to 0",
			begin:   func(ctx context.Context) error { return d.scale(ctx, 0) },
			reached: func(s state) error { return d.running(s, 0, "") },
		},
	}
}

// take starts a step and waits until its goal is reached.
func (t *tour) take(ctx context.Context, step step) error {
	begin := time.Now()
	if err := step.begin(ctx); err != nil {
		return err
	}
	late := time.After(stepLimit)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		missing := t.check(ctx, step)
		if missing == nil {
			took := time.Since(begin).Round(100 * time.Millisecond)
			t.view.progress(fmt.Sprintf("done after %s", took))
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.env.Done():
			return t.env.Err()
		case <-late:
			return fmt.Errorf("timed out after %s: %w", stepLimit, missing)
		case <-ticker.C:
		}
	}
}

// check reads the state once and returns an error with what the step still waits for.
func (t *tour) check(ctx context.Context, step step) error {
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	t.view.show(now.rows())
	return step.reached(now)
}

// deployment is the MachineDeployment of the tour.
type deployment struct {
	env  *localenv.Env
	name string
}

func (d deployment) scale(ctx context.Context, replicas int32) error {
	return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = replicas })
}

func (d deployment) change(ctx context.Context, change func(*machinev1alpha1.MachineDeployment)) error {
	var md machinev1alpha1.MachineDeployment
	key := client.ObjectKey{Namespace: d.env.Namespace(), Name: d.name}
	if err := d.env.Client().Get(ctx, key, &md); err != nil {
		return err
	}
	before := client.MergeFrom(md.DeepCopy())
	change(&md)
	return d.env.Client().Patch(ctx, &md, before)
}

// running returns nil when there are want machines, all Running, all of this class, each with an ACTIVE server and
// a Ready Node, and nothing else.
func (d deployment) running(s state, want int, class string) error {
	good := 0
	for i := range s.machines {
		machine := &s.machines[i]
		server := s.serverOf(machine)
		if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning &&
			machine.Spec.Class.Name == class &&
			server != nil && server.Status == iaasmock.StatusActive &&
			s.nodeState(machine.Name) == ready {
			good++
		}
	}
	if good == want && len(s.machines) == want && len(s.servers) == want && len(s.nodes) == want {
		return nil
	}
	return fmt.Errorf("%d of %d machines are Running with an ACTIVE server and a Ready node "+
		"(there are %d machines, %d servers, %d nodes)",
		good, want, len(s.machines), len(s.servers), len(s.nodes))
}

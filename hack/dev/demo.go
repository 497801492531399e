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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// step is one stage of the tour.
type step struct {
	title string
	// limit is how long it may take. The manager itself waits for fixed times
	// (25 s to delete a machine); a limit is about twice what is usual.
	limit time.Duration
	// begin asks for what the step is about.
	begin func(context.Context) error
	// reached tells whether it has come about and, if not, what is missing.
	reached func(state) error
}

// environment is what the tour needs of a *localenv.Env.
type environment interface {
	Cloud() *iaasmock.Cloud
	Done() <-chan struct{}
	Err() error
}

// tour is a demo under way.
type tour struct {
	env  environment
	look func(context.Context) (state, error)
	view *view
	// found is what the cloud held before.
	found inventory
	// seen are the names of all machines there ever were.
	seen  map[string]bool
	times []stepTime
}

// demo takes the tour. It fails if a step is late or anything is left at the end.
func demo(ctx context.Context, v *view, chosen choice) error {
	begin := time.Now()
	env, err := start(ctx, v, chosen)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer stop(env, v)
	tour := newTour(env, func(ctx context.Context) (state, error) { return look(ctx, env) }, v)
	tour.times = append(tour.times, stepTime{title: "everything started", took: time.Since(begin)})
	return causeOf(ctx, tour.run(ctx, steps(env)))
}

func newTour(env environment, look func(context.Context) (state, error), v *view) *tour {
	return &tour{env: env, look: look, view: v, found: takeInventory(env.Cloud()), seen: map[string]bool{}}
}

// run takes the steps and sums them up. It fails if one is late or anything is
// left at the end.
func (t *tour) run(ctx context.Context, steps []step) error {
	for i, step := range steps {
		t.view.say("\n%d. %s", i+1, step.title)
		if err := t.take(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	t.view.close()
	t.view.say("%s", t.summary())
	return t.leftover(ctx)
}

func steps(env *localenv.Env) []step {
	d := deployment{env: env, name: "worker"}
	return []step{
		{
			title: "Apply samples/: 3 machines come up", limit: 60 * time.Second,
			begin:   func(ctx context.Context) error { return applySamples(ctx, env) },
			reached: func(s state) error { return d.running(s, 3, "stackit-worker-minimal") },
		},
		{
			title: "Scale to 5", limit: 60 * time.Second,
			begin:   func(ctx context.Context) error { return d.scale(ctx, 5) },
			reached: func(s state) error { return d.running(s, 5, "stackit-worker-minimal") },
		},
		{
			title: "Roll to a MachineClass with larger machines", limit: 150 * time.Second,
			begin: func(ctx context.Context) error {
				return d.roll(ctx, "stackit-worker-minimal", "stackit-worker-larger", "g2i.4")
			},
			reached: func(s state) error { return d.running(s, 5, "stackit-worker-larger") },
		},
		{
			title: "Scale to 0", limit: 90 * time.Second,
			begin:   func(ctx context.Context) error { return d.scale(ctx, 0) },
			reached: func(s state) error { return d.running(s, 0, "") },
		},
	}
}

// take begins a step and waits for its end.
func (t *tour) take(ctx context.Context, step step) error {
	begin := time.Now()
	if err := step.begin(ctx); err != nil {
		return err
	}
	late := time.NewTimer(step.limit)
	defer late.Stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		missing := t.check(ctx, step)
		if missing == nil {
			took := time.Since(begin)
			t.view.progress(fmt.Sprintf("done after %s", took.Round(100*time.Millisecond)))
			t.times = append(t.times, stepTime{title: step.title, took: took, limit: step.limit})
			if took > step.limit {
				return fmt.Errorf("too slow: took %s, limit %s", took, step.limit)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.env.Done():
			return t.env.Err()
		case <-late.C:
			return fmt.Errorf("late: not reached after %s: %w", step.limit, missing)
		case <-ticker.C:
		}
	}
}

// check looks once and tells what the step still waits for.
func (t *tour) check(ctx context.Context, step step) error {
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	for _, machine := range now.machines {
		t.seen[machine.Name] = true
	}
	t.view.show(now.rows())
	return step.reached(now)
}

// leftover answers an error that names everything that is still there, and what
// was there before the tour and is not any more.
func (t *tour) leftover(ctx context.Context) error {
	held := takeInventory(t.env.Cloud())
	left := held.since(t.found)
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	for i := range now.machines {
		left = append(left, "machine "+now.machines[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(now.nodes)) {
		left = append(left, "node "+name)
	}
	if len(left) > 0 {
		return fmt.Errorf("left over: %s", strings.Join(left, ", "))
	}
	if lost := held.lostSince(t.found); len(lost) > 0 {
		return fmt.Errorf("lost: %s", strings.Join(lost, ", "))
	}
	return nil
}

// summary tells what the tour took and did.
func (t *tour) summary() string {
	left := takeInventory(t.env.Cloud()).since(t.found)
	return "\n" + timesTable(t.times) + "\n" +
		totals(len(t.seen), t.env.Cloud().History(), left) +
		apiCalls(t.env.Cloud().CallCounts())
}

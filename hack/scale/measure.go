// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	// lookInterval is the resolution of a phase's end.
	lookInterval = 50 * time.Millisecond
	// tellInterval is the interval of progress reports.
	tellInterval = 15 * time.Second
	// limit is the longest duration of a phase.
	limit = 30 * time.Minute
	// warmUp lets the sidecar finish its start. Machines created later are younger than its leadership by more than
	// clocks may differ.
	warmUp = 15 * time.Second
)

// The classes in machines.yaml, before and after the roll.
const (
	firstClass  = "scale-first"
	secondClass = "scale-second"
)

// phase is a change of the deployment and its goal.
type phase struct {
	name string
	// class is the class whose Running machines count.
	class string
	// change is a change of the MachineDeployment's spec.
	change string
	// goal is the number of machines and servers at the end. done reports whether the requested machines are
	// Running, or no others are left.
	goal int
	done func(counts) bool
}

// settled reports whether the phase is done and exactly goal machines and servers exist.
func (p phase) settled(c counts, servers int) bool {
	return p.done(c) && c.machines == p.goal && servers == p.goal
}

// phases returns the phases of a run of n machines, of which keep stay, with or without a roll.
func phases(n, keep int, roll bool) []phase {
	running := func(c counts) bool { return c.running >= n }
	all := []phase{
		{
			name: "up", class: firstClass, goal: n, done: running,
			change: fmt.Sprintf(`{"replicas":%d}`, n),
		},
		{
			name: "roll", class: secondClass, goal: n, done: running,
			change: fmt.Sprintf(`{"template":{"spec":{"class":{"name":%q}}}}`, secondClass),
		},
		{
			name: "down", class: secondClass, goal: keep,
			done:   func(c counts) bool { return c.machines == keep },
			change: fmt.Sprintf(`{"replicas":%d}`, keep),
		},
	}
	if !roll {
		all = slices.Delete(all, 1, 2)
	}
	return all
}

// measurement is a run in progress.
type measurement struct {
	env      *localenv.Env
	machines *machines
}

// measure runs all phases.
func measure(ctx context.Context, o options) ([]phaseResult, error) {
	env, err := localenv.Start(ctx, o.environment()...)
	if err != nil {
		return nil, err
	}
	defer env.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &measurement{env: env, machines: newMachines(time.Now)}
	if err := m.machines.watch(ctx, env.RESTConfig(), env.Namespace()); err != nil {
		return nil, err
	}
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	if err := env.ApplyFile(ctx, filepath.Join(root, "hack", "scale", "machines.yaml")); err != nil {
		return nil, err
	}
	select {
	case <-time.After(warmUp):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if o.faults > 0 && !o.instant {
		env.Cloud().Inject(iaasmock.Fault{Status: http.StatusServiceUnavailable, Probability: o.faults})
	}
	var results []phaseResult
	for _, p := range phases(o.machines, o.keep, o.roll) {
		taken, err := m.take(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		progress(fmt.Sprintf("%s: done after %.1fs, nothing left over after %.1fs", p.name, taken.took, taken.settled))
		results = append(results, *taken)
	}
	return results, nil
}

// take starts a phase, waits until it has settled and summarizes it.
func (m *measurement) take(ctx context.Context, p phase) (*phaseResult, error) {
	cloud := m.env.Cloud()
	history, before := cloud.History(), consumption(m.env)
	cloud.ResetCalls()
	progress(p.name)
	start := time.Now()
	// A merge patch of the deployment in machines.yaml.
	deployment := &v1alpha1.MachineDeployment{}
	deployment.Name, deployment.Namespace = "scale", m.env.Namespace()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, p.change))
	if err := m.env.Client().Patch(ctx, deployment, patch); err != nil {
		return nil, err
	}
	done, settled, err := m.await(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &phaseResult{
		name: p.name, took: done.Sub(start).Seconds(), settled: settled.Sub(start).Seconds(),
		usage: usageBetween(before, consumption(m.env), settled.Sub(start)),
	}
	now := cloud.History()
	r.serversCreated = now.ServersCreated - history.ServersCreated
	r.serversDeleted = now.ServersDeleted - history.ServersDeleted
	r.beforeServer, r.overBoot = waits(cloud.Servers(), m.machines.observation, start)
	// Up and roll count by servers created, down by servers deleted.
	r.calls = summarize(cloud.CallCounts(), cloud.Calls(), max(r.serversCreated, r.serversDeleted))
	return r, nil
}

// await returns when the phase was done and when it settled.
func (m *measurement) await(ctx context.Context, p phase) (done, settled time.Time, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("phase %s has not reached its number of machines and servers after %s", p.name, limit))
	defer cancel()
	look, tell := time.NewTicker(lookInterval), time.NewTicker(tellInterval)
	defer look.Stop()
	defer tell.Stop()
	for {
		c := m.machines.counts(p.class)
		select {
		case <-look.C:
			if done.IsZero() && p.done(c) {
				done = time.Now()
			}
			if !done.IsZero() && p.settled(c, len(m.env.Cloud().Servers())) {
				return done, time.Now(), nil
			}
		case <-tell.C:
			progress(fmt.Sprintf("%s: %d machines, %d of them Running with %s", p.name, c.machines, c.running, p.class))
		case <-ctx.Done():
			return done, settled, fmt.Errorf("%w: %+v, %d servers", context.Cause(ctx), c, len(m.env.Cloud().Servers()))
		case <-m.env.Done():
			return done, settled, m.env.Err()
		}
	}
}

// waits summarizes, for the servers created since start, how long their Machines waited for them, and how long
// ACTIVE servers waited until their Machines were Running.
func waits(
	servers []iaasmock.Server, observation func(machine string) observation, start time.Time,
) (beforeServer, overBoot spread) {
	var before, over []float64
	for _, server := range servers {
		s := observation(server.Name)
		if server.CreatedAt.Before(start) || server.LaunchedAt.IsZero() || s.running.IsZero() {
			continue
		}
		before = append(before, server.CreatedAt.Sub(s.seen).Seconds())
		over = append(over, s.running.Sub(server.LaunchedAt).Seconds())
	}
	return spreadOf(before), spreadOf(over)
}

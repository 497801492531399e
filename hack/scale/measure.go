// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// lookEvery is how exact the end of a phase is.
const lookEvery = 50 * time.Millisecond

// tellEvery is how often a person hears how far it is.
const tellEvery = 15 * time.Second

// collectEvery is often enough that the mock does not forget calls before.
const collectEvery = time.Second

// The sidecar has nothing to do for idleBefore until its memory is read (its start is over
// then, and Machines made later are younger than its leadership by more than clocks may
// differ), and then for idleFor: the most of that time counts.
const (
	idleBefore = 15 * time.Second
	idleFor    = 15 * time.Second
)

// phase is a change of the deployment and what it leads to.
type phase struct {
	name string
	// class is the one whose Running machines count.
	class string
	begin func(context.Context) error
	// done tells whether what was asked for is there, settled whether nothing
	// else is, with so many servers.
	done    func(counts) bool
	settled func(c counts, servers int) bool
}

// phases are those of a run of n machines, of which keep stay, with a roll or without.
func phases(d *deployment, n, keep int, roll bool) []phase {
	running := func(c counts) bool { return c.Running >= n }
	exactly := func(c counts, servers int) bool { return c == counts{Machines: n, Running: n} && servers == n }
	all := []phase{
		{
			name: "up", class: firstClass, done: running, settled: exactly,
			begin: func(ctx context.Context) error { return d.scale(ctx, n) },
		},
		{
			name: "roll", class: secondClass, done: running, settled: exactly,
			begin: func(ctx context.Context) error { return d.roll(ctx, secondClass) },
		},
		{
			name: "down", class: secondClass,
			begin:   func(ctx context.Context) error { return d.scale(ctx, keep) },
			done:    func(c counts) bool { return c.Machines == keep },
			settled: func(c counts, servers int) bool { return c.Machines == keep && servers == keep },
		},
	}
	if !roll {
		all = slices.Delete(all, 1, 2)
	}
	return all
}

// measurement is a run under way.
type measurement struct {
	options  options
	env      *localenv.Env
	machines *machines
	calls    callLog
	progress func(string)
}

// measure takes all phases.
func measure(ctx context.Context, o options, progress func(string)) (*result, error) {
	r := &result{Conditions: o.conditions(), Computer: thisComputer(), StartedAt: time.Now().UTC()}
	env, err := localenv.Start(ctx, o.environment(progress)...)
	if err != nil {
		return nil, err
	}
	defer env.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &measurement{options: o, env: env, machines: newMachines(time.Now), progress: progress}
	if err := m.machines.watch(ctx, env.RESTConfig(), env.Namespace()); err != nil {
		return nil, err
	}
	d, err := newDeployment(ctx, env, o)
	if err != nil {
		return nil, err
	}
	if r.SidecarReady, err = m.restart(ctx); err != nil {
		return nil, err
	}
	idle, err := m.idle(ctx)
	if err != nil {
		return nil, err
	}
	r.SidecarIdle, r.SidecarIdleAnonymous = idle.memory, idle.anonymous
	// What was called until now belongs to no phase.
	env.Cloud().ResetCalls()
	o.spoil(env.Cloud())
	for _, p := range phases(d, o.machines, o.keep, o.roll) {
		taken, err := m.take(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		progress(fmt.Sprintf("%s: done after %.1fs, settled after %.1fs", p.name, taken.Took, taken.Settled))
		r.Phases = append(r.Phases, *taken)
	}
	peak, err := readUsage(env.PID(localenv.PartSidecar))
	r.SidecarPeak = peak.peak
	if err == nil && m.calls.lost {
		err = errors.New("more API calls a second than the mock remembers: the figures would be wrong")
	}
	return r, err
}

// restart returns how long the sidecar takes from its start to answering on /healthz.
func (m *measurement) restart(ctx context.Context) (seconds, error) {
	m.env.KillSidecar()
	start := time.Now()
	err := m.env.StartSidecar(ctx)
	return toSeconds(time.Since(start)), err
}

// idle returns the most memory that the sidecar has while there is nothing to do.
func (m *measurement) idle(ctx context.Context) (most usage, err error) {
	m.progress(fmt.Sprintf("idle: %s", idleBefore+idleFor))
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for start := time.Now(); time.Since(start) < idleBefore+idleFor; {
		select {
		case <-ctx.Done():
			return usage{}, ctx.Err()
		case <-ticker.C:
		}
		now, err := readUsage(m.env.PID(localenv.PartSidecar))
		if err != nil {
			return usage{}, err
		}
		if time.Since(start) > idleBefore && now.memory > most.memory {
			most = now
		}
	}
	return most, nil
}

// take begins a phase, waits until it has settled and sums it up.
func (m *measurement) take(ctx context.Context, p phase) (*phaseResult, error) {
	cloud := m.env.Cloud()
	before, err := usages(m.env)
	if err != nil {
		return nil, err
	}
	history := cloud.History()
	m.progress(fmt.Sprintf("%s: %d machines", p.name, m.options.machines))
	m.machines.begin(p.class)
	start := time.Now()
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	done, settled, err := m.await(ctx, p)
	if err != nil {
		return nil, err
	}
	after, err := usages(m.env)
	if err != nil {
		return nil, err
	}
	now := cloud.History()
	r := &phaseResult{
		Name: p.name, Took: toSeconds(done.Sub(start)), Settled: toSeconds(settled.Sub(start)),
		ServersCreated: now.ServersCreated - history.ServersCreated,
		ServersDeleted: now.ServersDeleted - history.ServersDeleted,
		CPU:            cpuBetween(before, after),
		History:        thin(m.machines.since(), start),
	}
	r.BeforeServer, r.OverBoot = waits(cloud.Servers(), m.machines.sighting, start)
	m.calls.add(cloud.Calls())
	// Up and roll are about servers made, down is about servers deleted.
	r.Calls = summarize(m.calls.take(), start, max(r.ServersCreated, r.ServersDeleted))
	return r, nil
}

// await returns when the phase was done and when it had settled.
func (m *measurement) await(ctx context.Context, p phase) (done, settled time.Time, err error) {
	limit := time.NewTimer(m.options.limit)
	defer limit.Stop()
	look, collect, tell := time.NewTicker(lookEvery), time.NewTicker(collectEvery), time.NewTicker(tellEvery)
	defer look.Stop()
	defer collect.Stop()
	defer tell.Stop()
	for {
		select {
		case <-look.C:
			c := m.machines.counts()
			if done.IsZero() && p.done(c) {
				done = time.Now()
			}
			if !done.IsZero() && p.settled(c, len(m.env.Cloud().Servers())) {
				return done, time.Now(), nil
			}
		case <-collect.C:
			m.calls.add(m.env.Cloud().Calls())
		case <-tell.C:
			c := m.machines.counts()
			m.progress(fmt.Sprintf("%s: %d machines, %d of them Running with %s", p.name, c.Machines, c.Running, p.class))
		case <-ctx.Done():
			return done, settled, context.Cause(ctx)
		case <-m.env.Done():
			return done, settled, m.env.Err()
		case <-limit.C:
			return done, settled, fmt.Errorf("not settled after %s: %+v, %d servers", m.options.limit, m.machines.counts(), len(m.env.Cloud().Servers()))
		}
	}
}

// waits sums up, for the servers made since start, how long their Machines waited
// for them, and the servers, once ACTIVE, until their Machines were Running.
func waits(servers []iaasmock.Server, sighting func(machine string) (sighting, bool), start time.Time) (beforeServer, overBoot spread) {
	var before, over []seconds
	for _, server := range servers {
		s, found := sighting(server.Name)
		if !found || server.CreatedAt.Before(start) || server.LaunchedAt.IsZero() || s.running.IsZero() {
			continue
		}
		before = append(before, toSeconds(server.CreatedAt.Sub(s.seen)))
		over = append(over, toSeconds(s.running.Sub(server.LaunchedAt)))
	}
	return spreadOf(before), spreadOf(over)
}

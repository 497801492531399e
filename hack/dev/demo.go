// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// deployment is the MachineDeployment of the tour.
type deployment struct {
	env  *localenv.Env
	name string
}

func (d deployment) scale(ctx context.Context, replicas int32) error {
	return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = replicas })
}

// roll makes a class like the present one with another machine type, and lets
// the deployment use it.
func (d deployment) roll(ctx context.Context, from, to, machineType string) error {
	var class machinev1alpha1.MachineClass
	if err := d.env.Client().Get(ctx, client.ObjectKey{Namespace: d.env.Namespace(), Name: from}, &class); err != nil {
		return err
	}
	spec, err := withMachineType(class.ProviderSpec.Raw, machineType)
	if err != nil {
		return fmt.Errorf("providerSpec of %s: %w", from, err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Namespace: class.Namespace, Name: to}
	class.ProviderSpec.Raw = spec
	if err := d.env.Apply(ctx, &class); err != nil {
		return err
	}
	return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Class.Name = to })
}

func withMachineType(providerSpec []byte, machineType string) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(providerSpec, &fields); err != nil {
		return nil, err
	}
	fields["machineType"] = machineType
	return json.Marshal(fields)
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

// running answers nil when there are want machines, all Running, all of this
// class, with an ACTIVE server and a Ready Node each, and nothing else.
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
	return fmt.Errorf("%d of %d machines are Running with an ACTIVE server and a Ready node (there are %d machines, %d servers, %d nodes)",
		good, want, len(s.machines), len(s.servers), len(s.nodes))
}

// inventory is what a cloud holds, as descriptions by ID.
type inventory map[string]string

func takeInventory(cloud *iaasmock.Cloud) inventory {
	held := inventory{}
	for _, server := range cloud.Servers() {
		held[server.ID] = fmt.Sprintf("server %s (%s, %s)", server.ID, server.Name, server.Status)
	}
	for _, nic := range cloud.NICs() {
		held[nic.ID] = fmt.Sprintf("NIC %s (%s%s)", nic.ID, nic.IPv4, attachment(nic.ServerID))
	}
	for _, volume := range cloud.Volumes() {
		held[volume.ID] = fmt.Sprintf("volume %s (%d GB%s)", volume.ID, volume.Size, attachment(volume.ServerID))
	}
	return held
}

func attachment(serverID string) string {
	if serverID == "" {
		return ""
	}
	return ", attached to " + serverID
}

// since returns what is held now and was not, or was otherwise, before; sorted.
func (now inventory) since(before inventory) []string {
	var added []string
	for id, description := range now {
		if before[id] != description {
			added = append(added, description)
		}
	}
	slices.Sort(added)
	return added
}

// lostSince returns what was held before and no longer is, sorted.
func (now inventory) lostSince(before inventory) []string {
	var lost []string
	for id, description := range before {
		if _, held := now[id]; !held {
			lost = append(lost, description)
		}
	}
	slices.Sort(lost)
	return lost
}

func timesTable(times []stepTime) string {
	var text strings.Builder
	var sum time.Duration
	for _, step := range times {
		limit := ""
		if step.limit > 0 {
			limit = fmt.Sprintf(" (limit %.0f s)", step.limit.Seconds())
		}
		sum += step.took
		_, _ = fmt.Fprintf(&text, "%7.1f s  %s%s\n", step.took.Seconds(), step.title, limit)
	}
	_, _ = fmt.Fprintf(&text, "%7.1f s  in all\n", sum.Seconds())
	return text.String()
}

func totals(machines int, history iaasmock.Totals, left []string) string {
	kinds := map[string]int{}
	for _, description := range left {
		kind, _, _ := strings.Cut(description, " ")
		kinds[kind]++
	}
	return fmt.Sprintf("Machines: %d\nServers:  %d created, %d deleted\nLeft:     servers: %d, NICs: %d, volumes: %d\n",
		machines, history.ServersCreated, history.ServersDeleted, kinds["server"], kinds["NIC"], kinds["volume"])
}

// apiCalls lists calls by kind, the most frequent first.
func apiCalls(counts map[string]int) string {
	sum := 0
	for _, count := range counts {
		sum += count
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "API calls: %d\n", sum)
	for _, name := range names {
		_, _ = fmt.Fprintf(&text, "  %6d %s\n", counts[name], name)
	}
	return text.String()
}

// stepTime is how long a step took.
type stepTime struct {
	title       string
	took, limit time.Duration
}

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

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	// stepLimit limits a step to several times its usual duration: the manager itself waits for fixed times (25 s to
	// delete a machine), and the computer may be slow.
	stepLimit = 5 * time.Minute
	// lookEvery is the interval at which the state is read.
	lookEvery = 300 * time.Millisecond
)

// step is one stage of the tour: a change, and the goal that ends it.
type step struct {
	title string
	begin func(context.Context) error
	want  int
	class string
}

// demo runs the tour. It fails if a step is late or anything is left at the end.
func demo(ctx context.Context, out *output) error {
	env, err := start(ctx, out, 2*time.Second, time.Second)
	if err != nil {
		return err
	}
	defer stop(env, out)
	before, err := look(ctx, env)
	if err != nil {
		return err
	}
	for i, step := range steps(env) {
		_, _ = fmt.Fprintf(out, "\n%d. %s\n", i+1, step.title)
		begun := time.Now()
		if err := take(ctx, env, step); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
		out.progress(fmt.Sprintf("done after %s", time.Since(begun).Round(100*time.Millisecond)))
	}
	now, err := look(ctx, env)
	if err != nil {
		return err
	}
	history, counts := env.Cloud().History(), env.Cloud().CallCounts()
	_, _ = fmt.Fprintf(out, "\nServers: %d created, %d deleted\nAPI calls:\n",
		history.ServersCreated, history.ServersDeleted)
	for _, operation := range slices.Sorted(maps.Keys(counts)) {
		_, _ = fmt.Fprintf(out, "  %6d %s\n", counts[operation], operation)
	}
	return compare(before, now)
}

// compare returns an error that names what is left over, and what was there before and is missing.
func compare(before, now state) error {
	if left := now.inventory().Difference(before.inventory()); len(left) > 0 {
		return fmt.Errorf("left over: %s", strings.Join(sets.List(left), ", "))
	}
	if lost := before.inventory().Difference(now.inventory()); len(lost) > 0 {
		return fmt.Errorf("missing since the tour began: %s", strings.Join(sets.List(lost), ", "))
	}
	return nil
}

func steps(env *localenv.Env) []step {
	const minimal, other = "stackit-worker-minimal", "stackit-worker"
	change := func(change func(*v1alpha1.MachineDeployment)) func(context.Context) error {
		return func(ctx context.Context) error {
			deployment := &v1alpha1.MachineDeployment{}
			key := client.ObjectKey{Namespace: env.Namespace(), Name: "worker"}
			if err := env.Client().Get(ctx, key, deployment); err != nil {
				return err
			}
			before := client.MergeFrom(deployment.DeepCopy())
			change(deployment)
			return env.Client().Patch(ctx, deployment, before)
		}
	}
	scale := func(replicas int32) func(context.Context) error {
		return change(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = replicas })
	}
	return []step{
		{"Apply samples/: 3 machines come up", func(ctx context.Context) error { return applySamples(ctx, env) }, 3, minimal},
		{"Scale to 5", scale(5), 5, minimal},
		{"Roll to the other MachineClass of samples/",
			change(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = other }), 5, other},
		{"Scale to 0", scale(0), 0, ""},
	}
}

// take starts a step and waits until its goal is reached.
func take(ctx context.Context, env *localenv.Env, step step) error {
	if err := step.begin(ctx); err != nil {
		return err
	}
	late := time.After(stepLimit)
	for {
		now, err := look(ctx, env)
		if err != nil {
			return err
		}
		missing := now.running(step.want, step.class)
		if missing == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-env.Done():
			return env.Err()
		case <-late:
			return fmt.Errorf("timed out after %s: %w", stepLimit, missing)
		case <-time.After(lookEvery):
		}
	}
}

// state is a snapshot of the cluster and the cloud.
type state struct {
	machines []v1alpha1.Machine
	nodes    []corev1.Node
	servers  []iaasmock.Server
	nics     []iaasmock.NIC
	volumes  []iaasmock.Volume
}

// look reads the state of an environment.
func look(ctx context.Context, env *localenv.Env) (state, error) {
	var machines v1alpha1.MachineList
	var nodes corev1.NodeList
	if err := env.Client().List(ctx, &machines, client.InNamespace(env.Namespace())); err != nil {
		return state{}, err
	}
	err := env.Client().List(ctx, &nodes)
	cloud := env.Cloud()
	return state{machines.Items, nodes.Items, cloud.Servers(), cloud.NICs(), cloud.Volumes()}, err
}

// running returns nil when there are want machines, all Running, all of this class, each with an ACTIVE server and
// a Ready Node, and nothing else.
func (s state) running(want int, class string) error {
	active, ready, good := sets.New[string](), s.readyNodes(), 0
	for _, server := range s.servers {
		if server.Status == iaasmock.StatusActive {
			active.Insert("stackit://" + server.ProjectID + "/" + server.ID)
		}
	}
	for i := range s.machines {
		machine := &s.machines[i]
		if machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && machine.Spec.Class.Name == class &&
			active.Has(machine.Spec.ProviderID) && ready.Has(machine.Name) {
			good++
		}
	}
	if good == want && len(s.machines) == want && len(s.servers) == want && len(s.nodes) == want {
		return nil
	}
	return fmt.Errorf("%d of %d machines are Running with an ACTIVE server and a Ready node "+
		"(there are %d machines, %d servers, %d nodes)", good, want, len(s.machines), len(s.servers), len(s.nodes))
}

// readyNodes returns the names of the Ready Nodes.
func (s state) readyNodes() sets.Set[string] {
	ready := sets.New[string]()
	for _, node := range s.nodes {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready.Insert(node.Name)
			}
		}
	}
	return ready
}

// inventory describes all resources.
func (s state) inventory() sets.Set[string] {
	all := sets.New[string]()
	for i := range s.machines {
		all.Insert("machine " + s.machines[i].Name)
	}
	for i := range s.nodes {
		all.Insert("node " + s.nodes[i].Name)
	}
	for _, server := range s.servers {
		all.Insert(fmt.Sprintf("server %s (%s, %s)", server.ID, server.Name, server.Status))
	}
	for _, nic := range s.nics {
		all.Insert(fmt.Sprintf("NIC %s of server %q", nic.ID, nic.ServerID))
	}
	for _, volume := range s.volumes {
		all.Insert(fmt.Sprintf("volume %s of server %q", volume.ID, volume.ServerID))
	}
	return all
}

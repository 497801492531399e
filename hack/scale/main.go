// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures how long a MachineDeployment takes to scale up and down, and how many IaaS API calls this
// needs: once with this driver, and once with one that answers at once, on a local environment with the limits that
// Gardener sets. It prints both side by side.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// program is the name of this program in bin/localenv, from where the environment runs it as the driver that answers
// at once.
const program = "scale"

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--control-kubeconfig=") {
		runInstant()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	count := pflag.Int("machines", 200, "number of machines to scale up to, and down from")
	pflag.Parse()
	if err := compare(ctx, *count); err != nil {
		fmt.Fprintln(os.Stderr, "Failed:", err)
		os.Exit(1)
	}
}

// compare measures both drivers and prints a table.
func compare(ctx context.Context, count int) error {
	ours, err := measure(ctx, count, localenv.WithCloudOptions(
		iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond)))
	if err != nil {
		return fmt.Errorf("this driver: %w", err)
	}
	instant, err := measure(ctx, count, localenv.WithSidecarProgram(program),
		localenv.WithCloudOptions(iaasmock.WithoutAuthentication()))
	if err != nil {
		return fmt.Errorf("the driver that answers at once: %w", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "\n%d machines\tthis driver\tanswers at once\tratio\t\n", count)
	for i, phase := range []string{"up", "down"} {
		a, b := ours[i], instant[i]
		_, _ = fmt.Fprintf(table, "%s\t%.1f s\t%.1f s\t%.2f\t\n", phase, a.took.Seconds(), b.took.Seconds(),
			a.took.Seconds()/b.took.Seconds())
		_, _ = fmt.Fprintf(table, "%s, calls a machine\t%.2f\t%.2f\t\t\n", phase, a.callsPerMachine(count),
			b.callsPerMachine(count))
		for _, operation := range slices.Sorted(maps.Keys(a.calls)) {
			_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t\t\n", operation, a.calls[operation], b.calls[operation])
		}
	}
	return table.Flush()
}

// phase is what scaling up or down took.
type phase struct {
	// took is the time until all Machines were Running, or all Machines and servers were gone.
	took time.Duration
	// calls are the API calls by operation, without those for tokens.
	calls map[string]int
}

func (p phase) callsPerMachine(count int) float64 {
	sum := 0
	for _, calls := range p.calls {
		sum += calls
	}
	return float64(sum) / float64(count)
}

const (
	// warmUp lets the sidecar finish its start: Machines created later are younger than its leadership by more than
	// clocks may differ.
	warmUp = 15 * time.Second
	// interval is the resolution of a phase's end.
	interval = 250 * time.Millisecond
	// limit is the longest duration of a phase.
	limit = 30 * time.Minute
)

// measure scales up and down in an environment of its own.
func measure(ctx context.Context, count int, options ...localenv.Option) ([]phase, error) {
	env, err := localenv.Start(ctx, append(options,
		localenv.WithProgress(func(line string) { fmt.Println(line) }),
		localenv.WithSidecarArgs("--concurrent-syncs=500"), // this driver's default, for both
		localenv.WithCloudOptions(iaasmock.WithSeed(1), iaasmock.WithBootDuration(20*time.Second),
			iaasmock.WithDeleteDuration(5*time.Second)))...)
	if err != nil {
		return nil, err
	}
	defer env.Stop()
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
	var phases []phase
	for _, replicas := range []int{count, 0} {
		fmt.Printf("scaling to %d\n", replicas)
		taken, err := scale(ctx, env, replicas)
		if err != nil {
			return nil, fmt.Errorf("scaling to %d: %w", replicas, err)
		}
		fmt.Printf("done after %.1f s\n", taken.took.Seconds())
		phases = append(phases, taken)
	}
	return phases, nil
}

// scale sets the replicas, and waits until that many Machines are Running and nothing else is left.
func scale(ctx context.Context, env *localenv.Env, replicas int) (phase, error) {
	env.Cloud().ResetCalls()
	start := time.Now()
	deployment := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "scale", Namespace: env.Namespace()}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := env.Client().Patch(ctx, deployment, patch); err != nil {
		return phase{}, err
	}
	late := time.After(limit)
	for {
		machines, running, err := count(ctx, env)
		if err != nil {
			return phase{}, err
		}
		servers := len(env.Cloud().Servers())
		if machines == replicas && running == replicas && servers == replicas {
			break
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return phase{}, context.Cause(ctx)
		case <-env.Done():
			return phase{}, env.Err()
		case <-late:
			return phase{}, fmt.Errorf("after %s there are %d Machines, %d Running, and %d servers", limit, machines, running,
				servers)
		}
	}
	taken := phase{took: time.Since(start), calls: env.Cloud().CallCounts()}
	delete(taken.calls, "Token")
	return taken, nil
}

// count returns the numbers of all Machines, and of those that are Running. It reads from the API server's cache: the
// control plane is part of what is measured.
func count(ctx context.Context, env *localenv.Env) (all, running int, err error) {
	var machines v1alpha1.MachineList
	err = env.Client().List(ctx, &machines, client.InNamespace(env.Namespace()),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	for i := range machines.Items {
		if machines.Items[i].Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			running++
		}
	}
	return len(machines.Items), running, err
}

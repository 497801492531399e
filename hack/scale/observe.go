// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// counts are the numbers of all Machines, and of one class's Machines that are Running and not being deleted.
type counts struct{ machines, running int }

// observation is a watch's view of a Machine, whose own timestamps have whole seconds only.
type observation struct {
	class string
	// seen is when it first existed, running when it was first Running.
	seen, running time.Time
	exists, up    bool
}

// machines follows a cluster's Machines by a watch: polling would take resources from the control plane that is
// measured.
type machines struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]observation
}

func newMachines(now func() time.Time) *machines {
	return &machines{now: now, all: map[string]observation{}}
}

// watch starts to follow the Machines of a namespace, until ctx ends.
func (m *machines) watch(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(namespace))
	informer := factory.Machine().V1alpha1().Machines().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { m.observe(object, true) },
		UpdateFunc: func(_, object any) { m.observe(object, true) },
		DeleteFunc: func(object any) { m.observe(object, false) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return errors.Join(errors.New("watching the Machines failed"), context.Cause(ctx))
	}
	return nil
}

func (m *machines) observe(object any, exists bool) {
	if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = last.Obj
	}
	machine, isMachine := object.(*v1alpha1.Machine)
	if !isMachine {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[machine.Name]
	if s.seen.IsZero() {
		s.seen = m.now()
	}
	s.class, s.exists = machine.Spec.Class.Name, exists
	s.up = exists && machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && machine.DeletionTimestamp == nil
	if s.up && s.running.IsZero() {
		s.running = m.now()
	}
	m.all[machine.Name] = s
}

func (m *machines) counts(class string) (c counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.all {
		if s.exists {
			c.machines++
		}
		if s.up && s.class == class {
			c.running++
		}
	}
	return c
}

// observation returns a Machine's observation, also if it is gone; an empty one if unknown.
func (m *machines) observation(name string) observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[name]
}

// callSummary summarizes the IaaS API calls of a phase. Calls answered with 503 count, and so do their retries.
type callSummary struct {
	// perServer and byOperation are calls for each server created or deleted in the phase.
	perServer   float64
	byOperation map[string]float64
	// readsPeak is the number of reads in the busiest second, wherever it begins: GETs of lists and of single
	// resources.
	readsPeak int
}

// summarize summarizes the calls of a phase with this number of servers. counts covers all calls; the mock keeps
// only the last 20,000 individually.
func summarize(counts map[string]int, calls []iaasmock.Call, servers int) callSummary {
	s := callSummary{byOperation: map[string]float64{}}
	for operation, count := range counts {
		if operation != fault.OperationToken {
			s.byOperation[operation] = float64(count) / float64(max(servers, 1))
			s.perServer += s.byOperation[operation]
		}
	}
	var reads []time.Time
	for _, call := range calls {
		if call.Method == http.MethodGet {
			reads = append(reads, call.StartedAt)
		}
	}
	s.readsPeak = peak(reads)
	return s
}

// peak returns the largest number of the times within any second. A second includes its start and not its
// end.
func peak(times []time.Time) int {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for last, t := range sorted {
		for t.Sub(sorted[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// usage is a controller's resource usage in a phase.
type usage struct {
	// cores is its CPU time divided by the phase's length, peakMiB its peak memory since its start.
	cores, peakMiB float64
}

// consumed is a process's resource usage since its start.
type consumed struct {
	cpu  float64 // seconds
	peak uint64  // bytes
}

// consumption returns the resource usage of both controllers; empty on systems without /proc.
func consumption(env *localenv.Env) map[localenv.Part]consumed {
	all := map[localenv.Part]consumed{}
	for _, part := range env.Controllers() {
		process, err := procfs.NewProc(env.PID(part))
		if err != nil {
			return nil
		}
		stat, err := process.Stat()
		status, problem := process.NewStatus()
		if err != nil || problem != nil {
			return nil
		}
		all[part] = consumed{cpu: stat.CPUTime(), peak: status.VmHWM}
	}
	return all
}

// usageBetween returns each controller's usage in a phase.
func usageBetween(before, after map[localenv.Part]consumed, took time.Duration) map[localenv.Part]usage {
	used := map[localenv.Part]usage{}
	for part, end := range after {
		used[part] = usage{
			cores: (end.cpu - before[part].cpu) / took.Seconds(), peakMiB: float64(end.peak) / (1 << 20),
		}
	}
	return used
}

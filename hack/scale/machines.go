// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// counts are how many Machines there are, and how many of one class are Running and not
// being deleted.
type counts struct{ machines, running int }

// observation is what a watch showed of a Machine, whose own timestamps have whole seconds only.
type observation struct {
	class string
	// seen and running are when it was there first, and Running first.
	seen, running time.Time
	exists, up    bool
}

// machines follows the Machines of a cluster by a watch: reading them again and
// again would take from the control plane what is to be measured.
type machines struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]observation
}

func newMachines(now func() time.Time) *machines {
	return &machines{now: now, all: map[string]observation{}}
}

// watch begins to follow the Machines of a namespace, until ctx ends.
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
		return errors.Join(errors.New("the Machines cannot be watched"), context.Cause(ctx))
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

// observation returns that of a Machine, also if it is gone; an empty one if there was none.
func (m *machines) observation(name string) observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[name]
}

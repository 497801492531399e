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

// counts says how many Machines there are, and how many of the class in question
// are Running and not being deleted.
type counts struct {
	Machines int `json:"machines"`
	Running  int `json:"running"`
}

// change is what the counts became at a time.
type change struct {
	at time.Time
	counts
}

// sighting is what was seen of a Machine by watching it. Its own timestamps have
// whole seconds only.
type sighting struct {
	class string
	// seen and running are when it was there first, and Running first.
	seen, running time.Time
	up            bool
}

// machines follows the Machines of a cluster by a watch: reading them again and
// again would take from the control plane what is to be measured.
type machines struct {
	now func() time.Time

	mu    sync.Mutex
	class string
	// all are those that exist, gone those that did.
	all, gone map[string]sighting
	history   []change
}

func newMachines(now func() time.Time) *machines {
	return &machines{now: now, all: map[string]sighting{}, gone: map[string]sighting{}}
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
		AddFunc:    func(object any) { m.observe(object, false) },
		UpdateFunc: func(_, object any) { m.observe(object, false) },
		DeleteFunc: func(object any) { m.observe(object, true) },
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

func (m *machines) observe(object any, gone bool) {
	if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = last.Obj
	}
	machine, isMachine := object.(*v1alpha1.Machine)
	if !isMachine {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	s, known := m.all[machine.Name]
	if !known {
		s.seen = now
	}
	s.class = machine.Spec.Class.Name
	s.up = machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && machine.DeletionTimestamp == nil
	if s.up && s.running.IsZero() {
		s.running = now
	}
	if gone {
		delete(m.all, machine.Name)
		m.gone[machine.Name] = s
	} else {
		m.all[machine.Name] = s
	}
	m.note(now)
}

// begin starts a new history, counting Machines of this class as Running.
func (m *machines) begin(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.class, m.history = class, nil
	m.note(m.now())
}

// note adds to the history if the counts have changed. Call it with mu held.
func (m *machines) note(now time.Time) {
	c := counts{Machines: len(m.all)}
	for _, s := range m.all {
		if s.up && s.class == m.class {
			c.Running++
		}
	}
	if last := len(m.history) - 1; last < 0 || m.history[last].counts != c {
		m.history = append(m.history, change{at: now, counts: c})
	}
}

// counts returns the present ones.
func (m *machines) counts() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.history) == 0 {
		return counts{}
	}
	return m.history[len(m.history)-1].counts
}

// since returns how the counts changed since begin.
func (m *machines) since() []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]change(nil), m.history...)
}

// sighting returns what was seen of a Machine, also if it is gone.
func (m *machines) sighting(name string) (sighting, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, found := m.all[name]; found {
		return s, true
	}
	s, found := m.gone[name]
	return s, found
}

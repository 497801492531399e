// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// apiServer keeps a cluster's Machines with all their versions, and refuses writes
// that are based on an older one.
type apiServer struct {
	// cluster is its cluster's name.
	cluster string
	clock   clock.Clock
	// timeout is the creation timeout of Machines; 0 is the manager's.
	timeout time.Duration
	// skew is by how much its clock is ahead of that of the manager.
	skew time.Duration

	mu       sync.Mutex
	machines map[string]*record
	made     int
}

// record is a Machine from its creation until its finalizer goes.
type record struct {
	versions []*v1alpha1.Machine
	gone     bool
	// observers are the caches of the processes that take care of it.
	observers []*observer
}

// observer is what the cache of a process shows of a Machine.
type observer struct {
	record *record
	// seen is the newest version that it has shown.
	seen int
	// woken interrupts the manager's wait for the next reconcile.
	woken chan struct{}
}

// snapshot is which version of each Machine there was at a time.
type snapshot map[*record]int

func newAPIServer(cluster string, clock clock.Clock, skew, timeout time.Duration) *apiServer {
	return &apiServer{cluster: cluster, clock: clock, skew: skew, timeout: timeout, machines: map[string]*record{}}
}

func (r *record) latest() *v1alpha1.Machine { return r.versions[len(r.versions)-1] }

// create makes a Machine, as change makes it; false if there is one of that name.
func (a *apiServer) create(name, class string, change func(*v1alpha1.Machine)) (*record, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, exists := a.machines[name]; exists {
		return nil, false
	}
	a.made++
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "simulated", UID: types.UID(fmt.Sprintf("uid-%d", a.made)),
			CreationTimestamp: a.now(), ResourceVersion: "1",
		},
		Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
	}
	if a.timeout > 0 {
		machine.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: a.timeout}}
	}
	change(machine)
	created := &record{versions: []*v1alpha1.Machine{machine}}
	a.machines[name] = created
	return created, true
}

// now is the time that it writes down, in whole seconds.
func (a *apiServer) now() metav1.Time {
	return metav1.NewTime(a.clock.Now().Add(a.skew).Truncate(time.Second))
}

// update writes a change to the version that base is; false is a conflict.
func (a *apiServer) update(r *record, base *v1alpha1.Machine, change func(*v1alpha1.Machine)) (*v1alpha1.Machine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.gone || base.ResourceVersion != r.latest().ResourceVersion {
		return nil, false
	}
	return a.write(r, change), true
}

func (*apiServer) write(r *record, change func(*v1alpha1.Machine)) *v1alpha1.Machine {
	machine := r.latest().DeepCopy()
	change(machine)
	machine.ResourceVersion = fmt.Sprint(len(r.versions) + 1)
	r.versions = append(r.versions, machine)
	return machine
}

// markDeleted sets the deletionTimestamp, as a user's delete does.
func (a *apiServer) markDeleted(r *record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !r.gone && r.latest().DeletionTimestamp == nil {
		now := a.now()
		a.write(r, func(m *v1alpha1.Machine) { m.DeletionTimestamp = &now })
		r.wake()
	}
}

// edit writes what somebody else than the manager changes in a Machine.
func (a *apiServer) edit(r *record, change func(*v1alpha1.Machine)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !r.gone {
		a.write(r, change)
		r.wake()
	}
}

// wake lets those that take care of the Machine look at it.
func (r *record) wake() {
	for _, o := range r.observers {
		select {
		case o.woken <- struct{}{}:
		default:
		}
	}
}

// finalize ends the Machine; false is a conflict.
func (a *apiServer) finalize(r *record, base *v1alpha1.Machine) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.gone || base.ResourceVersion != r.latest().ResourceVersion {
		return false
	}
	r.gone = true
	delete(a.machines, base.Name)
	return true
}

// drop ends the Machine without its deletion, as a user does who removes its finalizer. It
// makes another of its name at once.
func (a *apiServer) drop(r *record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.gone = true
	delete(a.machines, r.latest().Name)
}

// current returns the Machine of that name as it is, or was in the past if there is
// one; nil if there is none.
func (a *apiServer) current(name string, past snapshot) *v1alpha1.Machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	for r, version := range past {
		if m := r.versions[version]; m.Name == name {
			return m
		}
	}
	if found, ok := a.machines[name]; ok && past == nil {
		return found.latest()
	}
	return nil
}

// all returns the records that exist.
func (a *apiServer) all() []*record {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*record
	for _, r := range a.machines {
		all = append(all, r)
	}
	return all
}

// latestOf returns the newest version; false if the Machine is gone.
func (a *apiServer) latestOf(r *record) (*v1alpha1.Machine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return r.latest(), !r.gone
}

// observe is what a process does that begins: it reads what there is.
func (a *apiServer) observe(r *record) *observer {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := &observer{record: r, seen: len(r.versions) - 1, woken: make(chan struct{}, 1)}
	r.observers = append(r.observers, o)
	return o
}

// cached returns what the cache of a process shows: a version that may be back by
// that many, but never older than one that it has shown before. One that remembers
// a past shows none that came later, and no Machine (nil) that was made later. It is
// false once it shows that the Machine is gone.
func (a *apiServer) cached(o *observer, back int, past snapshot) (*v1alpha1.Machine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	newest, exists := len(o.record.versions)-1, !o.record.gone
	if past != nil {
		if newest, exists = past[o.record]; !exists {
			return nil, true
		}
	}
	if !exists {
		return nil, false
	}
	o.seen = max(o.seen, newest-back)
	return o.record.versions[o.seen], true
}

// snapshot is what there is now.
func (a *apiServer) snapshot() snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	present := snapshot{}
	for _, r := range a.machines {
		present[r] = len(r.versions) - 1
	}
	return present
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"sync"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// apiServer keeps a cluster's Machines with all their versions, and refuses writes
// that are based on an older one.
type apiServer struct {
	clock clock.Clock

	mu       sync.Mutex
	machines map[string]*record
	made     int
}

// record is a Machine from its creation until its finalizer goes.
type record struct {
	versions []*v1alpha1.Machine
	// seen is the newest version that the manager's cache has shown.
	seen int
	gone bool
	// wake interrupts the manager's wait for the next reconcile.
	wake chan struct{}
}

func newAPIServer(clock clock.Clock) *apiServer {
	return &apiServer{clock: clock, machines: map[string]*record{}}
}

func (r *record) latest() *v1alpha1.Machine { return r.versions[len(r.versions)-1] }

// create makes a Machine; false if there is one of that name.
func (a *apiServer) create(name, class string) (*record, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, exists := a.machines[name]; exists {
		return nil, false
	}
	a.made++
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "simulated", UID: types.UID(fmt.Sprintf("uid-%d", a.made)),
			CreationTimestamp: metav1.NewTime(a.clock.Now().Truncate(1e9)), ResourceVersion: "1",
		},
		Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
	}
	created := &record{versions: []*v1alpha1.Machine{machine}, wake: make(chan struct{}, 1)}
	a.machines[name] = created
	return created, true
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
	if r.gone || r.latest().DeletionTimestamp != nil {
		return
	}
	now := metav1.NewTime(a.clock.Now().Truncate(1e9))
	a.write(r, func(m *v1alpha1.Machine) { m.DeletionTimestamp = &now })
	select {
	case r.wake <- struct{}{}:
	default:
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

// current returns the Machine of that name as it is; nil if there is none.
func (a *apiServer) current(name string) *v1alpha1.Machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.machines[name]; ok {
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

// cached returns what the manager's cache shows: a version that may be back by
// that many, but never older than one that it has shown before.
func (a *apiServer) cached(r *record, back int) (*v1alpha1.Machine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.gone {
		return nil, false
	}
	r.seen = max(r.seen, len(r.versions)-1-back)
	return r.versions[r.seen], true
}

// refresh is what a new process does: it reads everything.
func (a *apiServer) refresh() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.machines {
		r.seen = len(r.versions) - 1
	}
}

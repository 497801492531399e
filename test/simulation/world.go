// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// world is what all parts of a run share: the plan, the cloud, and what was seen.
type world struct {
	plan     *Plan
	injector injector
	clock    clock.Clock
	start    time.Time
	cloud    *iaasmock.Cloud
	trace    *trace
	// ctx ends with the run.
	ctx context.Context
	// apis are the clusters' API servers.
	apis    []*apiServer
	foreign foreign
	// openStack are the Machines that came from there.
	openStack []*openStackMachine
	// disturbed says that something may go wrong.
	disturbed bool
	// fences are those of all processes.
	fences  sync.WaitGroup
	spawned sync.WaitGroup
	// edits are those by hand that have yet to be taken back.
	edits sync.WaitGroup
	late  sync.WaitGroup

	mu      sync.Mutex
	calls   int
	answers int
	repeats map[string]int
	// begun is when the requests of each cluster were made.
	begun      map[string][]time.Duration
	violations []string
	reported   map[string]bool
	// causes are the troubles that were met.
	causes map[string]*trouble
	// abandoned are the servers whose Machine is gone by a user's doing. They stay until an
	// orphan run.
	abandoned map[string]bool
	// posts are the numbers of the latest CreateServer calls elsewhere, see elsewhere.go.
	posts map[owner]int
	// lives is how many Machines there ever were.
	lives int
}

// newWorld makes the cloud and the clusters' API servers. Its time is the bubble's.
func newWorld(plan *Plan, f injector, keys [][]byte) *world {
	w := &world{
		plan: plan, injector: f, clock: clock.RealClock{}, trace: newTrace(),
		repeats: map[string]int{}, begun: map[string][]time.Duration{}, reported: map[string]bool{}, causes: map[string]*trouble{},
		abandoned: map[string]bool{}, posts: map[owner]int{},
	}
	w.start = w.clock.Now()
	options := []iaasmock.Option{
		iaasmock.WithBootDuration(plan.Boot), iaasmock.WithDeleteDuration(plan.Deletion),
		iaasmock.WithSeed(plan.Seed), iaasmock.WithAddressDelay(plan.AddressDelay), iaasmock.WithReleaseDuration(plan.Release),
	}
	if plan.Replicas {
		options = append(options, iaasmock.WithListReplicas(0, plan.ListLag/3, plan.ListLag))
	} else {
		options = append(options, iaasmock.WithListLag(plan.ListLag))
	}
	if plan.NullLists {
		options = append(options, iaasmock.WithNullLists())
	}
	if plan.ServerLabels {
		options = append(options, iaasmock.WithServerLabels())
	}
	w.cloud = iaasmock.New(options...)
	for i, key := range keys {
		if err := w.cloud.RegisterServiceAccountKey(projectOfKey(i), key); err != nil {
			panic(err)
		}
	}
	for i := range plan.Clusters {
		w.apis = append(w.apis, newAPIServer(fmt.Sprintf("shoot-%c", 'a'+i), w.clock, plan.Skew, plan.CreationTimeout))
	}
	return w
}

// machine returns the Machine; nil if there is none.
func (w *world) machine(who owner) *v1alpha1.Machine {
	for _, api := range w.apis {
		if api.cluster == who.cluster {
			return api.current(who.machine, nil)
		}
	}
	return nil
}

// log adds to the trace.
func (w *world) log(format string, args ...any) {
	w.trace.add(w.clock.Since(w.start), fmt.Sprintf(format, args...))
}

// violated notes what must not be, once.
func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log("VIOLATION %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reported[text] {
		w.reported[text] = true
		w.violations = append(w.violations, text)
	}
}

func (w *world) met(t *trouble) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.causes[t.name] = t
}

// sleep is false once the run is over.
func (w *world) sleep(d time.Duration) bool {
	return spi.Sleep(w.ctx, w.clock, d) == nil
}

func (w *world) spawn(f func()) { w.spawned.Go(f) }

// await looks every few seconds whether something has come about.
func (w *world) await(limit time.Duration, done func() bool) bool {
	for deadline := w.clock.Now().Add(limit); !done(); {
		if !w.clock.Now().Before(deadline) || !w.sleep(5*time.Second) {
			return false
		}
	}
	return true
}

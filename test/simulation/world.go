// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// world is shared by all parts of a run: the plan, the cloud, and the observations.
type world struct {
	plan  *Plan
	clock *spreadClock
	start time.Time
	cloud *iaasmock.Cloud
	trace *trace
	// ctx ends with the run.
	ctx      context.Context
	clusters []*cluster
	foreign  foreign
	// openStack are the Machines that came from OpenStack.
	openStack []*openStackMachine
	// disturbed means that faults may occur.
	disturbed bool
	// fences counts the running fences of all processes.
	fences  sync.WaitGroup
	spawned sync.WaitGroup
	late    sync.WaitGroup

	mu sync.Mutex
	// faultsOver is set at the end of the faults.
	faultsOver bool
	// calls is the number of API calls.
	calls int
	// operations are the operations called, in order; counts has their number for each cluster.
	operations []string
	counts     map[string]int
	// staleUntil is when each cluster's cache is up to date again.
	staleUntil map[string]time.Time
	repeats    map[string]int
	// begun are the times of each cluster's requests, since the start.
	begun      map[string][]time.Duration
	violations []string
	reported   map[string]bool
	// causes are the troubles that occurred.
	causes map[string]*trouble
	// exhausted is when each Machine first got ResourceExhausted. The manager then rests for ten minutes: a Machine
	// that gets the code again afterwards is too old at the third attempt (outlived).
	exhausted map[types.UID]time.Time
	outlived  map[types.UID]bool
	// lives is the number of Machines ever created.
	lives int
}

// newWorld makes the cloud, which uses the bubble's time, the clusters, each with a leading process, and the
// resources of other owners.
func newWorld(plan *Plan) *world {
	w := &world{
		plan: plan, clock: newSpreadClock(), trace: newTrace(), disturbed: !plan.calm(),
		counts: map[string]int{}, staleUntil: map[string]time.Time{}, repeats: map[string]int{},
		begun: map[string][]time.Duration{}, reported: map[string]bool{}, causes: map[string]*trouble{},
		exhausted: map[types.UID]time.Time{}, outlived: map[types.UID]bool{},
	}
	w.start = w.clock.Now()
	options := []iaasmock.Option{
		iaasmock.WithBootDuration(plan.Boot), iaasmock.WithDeleteDuration(plan.Deletion),
		iaasmock.WithSeed(plan.Seed), iaasmock.WithAddressDelay(plan.AddressDelay),
		iaasmock.WithReleaseDuration(plan.Release),
	}
	options = append(options, iaasmock.WithListLag(plan.ListLag))
	w.cloud = iaasmock.New(options...)
	keys := simulationKeys()
	for _, key := range keys {
		if err := w.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
			panic(err)
		}
	}
	for i := range plan.Clusters {
		w.clusters = append(w.clusters, newCluster(w, clusterName(i), keys[1+2*i:3+2*i]))
	}
	w.populate(keys[0])
	return w
}

func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// machine returns the Machine; nil if there is none.
func (w *world) machine(who owner) *v1alpha1.Machine {
	for _, c := range w.clusters {
		if c.name == who.cluster {
			return c.machine(who.machine)
		}
	}
	return nil
}

// log adds a line to the trace.
func (w *world) log(format string, args ...any) {
	w.trace.add(w.clock.Since(w.start), fmt.Sprintf(format, args...))
}

// violated records a violation, once.
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

func (w *world) met(t *trouble) { w.locked(func() { w.causes[t.name] = t }) }

// repeated returns how often it was called with this name before.
func (w *world) repeated(name ...any) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(name...)
	w.repeats[key]++
	return w.repeats[key] - 1
}

// sleep waits for d; it returns false if the run is over.
func (w *world) sleep(d time.Duration) bool {
	return spi.Sleep(w.ctx, w.clock, d) == nil
}

func (w *world) spawn(f func()) { w.spawned.Go(f) }

// await checks every few seconds whether done returns true.
func (w *world) await(limit time.Duration, done func() bool) bool {
	for deadline := w.clock.Now().Add(limit); !done(); {
		if !w.clock.Now().Before(deadline) || !w.sleep(5*time.Second) {
			return false
		}
	}
	return true
}

// trace is the log of events, for the reader and for the comparison of two runs.
type trace struct {
	mu    sync.Mutex
	lines []line
	// names are the names of random IDs; made is the number of named servers, whose names are numbered in the order
	// of their creation.
	names map[string]string
	made  int
}

type line struct {
	at   time.Duration
	text string
}

func newTrace() *trace { return &trace{names: map[string]string{}} }

func (t *trace) add(at time.Duration, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{at, text})
}

// named gives a new server its name in the trace.
func (t *trace) named(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.names[id]; !known {
		t.made++
		t.names[id] = fmt.Sprintf("server-%d", t.made)
	}
}

// called names another resource in the trace.
func (t *trace) called(id, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[id] = name
}

// name returns the name of a resource; "" if unknown.
func (t *trace) name(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[id]
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// text returns the whole trace. Events of the same moment are sorted: their order is the scheduler's.
func (t *trace) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	slices.SortStableFunc(t.lines, func(a, b line) int { return int(a.at - b.at) })
	for _, l := range t.lines {
		text := uuids.ReplaceAllStringFunc(l.text, func(id string) string {
			if name, ok := t.names[id]; ok {
				return name
			}
			return "(id)"
		})
		lines = append(lines, fmt.Sprintf("%13.6f %s", l.at.Seconds(), text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// chance returns true with this probability.
func chance(rng *rand.Rand, probability float64) bool {
	return probability > 0 && rng.Float64() < probability
}

// between returns a duration in [least, most), to the nanosecond: moments then hardly ever coincide, so that
// their order is the seed's and not the scheduler's.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// random returns a random stream that depends only on the seed and a name, not on other draws.
func random(seed uint64, name ...any) *rand.Rand {
	hash := fnvHash(fmt.Sprint(name...))
	return rand.New(rand.NewPCG(seed, hash))
}

func fnvHash(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}

// owner is the Machine that a server belongs to, with its cluster.
type owner struct{ cluster, machine string }

// ownerOf returns a server's owner, from its metadata and its name, which do not change. Its labels may be
// lost.
func ownerOf(server *iaasmock.Server) owner { return owner{server.Metadata[clusterField], server.Name} }

func serverOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// mayJoin reports whether the server's Node exists or may still join.
func mayJoin(server *iaasmock.Server) bool {
	return server.Status != iaasmock.StatusDeleting && server.Status != iaasmock.StatusError
}

func anyServer(*iaasmock.Server) bool { return true }

// servers returns the clusters' servers for which fits is true.
func (w *world) servers(fits func(*iaasmock.Server) bool) map[owner][]string {
	found := map[owner][]string{}
	for _, server := range w.cloud.Servers() {
		if _, foreign := w.foreign.things[server.ID]; !foreign && fits(&server) {
			found[ownerOf(&server)] = append(found[ownerOf(&server)], server.ID)
		}
	}
	return found
}

// openStackOf returns the Machine from OpenStack that has the server, NIC or volume; nil if there is none.
func (w *world) openStackOf(id string) *openStackMachine {
	for _, m := range w.openStack {
		if slices.Contains(m.servers, id) || slices.Contains(m.leftovers, id) {
			return m
		}
	}
	return nil
}

func (w *world) serverOfNIC(id string) string {
	for _, nic := range w.cloud.NICs() {
		if nic.ID == id {
			return nic.ServerID
		}
	}
	return ""
}

// nodeReady reports whether the Machine's Node is Ready, or soon will be: its server runs, with or without its
// allowed addresses.
func (w *world) nodeReady(m *v1alpha1.Machine) bool {
	server, exists := w.cloud.Server(serverOf(m.Spec.ProviderID))
	return exists && server.Status == iaasmock.StatusActive
}

func (w *world) initialized(serverID string) bool {
	for _, nic := range w.cloud.NICs() {
		if nic.ServerID == serverID && !slices.Contains(nic.AllowedAddresses, allowed) {
			return false
		}
	}
	return true
}

// settled reports whether every Machine runs, and every deleted Machine is gone.
func (w *world) settled() bool {
	for _, c := range w.clusters {
		for _, m := range c.machines() {
			if m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || !w.nodeReady(m) {
				return false
			}
		}
	}
	return true
}

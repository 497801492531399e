// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// Cloud is a fake STACKIT cloud, and an http.Handler. New returns one.
//
// Nothing runs in the background: each request and each method computes the state from the clock.
// All methods are safe for concurrent use.
type Cloud struct {
	settings
	accounts *accounts
	faults   fault.Book
	calls    callLog
	admin    http.Handler

	// mu guards everything below. Maps and slices inside the resources are replaced,
	// never written to, so that answers can be encoded without mu.
	mu       sync.Mutex
	servers  collection[*server]
	nics     collection[*nic]
	volumes  collection[*Volume]
	networks collection[*network]
	totals   Totals
	// releases are the pending releases of NICs and volumes whose server is gone.
	releases []release
	// goneServers are deleted servers that lagging lists still show; keepGoneFor is how long.
	goneServers []*server
	keepGoneFor time.Duration
}

// locked runs f on the state as of now, under the lock.
func (c *Cloud) locked(f func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.applyEndedDeletions(now)
	f(now)
}

// applyEndedDeletions removes the servers whose deletion has ended, and drops deleted servers
// that no list shows any more. All other states are computed when they are read.
func (c *Cloud) applyEndedDeletions(now time.Time) {
	for _, s := range slices.Collect(c.servers.each()) {
		if !s.goneAt.IsZero() && !now.Before(s.goneAt) {
			c.remove(s, s.goneAt)
		}
	}
	c.applyReleases(now)
	kept := c.goneServers[:0]
	for _, s := range c.goneServers {
		if now.Before(s.removedAt.Add(c.keepGoneFor)) {
			kept = append(kept, s)
		}
	}
	clear(c.goneServers[len(kept):])
	c.goneServers = kept
}

// release is a pending change: a NIC or volume stops looking attached to its deleted server.
type release struct {
	at time.Time
	do func()
}

func (c *Cloud) applyReleases(now time.Time) {
	c.releases = slices.DeleteFunc(c.releases, func(r release) bool {
		if now.Before(r.at) {
			return false
		}
		r.do()
		return true
	})
}

// later schedules a change for releaseDuration after the time at.
func (c *Cloud) later(at time.Time, do func()) {
	c.releases = append(c.releases, release{at.Add(c.releaseDuration), do})
}

// remove removes a server, the NICs made for it and the volumes that are deleted with it. Other NICs
// and volumes are detached.
func (c *Cloud) remove(s *server, at time.Time) {
	s.removedAt = at
	s.lastNICs = c.serverNICs(s)
	for _, id := range s.NICIDs {
		if nic, ok := c.nics.get(id); ok {
			c.releaseNIC(s, nic, at)
		}
	}
	for _, id := range s.VolumeIDs {
		if volume, ok := c.volumes.get(id); ok {
			c.releaseVolume(s, volume, at)
		}
	}
	c.applyReleases(at)
	c.servers.remove(s.ID)
	c.totals.ServersDeleted++
	if c.keepGoneFor > 0 {
		c.goneServers = append(c.goneServers, s)
	}
}

func (c *Cloud) releaseNIC(s *server, nic *nic, at time.Time) {
	if nic.MadeByServer {
		c.removeNIC(nic)
		return
	}
	c.later(at, func() {
		if nic.ServerID == s.ID {
			nic.ServerID = ""
		}
	})
}

func (c *Cloud) removeNIC(nic *nic) {
	if network, ok := c.networks.get(nic.NetworkID); ok {
		network.release(&nic.NIC)
	}
	c.nics.remove(nic.ID)
}

func (c *Cloud) releaseVolume(s *server, volume *Volume, at time.Time) {
	if s.deletes(volume) {
		c.volumes.remove(volume.ID)
		return
	}
	c.later(at, func() {
		if volume.ServerID == s.ID {
			volume.ServerID, volume.Status = "", volumeAvailable
		}
	})
}

// serverNICs returns copies of the server's NICs in their current state.
func (c *Cloud) serverNICs(s *server) []*nic {
	nics := make([]*nic, 0, len(s.NICIDs))
	for _, id := range s.NICIDs {
		if attached, ok := c.nics.get(id); ok {
			copied := *attached
			nics = append(nics, &copied)
		}
	}
	return nics
}

// wait waits for d. It returns false if the client disconnected first.
func (c *Cloud) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// New returns a Cloud with DefaultCatalogue unless WithCatalogue is given. It panics on an
// inconsistent catalogue, such as one with a NIC in a network that does not exist.
func New(opts ...Option) *Cloud {
	c := &Cloud{settings: defaultSettings(), accounts: newAccounts()}
	for _, opt := range opts {
		opt(&c.settings)
	}
	c.keepGoneFor = c.listLag
	c.admin = c.adminHandler()
	if err := c.loadCatalogue(); err != nil {
		panic("iaasmock: catalogue: " + err.Error())
	}
	for _, f := range c.injected {
		c.inject(f)
	}
	return c
}

func (c *Cloud) loadCatalogue() error {
	now := c.clock.Now()
	for region, zones := range c.catalogue.Regions {
		if len(zones) == 0 {
			return fmt.Errorf("region %s has no availability zone", region)
		}
	}
	for _, volume := range c.catalogue.Volumes {
		volume.Status = cmp.Or(volume.Status, volumeAvailable)
		volume.CreatedAt = now
		c.volumes.put(volume.ID, &volume)
	}
	for _, n := range c.catalogue.Networks {
		made, err := newNetwork(n, now)
		if err != nil {
			return err
		}
		c.networks.put(n.ID, made)
	}
	for _, original := range c.catalogue.NICs {
		nic := &nic{NIC: original}
		network, ok := c.networks.get(nic.NetworkID)
		if !ok {
			return fmt.Errorf("NIC %s: network %s does not exist", nic.ID, nic.NetworkID)
		}
		if err := network.assign(&nic.NIC); err != nil {
			return fmt.Errorf("NIC %s: %w", nic.ID, err)
		}
		c.nics.put(nic.ID, nic)
	}
	return nil
}

// randomStream is the Cloud's one source of random values, but for secrets. It is safe for concurrent use.
type randomStream struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newRandomStream(seed uint64) *randomStream {
	return &randomStream{rng: rand.New(rand.NewPCG(seed, 0))}
}

// Float64 returns a random number from 0 to 1.
func (s *randomStream) Float64() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Float64()
}

// spread returns a random duration from 0 to span.
func (s *randomStream) spread(span time.Duration) time.Duration {
	if span <= 0 {
		return 0
	}
	return time.Duration(s.Float64() * float64(span))
}

// shuffled shuffles the items in place, and returns them.
func (s *randomStream) shuffled(items []object) []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

// uuid returns a random (version 4) UUID.
func (s *randomStream) uuid() string {
	var id uuid.UUID
	s.mu.Lock()
	high, low := s.rng.Uint64(), s.rng.Uint64()
	s.mu.Unlock()
	binary.LittleEndian.PutUint64(id[:8], high)
	binary.LittleEndian.PutUint64(id[8:], low)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// collection keeps items by ID in the order they were added.
type collection[T any] struct {
	byID    map[string]T
	ordered []entry[T]
}

type entry[T any] struct {
	id   string
	item T
}

// put adds an item with a new ID.
func (c *collection[T]) put(id string, item T) {
	if c.byID == nil {
		c.byID = map[string]T{}
	}
	c.byID[id] = item
	c.ordered = append(c.ordered, entry[T]{id, item})
}

func (c *collection[T]) get(id string) (item T, ok bool) {
	item, ok = c.byID[id]
	return item, ok
}

func (c *collection[T]) remove(id string) {
	delete(c.byID, id)
	c.ordered = slices.DeleteFunc(c.ordered, func(e entry[T]) bool { return e.id == id })
}

// each iterates over the items in order. A loop must not remove items.
func (c *collection[T]) each() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, e := range c.ordered {
			if !yield(e.item) {
				return
			}
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"
)

// Cloud is one fake STACKIT cloud. It is an http.Handler; New makes one.
//
// Nothing runs in the background (but Listen): each request and method computes the state
// from the clock. All methods may be used concurrently.
type Cloud struct {
	settings
	tokens *token.Issuer
	faults fault.Book
	calls  callLog
	admin  http.Handler
	// latencies, boots, ids and replicas are the random streams that calls share.
	latencies, boots, ids, replicas, others *lockedStream

	// mu guards everything below. Maps and slices inside the resources are replaced,
	// never written to, so that answers can be encoded without mu.
	mu       sync.Mutex
	servers  collection[*server]
	nics     collection[*nic]
	volumes  collection[*Volume]
	networks collection[*network]
	totals   Totals
	projectResources
	catalogueResources
	// deleting holds servers with a DeleteServer, for applyEndedDeletions.
	deleting map[string]*server
	// releases are NICs and volumes that still look attached to a server that is gone.
	releases []release
	// goneServers are deleted servers that lagging lists still show, for keepGoneFor.
	goneServers []*server
	keepGoneFor time.Duration
}

// New returns a Cloud with DefaultCatalogue unless WithCatalogue is given. It panics on a
// catalogue that contradicts itself, such as one with a NIC in a network that does not
// exist.
func New(opts ...Option) *Cloud {
	c := &Cloud{
		settings: defaultSettings(),
		servers:  newCollection[*server](),
		nics:     newCollection[*nic](),
		volumes:  newCollection[*Volume](),
		networks: newCollection[*network](),
		deleting: map[string]*server{},

		projectResources:   newProjectResources(),
		catalogueResources: newCatalogueResources(),
	}
	for _, opt := range opts {
		opt(&c.settings)
	}
	c.tokens = token.NewIssuer(c.clock, c.tokenLifetime)
	c.latencies, c.boots, c.ids = c.random.lockedStream("latency"), c.random.lockedStream("boot"), c.random.lockedStream("ids")
	c.replicas, c.others = c.random.lockedStream("replicas"), c.random.lockedStream("others")
	c.keepGoneFor = slices.Max(append(slices.Clone(c.replicaLags), c.listLag))
	c.admin = c.adminHandler()
	if err := c.loadCatalogue(); err != nil {
		panic("iaasmock: catalogue: " + err.Error())
	}
	return c
}

func (c *Cloud) loadCatalogue() error {
	for _, n := range c.catalogue.Networks {
		made, err := newNetwork(n, c.clock.Now())
		if err != nil {
			return err
		}
		c.networks.put(n.ID, made)
	}
	for _, original := range c.catalogue.NICs {
		nic := &nic{NIC: original.clone()}
		network, ok := c.networks.get(nic.NetworkID)
		if !ok {
			return fmt.Errorf("NIC %s: no network %s", nic.ID, nic.NetworkID)
		}
		if address := network.foreign(&nic.NIC); address != "" {
			return fmt.Errorf("NIC %s: %s is not in network %s", nic.ID, address, nic.NetworkID)
		}
		if err := network.assign(&nic.NIC); err != nil {
			return fmt.Errorf("NIC %s: %w", nic.ID, err)
		}
		c.nics.put(nic.ID, nic)
	}
	c.loadImagesAndGroups()
	now := c.clock.Now()
	for _, original := range c.catalogue.Volumes {
		volume := original.clone()
		if volume.Status == "" {
			volume.Status = VolumeAvailable
		}
		volume.CreatedAt, volume.UpdatedAt = now, now
		c.volumes.put(volume.ID, &volume)
	}
	c.loadProjectResources()
	return nil
}

// locked runs f on the state as of now, under the lock.
func (c *Cloud) locked(f func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.applyEndedDeletions(now)
	f(now)
}

// applyEndedDeletions removes the servers whose deletion has ended, and
// forgets deleted servers that no list shows any more. All other states are computed when
// they are read.
func (c *Cloud) applyEndedDeletions(now time.Time) {
	for _, s := range c.deleting {
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

// release is what happens when a NIC or volume looks attached to its server no more.
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

// later does something when releaseDuration has passed since then.
func (c *Cloud) later(at time.Time, do func()) {
	c.releases = append(c.releases, release{at.Add(c.releaseDuration), do})
}

// remove removes a server, the NICs made for it and the volumes that are deleted with it.
// Everything else is detached.
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
	delete(c.deleting, s.ID)
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
	c.totals.NICsDeleted++
}

func (c *Cloud) releaseVolume(s *server, volume *Volume, at time.Time) {
	if s.deletes(volume) {
		c.removeVolume(volume)
		return
	}
	c.later(at, func() {
		if volume.ServerID == s.ID {
			volume.detach(at.Add(c.releaseDuration))
		}
	})
}

func (c *Cloud) removeVolume(volume *Volume) {
	c.volumes.remove(volume.ID)
	c.totals.VolumesDeleted++
}

// serverNICs returns copies of the server's NICs as they are now.
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

// newID returns an ID for a new resource.
func (c *Cloud) newID() string { return c.ids.uuid() }

// macOf computes a MAC from a NIC's ID, with the prefix of OpenStack's ports.
func macOf(id string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	sum := hash.Sum32()
	return fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", byte(sum>>16), byte(sum>>8), byte(sum)) //nolint:gosec // the lowest byte is meant
}

// NewServiceAccountKey makes a service account with access to the project and returns its
// key file as JSON, private key included. The file names no token endpoint: give the
// client this Cloud's /token.
func (c *Cloud) NewServiceAccountKey(projectID string) ([]byte, error) {
	if !c.hasProject(projectID) {
		return nil, fmt.Errorf("no project %s", projectID)
	}
	return c.tokens.NewKey(projectID)
}

// RegisterServiceAccountKey gives a key from another Cloud's NewServiceAccountKey access
// to the project in this one. Generating a key is slow: a test with many clouds can
// generate one and register it.
func (c *Cloud) RegisterServiceAccountKey(projectID string, keyJSON []byte) error {
	if !c.hasProject(projectID) {
		return fmt.Errorf("no project %s", projectID)
	}
	return c.tokens.RegisterKey(projectID, keyJSON)
}

// FederatedIdentityProvider says whose tokens a service account trusts.
type FederatedIdentityProvider = token.Federation

// NewFederatedServiceAccount makes a service account with access to the project and returns
// its mail address. It has no key, but trusts the tokens of the provider; they are exchanged
// at this Cloud's /oauth/v2/token.
func (c *Cloud) NewFederatedServiceAccount(projectID string, provider FederatedIdentityProvider) (email string, err error) {
	if !c.hasProject(projectID) {
		return "", fmt.Errorf("no project %s", projectID)
	}
	return c.tokens.NewFederatedAccount(projectID, provider)
}

// RevokeServiceAccountKey makes a key from NewServiceAccountKey, and every token it got,
// invalid.
func (c *Cloud) RevokeServiceAccountKey(keyJSON []byte) error {
	return c.tokens.RevokeKey(keyJSON)
}

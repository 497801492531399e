// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	clusterLabel = "kubernetes.io/cluster"
	// clusterField of a server's metadata names its cluster, too.
	clusterField = "cluster"
	// classA allows addresses, so that its servers have to be initialized; classB
	// does not.
	classA, classB = "pool-a", "pool-b"
	allowed        = "100.64.0.0/12"
	userData       = "#cloud-config of nobody but this server"
)

// cluster has a control plane and, unless it has just crashed, a process that leads.
type cluster struct {
	world *world
	name  string
	api   *apiServer
	keys  [][]byte

	mu sync.Mutex
	// leader is the process that leads; nil while none does.
	leader *process
	// processes are those that may live, started and restarts how many there were.
	processes         []*process
	started, restarts int
	key               []byte
	diskSize          int
	// place is where the class and its Secret say that servers are.
	place place
	// edits counts what users have edited by hand.
	edits int
}

func (w *world) newCluster(name string, keys [][]byte) *cluster {
	c := &cluster{world: w, name: name, api: newAPIServer(w.clock, w.plan), keys: keys, key: keys[0], diskSize: 20, place: home}
	c.leader = c.newProcess()
	return c
}

// inputs are the class and its Secret as they are now.
func (c *cluster) inputs(class string) (*v1alpha1.MachineClass, *corev1.Secret) {
	c.mu.Lock()
	key, size, at := c.key, c.diskSize, c.place
	c.mu.Unlock()
	if at.key != nil {
		key = at.key
	}
	spec := map[string]any{
		"machineType": iaasmock.DefaultMachineType,
		"imageId":     iaasmock.DefaultImageID,
		"networking":  map[string]any{"networkId": at.network},
		"bootVolume":  map[string]any{"size": size},
		"labels":      map[string]any{clusterLabel: c.name},
		"metadata":    map[string]any{clusterField: c.name},
	}
	if class == classA {
		spec["allowedAddresses"] = []string{allowed}
	}
	raw, _ := json.Marshal(spec) // maps and texts
	return &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: class, Namespace: "simulated"},
			ProviderSpec: runtime.RawExtension{Raw: raw},
		}, &corev1.Secret{Data: map[string][]byte{
			"projectId": []byte(at.project), "region": []byte(at.region),
			"serviceAccountKey": key, "userData": []byte(userData),
		}}
}

// want makes a new Machine unless there is one of that name.
func (c *cluster) want(name, class string) { c.add(name, class, func(*v1alpha1.Machine) {}) }

// add makes a Machine, as change makes it, and the care for it of those that take themselves
// for the leader. It returns nil if there is one of that name.
func (c *cluster) add(name, class string, change func(*v1alpha1.Machine)) *record {
	record, made := c.api.create(name, class, change)
	if !made {
		return nil
	}
	c.world.mu.Lock()
	c.world.lives++
	c.world.mu.Unlock()
	c.world.log("%s %s is wanted, of %s", c.name, name, class)
	for _, p := range c.living() {
		p.tend(record)
	}
	return record
}

// unwant deletes a Machine.
func (c *cluster) unwant(r *record) {
	if m, exists := c.api.latestOf(r); exists && m.DeletionTimestamp == nil {
		c.world.log("%s %s is not wanted any more", c.name, m.Name)
		c.api.markDeleted(r)
	}
}

// replaceFailed is what a MachineSet does.
func (c *cluster) replaceFailed() {
	for _, r := range c.api.all() {
		m, exists := c.api.latestOf(r)
		if exists && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.DeletionTimestamp == nil {
			c.world.checkFailure(c, m)
			c.unwant(r)
			c.want(m.Name+"r", m.Spec.Class.Name)
		}
	}
}

// users change their minds, for as long as the fault period lasts.
func (c *cluster) users(rng *rand.Rand, until time.Time) {
	for i := range c.world.plan.Machines {
		c.want(machineName(i), pick(rng, classA, classB))
	}
	for {
		gap := between(rng, time.Second, 90*time.Second)
		if c.world.clock.Now().Add(gap).After(until) || !c.world.sleep(gap) {
			return
		}
		if c.world.plan.Edit != "" && rng.IntN(2) == 0 {
			c.edit(rng, until)
			continue
		}
		name := machineName(rng.IntN(c.world.plan.Machines))
		class := pick(rng, classA, classB)
		switch rng.IntN(4) {
		case 0:
			c.mu.Lock()
			c.diskSize = 20 + rng.IntN(20) // a class of the same name that is another
			c.mu.Unlock()
		case 1, 2:
			if found := c.find(name); found != nil {
				c.unwant(found)
			}
		default:
			c.want(name, class) // again, by the same name
		}
	}
}

func machineName(i int) string { return "machine-" + "abcdefghijklmnopqrstuvwxyz"[i:i+1] }

func (c *cluster) find(name string) *record {
	for _, r := range c.api.all() {
		if m, _ := c.api.latestOf(r); m.Name == name {
			return r
		}
	}
	return nil
}

// rotate replaces the key; the old one is revoked a little before or after.
func (c *cluster) rotate(rng *rand.Rand) {
	c.mu.Lock()
	old, fresh := c.keys[0], c.keys[1]
	c.keys = [][]byte{fresh, old}
	c.mu.Unlock()
	if err := c.world.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, fresh); err != nil {
		panic(err)
	}
	revoke := func() { _ = c.world.cloud.RevokeServiceAccountKey(old) }
	handOut := func() {
		c.mu.Lock()
		c.key = fresh
		c.mu.Unlock()
	}
	first, second := handOut, revoke
	if rng.IntN(2) == 0 {
		first, second = revoke, handOut
	}
	c.world.log("%s rotates its key", c.name)
	first()
	c.world.sleep(between(rng, 0, 40*time.Second))
	second()
	c.world.log("%s has rotated its key", c.name)
}

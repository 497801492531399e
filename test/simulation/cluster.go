// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	clusterLabel = "kubernetes.io/cluster"
	// classA allows addresses, so that its servers have to be initialized; classB
	// does not.
	classA, classB = "pool-a", "pool-b"
	allowed        = "100.64.0.0/12"
	userData       = "#cloud-config of nobody but this server"
)

// cluster has a control plane, the manager and, unless it has just crashed, a
// driver process.
type cluster struct {
	world *world
	name  string
	api   *apiServer
	keys  [][]byte

	mu         sync.Mutex
	process    *process
	generation int
	key        []byte
	diskSize   int
	// collect asks for an orphan run.
	collect chan struct{}
	// collecting is held by an orphan run. It is no mutex: time does not pass in a
	// bubble while somebody waits for one.
	collecting chan struct{}
}

func (w *world) newCluster(name string, keys [][]byte) *cluster {
	c := &cluster{world: w, name: name, api: newAPIServer(w.clock), keys: keys, key: keys[0], diskSize: 20, collect: make(chan struct{}, 1), collecting: make(chan struct{}, 1)}
	c.process = c.newProcess()
	return c
}

// inputs are the class and its Secret as they are now.
func (c *cluster) inputs(class string) (*v1alpha1.MachineClass, *corev1.Secret) {
	c.mu.Lock()
	key, size := c.key, c.diskSize
	c.mu.Unlock()
	spec := map[string]any{
		"machineType": iaasmock.DefaultMachineType,
		"imageId":     iaasmock.DefaultImageID,
		"networking":  map[string]any{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume":  map[string]any{"size": size},
		"labels":      map[string]any{clusterLabel: c.name},
	}
	if class == classA {
		spec["allowedAddresses"] = []string{allowed}
	}
	raw, _ := json.Marshal(spec) // maps and texts
	return &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: class, Namespace: "simulated"},
			ProviderSpec: runtime.RawExtension{Raw: raw},
		}, &corev1.Secret{Data: map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
			"serviceAccountKey": key, "userData": []byte(userData),
		}}
}

// want makes a Machine, and the manager's care for it.
func (c *cluster) want(name, class string) {
	record, made := c.api.create(name, class)
	if !made {
		return
	}
	c.world.mu.Lock()
	c.world.lives++
	c.world.mu.Unlock()
	c.world.log("%s %s is wanted, of %s", c.name, name, class)
	c.world.spawn(func() { c.tend(record, name) })
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

// users change their minds, for as long as the turmoil lasts.
func (c *cluster) users(rng *rand.Rand, until time.Time) {
	for i := range c.world.plan.Machines {
		c.want(machineName(i), pick(rng, classA, classB))
	}
	for {
		gap := between(rng, time.Second, 90*time.Second)
		if c.world.clock.Now().Add(gap).After(until) || !c.world.sleep(gap) {
			return
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

func machineName(i int) string { return "machine-" + "abcdefgh"[i:i+1] }

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

// collectSoon asks for an orphan run.
func (c *cluster) collectSoon() {
	select {
	case c.collect <- struct{}{}:
	default:
	}
}

// collector makes orphan runs: when the process starts, when a Machine is gone, and
// now and then.
func (c *cluster) collector(rng *rand.Rand) {
	for {
		timer := c.world.clock.NewTimer(between(rng, time.Minute, 15*time.Minute))
		select {
		case <-c.world.ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-c.collect:
			timer.Stop()
		}
		c.collectOrphans()
	}
}

// collectOrphans is checkMachineClasses of the manager's machine_safety.go. It says
// whether it came to its end.
func (c *cluster) collectOrphans() bool {
	c.collecting <- struct{}{}
	defer func() { <-c.collecting }()
	p := c.running()
	if p == nil {
		return false
	}
	complete := true
	for _, name := range []string{classA, classB} {
		class, secret := c.inputs(name)
		listed, err := p.driver.ListMachines(calledBy(p.ctx, "collector"), &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
		if p.dead() {
			return false
		}
		c.judge("ListMachines", name, err)
		if err != nil {
			return false // later classes have to wait, too
		}
		for _, id := range c.sorted(listed.MachineList) {
			if !c.keeps(listed.MachineList[id], id) {
				complete = c.deleteOrphan(p, class, secret, listed.MachineList[id], id) && complete
			}
		}
	}
	return complete
}

// sorted returns the ProviderIDs by the names in the trace: a map has no order.
func (c *cluster) sorted(list map[string]string) []string {
	var ids []string
	for id := range list {
		ids = append(ids, id)
	}
	order := func(id string) string { return list[id] + c.world.trace.name(serverOf(id)) }
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(order(a), order(b)) })
	return ids
}

// keeps are the manager's rules for what is no orphan.
func (c *cluster) keeps(machine, providerID string) bool {
	m := c.api.current(machine)
	if m == nil {
		return false
	}
	phase := m.Status.CurrentStatus.Phase
	return m.Spec.ProviderID == providerID || phase == "" || phase == v1alpha1.MachineCrashLoopBackOff
}

// deleteOrphan asks with nothing but name and ProviderID, as the manager does.
func (c *cluster) deleteOrphan(p *process, class *v1alpha1.MachineClass, secret *corev1.Secret, name, id string) bool {
	c.world.log("%s %s: %s is an orphan", c.name, name, id)
	_, err := p.driver.DeleteMachine(calledBy(p.ctx, "collector"), &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "simulated"},
			Spec:       v1alpha1.MachineSpec{ProviderID: id},
		}, MachineClass: class, Secret: secret,
	})
	if p.dead() {
		return false
	}
	c.judge("DeleteMachine", name, err)
	return err == nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

const (
	clusterLabel = "kubernetes.io/cluster"
	// clusterField is the key in a server's metadata that also names its cluster.
	clusterField = "cluster"
	// classA allows addresses, so that its servers have to be initialized; classB
	// does not.
	classA, classB = "pool-a", "pool-b"
	allowed        = "100.64.0.0/12"
	userData       = "#cloud-config of nobody but this server"
	credentials    = "credentials"
)

// cluster has an API server and, except for a while after a crash, a leading process.
type cluster struct {
	world *world
	name  string
	api   *manager.Server
	keys  [][]byte

	mu sync.Mutex
	// leader is the leading process; nil while there is none.
	leader *process
	// processes are all processes so far.
	processes []*process
	restarts  int
	key       []byte
	diskSize  int
	// collections counts the orphan runs requested.
	collections int
	// restored are the servers and labels that users have set again, or are about to.
	restored map[string]bool
	// used are the names of all Machines so far.
	used map[string]bool
	// renewed are Machines whose name was used before: for ten minutes after the earlier Machine's end the manager
	// may take them for it.
	renewed []string
}

// clusterName returns the name of the cluster with this index.
func clusterName(i int) string { return fmt.Sprintf("shoot-%c", 'a'+i) }

// newCluster makes a cluster with a leading process, which begins to work at start.
func newCluster(w *world, name string, keys [][]byte) *cluster {
	c := &cluster{
		world: w, name: name, keys: keys, key: keys[0], diskSize: 20,
		restored: map[string]bool{}, used: map[string]bool{},
	}
	c.api = manager.NewServer(func() time.Time { return w.clock.Now().Add(w.plan.Skew) })
	secret := &corev1.SecretReference{Name: credentials, Namespace: manager.Namespace}
	c.must(c.api.Create("secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: credentials, Namespace: manager.Namespace},
	}))
	for _, class := range []string{classA, classB} {
		c.must(c.api.Create("machineclasses", &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: class, Namespace: manager.Namespace, Finalizers: []string{manager.Finalizer}},
			Provider:   "stackit", SecretRef: secret,
		}))
	}
	c.writeInputs()
	c.leader = c.newProcess()
	return c
}

// start starts the leading process, and the controllers and kubelets around it.
func (c *cluster) start() {
	leader := c.leader
	c.world.spawn(leader.begin)
	c.world.spawn(c.machineSet)
	c.world.spawn(c.kubelets)
}

func (c *cluster) must(err error) {
	if err != nil {
		panic(err)
	}
}

// change changes the classes and their Secret.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	c.writeInputs()
}

// writeInputs writes the classes and their Secret as they are now.
func (c *cluster) writeInputs() {
	c.mu.Lock()
	key, size := c.key, c.diskSize
	c.mu.Unlock()
	manager.Edit(c.api, "secrets", credentials, func(s *corev1.Secret) {
		s.Data = map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
			"serviceAccountKey": key, "userData": []byte(userData),
		}
	})
	for _, class := range []string{classA, classB} {
		spec := map[string]any{
			"machineType": iaasmock.DefaultMachineType,
			"imageId":     iaasmock.DefaultImageID,
			"networking":  map[string]any{"networkId": iaasmock.DefaultNetworkID},
			"bootVolume":  map[string]any{"size": size},
			"labels":      map[string]any{clusterLabel: c.name},
			"metadata":    map[string]any{clusterField: c.name},
		}
		if class == classA {
			spec["allowedAddresses"] = []string{allowed}
		}
		if c.world.plan.Fallbacks {
			spec["availabilityZone"] = iaasmock.DefaultAvailabilityZone
			spec["fallbacks"] = []map[string]any{{"machineType": "t1.1"}, {"availabilityZone": "eu01-2"}}
		}
		raw, err := json.Marshal(spec)
		c.must(err)
		manager.Edit(c.api, "machineclasses", class, func(m *v1alpha1.MachineClass) { m.ProviderSpec.Raw = raw })
	}
}

// crash ends the process, and starts a new one a little later unless another process leads.
func (c *cluster) crash(p *process, when string) {
	if p.end("CRASH " + when) {
		c.restart(p)
	}
}

// restart replaces the process if it was the leader; for a while there may be no leader.
func (c *cluster) restart(ended *process) {
	c.mu.Lock()
	if c.leader != ended {
		c.mu.Unlock()
		return
	}
	c.leader = nil
	c.restarts++
	gap := between(random(c.world.plan.Seed, "restart", c.name, c.restarts), time.Second, 10*time.Second)
	c.mu.Unlock()
	c.world.spawn(func() {
		if c.world.sleep(gap) {
			c.world.log("%s starts again", c.name)
			c.lead()
		}
	})
}

// lead makes a new process the leader.
func (c *cluster) lead() {
	p := c.newProcess()
	c.mu.Lock()
	c.leader = p
	c.mu.Unlock()
	p.begin()
}

// running returns the leading process; nil while there is none.
func (c *cluster) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// machineName returns a name that ends in five letters: the manager takes three of them for the name of its
// bootstrap token.
func machineName(i int) string {
	return "machine-" + strings.Repeat("abcdefghijklmnopqrstuvwxyz"[i:i+1], 5)
}

// machine returns the Machine of that name; nil if there is none.
func (c *cluster) machine(name string) *v1alpha1.Machine {
	m, _ := c.api.Get("machines", name).(*v1alpha1.Machine)
	return m
}

func (c *cluster) machines() []*v1alpha1.Machine {
	return manager.Objects[*v1alpha1.Machine](c.api, "machines")
}

// want creates a Machine unless one with this name exists.
func (c *cluster) want(name, class string) { c.add(name, class, func(*v1alpha1.Machine) {}) }

// add creates a Machine with change applied.
func (c *cluster) add(name, class string, change func(*v1alpha1.Machine)) {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: manager.Namespace,
			OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: class, Controller: new(true)}},
		},
		Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
	}
	if timeout := c.world.plan.CreationTimeout; timeout > 0 {
		duration := &metav1.Duration{Duration: timeout}
		m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: duration}
	}
	change(m)
	if c.api.Create("machines", m) != nil {
		return // it exists
	}
	c.world.locked(func() { c.world.lives++ })
	c.mu.Lock()
	if c.used[name] {
		c.renewed = append(c.renewed, name)
	}
	c.used[name] = true
	c.mu.Unlock()
	c.world.log("%s %s is created, of class %s", c.name, name, class)
}

// unwant deletes a Machine.
func (c *cluster) unwant(m *v1alpha1.Machine) {
	if now := c.machine(m.Name); now != nil && now.UID == m.UID && now.DeletionTimestamp == nil {
		c.world.log("%s %s is to be deleted", c.name, m.Name)
		_ = c.api.Delete("machines", m.Name) // it exists
	}
}

// deleteMistaken deletes a Machine that the manager is about to terminate without a deletion request: the
// manager takes it for an earlier Machine with its name, and would panic when it drains the Node. The
// manager's write then conflicts.
func (c *cluster) deleteMistaken(name string) {
	if m := c.machine(name); m != nil && m.DeletionTimestamp == nil {
		c.world.log("%s: the manager mistakes %s for an earlier Machine with its name", c.name, name)
		c.unwant(m)
	}
}

// tooLate reports whether the Machine's creation timeout is over.
func (c *cluster) tooLate(m *v1alpha1.Machine) bool {
	timeout := manager.CreationTimeout
	if own := m.Spec.MachineConfiguration; own != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return c.world.clock.Since(m.CreationTimestamp.Time) > timeout
}

// machineSet replaces failed Machines.
func (c *cluster) machineSet() {
	for replaced := 0; c.world.sleep(10 * time.Second); {
		for _, m := range c.machines() {
			if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.DeletionTimestamp == nil {
				c.world.checkFailure(c.name, m)
				c.unwant(m)
				c.want(fmt.Sprintf("%s-%05d", m.Name, replaced), m.Spec.Class.Name)
				replaced++
			}
		}
	}
}

// kubelets keep a Node Ready while its server runs. A Node without a server stays as long as its Machine; the
// manager deletes the Node.
func (c *cluster) kubelets() {
	for rng := random(c.world.plan.Seed, "kubelets", c.name); c.world.sleep(between(rng, 2*time.Second, 4*time.Second)); {
		runs := map[string]bool{}
		for _, server := range c.world.cloud.Servers() {
			who := ownerOf(&server)
			if m := c.machine(who.machine); m != nil && m.Spec.ProviderID != "" && serverOf(m.Spec.ProviderID) != server.ID {
				continue // another server with its name
			}
			if who.cluster == c.name && server.Status == iaasmock.StatusActive {
				runs[who.machine] = true
			}
		}
		for _, node := range manager.Objects[*corev1.Node](c.api, "nodes") {
			if name := node.GetName(); !runs[name] && c.machine(name) == nil {
				c.api.Drop("nodes", name)
			} else if isReady(node) != runs[name] {
				manager.Edit(c.api, "nodes", name, func(n *corev1.Node) { c.setReady(n, runs[name]) })
			}
			delete(runs, node.GetName())
		}
		for _, name := range slices.Sorted(maps.Keys(runs)) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			c.setReady(node, true)
			_ = c.api.Create("nodes", node) // it did not exist
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

func (c *cluster) setReady(node *corev1.Node, ready bool) {
	node.Status.Conditions = conditions(ready, c.world.clock.Now())
}

func conditions(ready bool, since time.Time) []corev1.NodeCondition {
	condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse}
	condition.LastTransitionTime = metav1.NewTime(since.Truncate(time.Second)) // as a client reads it
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	return []corev1.NodeCondition{condition}
}

// collectSoon triggers an orphan run, as the end of any Machine does. It uses a Machine whose class does not
// exist, so that it gets no server.
func (c *cluster) collectSoon() {
	c.mu.Lock()
	c.collections++
	name := fmt.Sprintf("passing-%05d", c.collections)
	c.mu.Unlock()
	c.must(c.api.Create("machines", &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: manager.Namespace},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "none"}},
	}))
	c.api.Drop("machines", name)
}

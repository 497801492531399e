// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// orphanRun is one pass of the manager over all servers of the cluster.
type orphanRun struct {
	*cluster
	process *process
}

// collector makes orphan runs: when the process starts, when a Machine is gone, and
// now and then.
func (c *cluster) collector(p *process, rng *rand.Rand) {
	for p.wait(between(rng, time.Minute, 15*time.Minute), p.collect) {
		orphanRun{c, p}.run()
	}
}

// collectOrphans makes an orphan run, and says whether it came to its end.
func (c *cluster) collectOrphans() bool {
	p := c.running()
	return p != nil && orphanRun{c, p}.run()
}

// run is checkMachineClasses of the manager's machine_safety.go. It says
// whether it came to its end: that no server answers otherwise, not that all are gone.
func (o orphanRun) run() bool {
	p := o.process
	p.collecting <- struct{}{}
	defer func() { <-p.collecting }()
	complete := true
	for _, name := range []string{classA, classB} {
		class, secret := o.inputs(name)
		listed, err := p.driver.ListMachines(calledBy(p.ctx, callerCollector), &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
		if !p.awake() {
			return false
		}
		p.decode("ListMachines", name, err)
		if err != nil {
			return false // later classes have to wait, too
		}
		for _, id := range o.sorted(listed.MachineList) {
			if !o.keeps(listed.MachineList[id], id) {
				complete = o.deleteOrphan(class, secret, listed.MachineList[id], id) && complete
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

// keeps are the manager's rules for what is no orphan. It asks its cache, which must
// have been filled once, but may be old.
func (o orphanRun) keeps(machine, providerID string) bool {
	m := o.api.current(machine, o.process.remembers())
	if m == nil {
		return false
	}
	phase := m.Status.CurrentStatus.Phase
	return m.Spec.ProviderID == providerID || phase == "" || phase == v1alpha1.MachineCrashLoopBackOff
}

// deleteOrphan asks with nothing but name and ProviderID, as the manager does.
func (o orphanRun) deleteOrphan(class *v1alpha1.MachineClass, secret *corev1.Secret, name, id string) bool {
	p := o.process
	o.world.log("%s %s: %s is an orphan", p.name, name, id)
	_, err := p.driver.DeleteMachine(calledBy(p.ctx, callerCollector), &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "simulated"},
			Spec:       v1alpha1.MachineSpec{ProviderID: id},
		}, MachineClass: class, Secret: secret,
	})
	if !p.awake() {
		return false
	}
	p.decode("DeleteMachine", name, err)
	return err == nil
}

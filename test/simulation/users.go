// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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
			size := 20 + rng.IntN(20)
			c.change(func() { c.diskSize = size }) // a class of the same name that is another
		case 1, 2:
			if found := c.machine(name); found != nil {
				c.unwant(found)
			}
		default:
			c.want(name, class) // again, by the same name
		}
	}
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
	handOut := func() { c.change(func() { c.key = fresh }) }
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

// edited is what edits by hand bring about.
var edited = map[string]trouble{
	// Between the class and the Secret a server may be asked for in a network of another project.
	editSecret: {explains: []codes.Code{
		codes.FailedPrecondition, codes.InvalidArgument, codes.ResourceExhausted, codes.Internal}},
	editLabel: {explains: []codes.Code{codes.FailedPrecondition}},
	// An orphan run may delete the old server while the new Machine takes it over from a list that lags.
	editName: {explains: []codes.Code{codes.FailedPrecondition}, spoils: true},
}

// edit edits something by hand, and takes it back before the fault period is over (editSecret may come
// back to it).
func (c *cluster) edit(rng *rand.Rand, until time.Time) {
	left := until.Sub(c.world.clock.Now()) - 40*time.Second
	if left < time.Minute {
		return
	}
	c.world.edits.Add(1)
	defer c.world.edits.Done()
	cause := edited[c.world.plan.Edit]
	cause.name = c.world.plan.Edit
	c.world.met(&cause)
	c.edits++
	switch cause.name {
	case editSecret:
		c.editSecret(rng, left)
	case editLabel:
		c.editLabel(rng, left)
	case editName:
		c.editName(rng, left)
	}
}

// editSecret changes the place while a new Machine is being created, which may be deleted
// meanwhile. Credentials that are refused may keep the driver from finding out what became of a POST there
// until the place is as it was. Then users do what its error says, and change the place once more.
func (c *cluster) editSecret(rng *rand.Rand, left time.Duration) {
	w := c.world
	name := "edited-" + strings.Repeat(fmt.Sprint(c.edits%10), 5)
	c.want(name, pick(rng, classA, classB))
	w.sleep(between(rng, 0, 20*time.Second))
	elsewhere := place{iaasmock.SecondProjectID, iaasmock.DefaultRegion, iaasmock.SecondProjectNetworkID, simulationKeys()[keyCount-1]}
	if rng.IntN(2) == 0 && !c.deletes() {
		elsewhere = place{iaasmock.DefaultProjectID, iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID, nil}
	}
	w.log("%s edits its Secret: project %s, region %s", c.name, elsewhere.project, elsewhere.region)
	c.move(elsewhere)
	stays := between(rng, 10*time.Second, min(left-30*time.Second, 3*time.Minute))
	w.sleep(stays / 2)
	// In another region a server with a ProviderID is not found: it must not be deleted then.
	if found := c.machine(name); found != nil && elsewhere.region == ownPlace.region && rng.IntN(2) == 0 {
		c.unwant(found)
	}
	w.sleep(stays / 2)
	c.move(ownPlace)
	w.log("%s has its Secret as it was", c.name)
	if w.plan.Rotations > 0 && w.sleep(time.Minute) && c.mayHaveServersIn(elsewhere) {
		w.log("%s edits its Secret again, as an error asks for", c.name)
		c.move(elsewhere)
		w.sleep(4 * time.Minute)
		c.move(ownPlace)
	}
}

// mayHaveServersIn says whether the driver has answered so.
func (c *cluster) mayHaveServersIn(there place) bool {
	return slices.ContainsFunc(c.machines(), func(m *v1alpha1.Machine) bool {
		text := m.Status.LastOperation.Description
		return provider.ReasonIn(text) == provider.ReasonOtherProject &&
			strings.Contains(text, fmt.Sprintf("may have a server in project %s, region %s,", there.project, there.region))
	})
}

func (c *cluster) move(to place) { c.change(func() { c.place = to }) }

// deletes says whether a Machine is being deleted.
func (c *cluster) deletes() bool {
	return slices.ContainsFunc(c.machines(), func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
}

// editLabel gives a server another's label, and lets an orphan run look at it.
func (c *cluster) editLabel(rng *rand.Rand, left time.Duration) {
	one, other := c.runningTwo(rng)
	if other == nil {
		return
	}
	id := serverOf(one.Spec.ProviderID)
	c.label(id, machineLabel(other.Name))
	c.collectSoon()
	c.world.sleep(between(rng, 5*time.Second, min(left, 2*time.Minute)))
	c.label(id, machineLabel(one.Name))
}

// runningTwo are two Machines that run, and that nobody asks for meanwhile; nil if there
// are not two.
func (c *cluster) runningTwo(rng *rand.Rand) (one, other *v1alpha1.Machine) {
	var running []*v1alpha1.Machine
	for i := range c.world.plan.Machines {
		m := c.machine(machineName(i))
		if m != nil && m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			running = append(running, m)
		}
	}
	if len(running) < 2 {
		return nil, nil
	}
	rng.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	return running[0], running[1]
}

var (
	// missingLabels are a server and the labels that a text of LabelsMissing asks for, missingLabel
	// those of NotOurs.
	missingLabels = regexp.MustCompile(`server (\S+) .*, set (\S+) on it`)
	missingLabel  = regexp.MustCompile(`server (\S+) .* its label (\S+) is missing, must be "(\S+)"`)
)

// restoreLabels does what an error asks for, after a while: a server without labels is always the
// Machine's that LabelsMissing names. NotOurs is also told of servers that are not.
func (c *cluster) restoreLabels(err error) {
	if err == nil {
		return
	}
	var id, wanted string
	if found := missingLabels.FindStringSubmatch(err.Error()); found != nil {
		id, wanted = found[1], found[2]
	} else if found := missingLabel.FindStringSubmatch(err.Error()); found != nil && c.made(found[1]) {
		id, wanted = found[1], found[2]+"="+found[3]
	} else {
		if provider.ReasonIn(err.Error()) == provider.ReasonLabelsMissing {
			c.world.violated("no server and no labels are named: %v", err)
		}
		return
	}
	labels := map[string]any{}
	for _, label := range strings.Split(wanted, ",") {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	c.mu.Lock()
	known := c.restored[id+wanted]
	c.restored[id+wanted] = true
	c.mu.Unlock()
	if known {
		return
	}
	c.world.spawn(func() {
		rng := random(c.world.plan.Seed, "labels", c.world.trace.name(id))
		if c.world.sleep(between(rng, 10*time.Second, 5*time.Minute)) {
			c.label(id, labels)
		}
	})
}

// made says that a server was made for a Machine of the cluster, and not by OpenStack's provider.
func (c *cluster) made(id string) bool {
	server, exists := c.world.cloud.Server(id)
	return exists && ownerOf(&server).cluster == c.name && server.Metadata[openStackTag+c.name] == ""
}

func machineLabel(machine string) map[string]any {
	return map[string]any{provider.StackitMachineLabel: machine}
}

// label gives a server these labels; it tries until the cloud accepts them.
func (c *cluster) label(id string, labels map[string]any) {
	w := c.world
	change := iaas.UpdateServerPayload{Labels: labels}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := w.foreign.api.UpdateServer(ctx, ownPlace.project, ownPlace.region, id).UpdateServerPayload(change).Execute()
		cancel()
		if err == nil {
			w.log("%s labels %s by hand: %v", c.name, id, labels)
			return
		}
		if _, exists := w.cloud.Server(id); !exists || !w.sleep(5*time.Second) {
			return
		}
	}
}

// editName makes a Machine again under its name.
func (c *cluster) editName(rng *rand.Rand, left time.Duration) {
	m := c.machine(machineName(rng.IntN(c.world.plan.Machines)))
	if m == nil || m.DeletionTimestamp != nil {
		return
	}
	id := serverOf(m.Spec.ProviderID)
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || rng.IntN(2) == 0 {
		c.makeAgain(m)
		return
	}
	// The new Machine's process knows nothing of the old server, whose label hides it.
	c.label(id, machineLabel(m.Name+"-old"))
	c.world.locked(func() { c.world.abandoned[id] = true })
	if p := c.running(); p != nil {
		c.crash(p, "before a name is used again")
	}
	c.world.sleep(25 * time.Second) // the new Machine is not taken for a predecessor's work
	c.makeAgain(m)
	c.world.sleep(between(rng, 0, min(left-25*time.Second, 2*time.Minute)))
	c.label(id, machineLabel(m.Name))
	c.collectSoon()
}

func (c *cluster) makeAgain(m *v1alpha1.Machine) {
	c.world.log("%s %s loses its finalizer by hand", c.name, m.Name)
	c.world.locked(func() { c.world.dropped[owner{c.name, m.Name}] = true })
	c.api.Drop("machines", m.Name)
	c.want(m.Name, m.Spec.Class.Name)
}

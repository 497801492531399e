// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What users edit by hand; see Plan.Edit.
const (
	// editSecret names another project or region in the Secret for a time.
	editSecret = "the Secret"
	// editLabel gives a running server the machine label of another running Machine for
	// a time.
	editLabel = "a label"
	// editName ends a Machine without its deletion, and makes another of its name. The
	// old server is found again at once, or only once the new Machine has one, too.
	editName = "a name"
)

// edited is what edits by hand bring about.
var edited = map[string]trouble{
	editSecret: {explains: []codes.Code{codes.FailedPrecondition, codes.InvalidArgument, codes.ResourceExhausted}},
	editLabel:  {explains: []codes.Code{codes.FailedPrecondition}},
	editName:   {explains: []codes.Code{codes.FailedPrecondition}},
}

// edit edits something by hand, and takes it back before the fault period is over.
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

// place is where servers are: what a class and its Secret say together.
type place struct {
	project, region, network string
	// key of the project; nil is the cluster's.
	key []byte
}

// home is where all servers are. Nothing can be made in other places, whose quota is 0.
var home = place{project: iaasmock.DefaultProjectID, region: iaasmock.DefaultRegion, network: iaasmock.DefaultNetworkID}

// editSecret changes the place while a new Machine is being created, which may be deleted
// meanwhile.
func (c *cluster) editSecret(rng *rand.Rand, left time.Duration) {
	w := c.world
	name := fmt.Sprintf("edited-%d", c.edits)
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
	if found := c.find(name); found != nil && elsewhere.region == home.region && rng.IntN(2) == 0 {
		c.unwant(found)
	}
	w.sleep(stays / 2)
	c.move(home)
	w.log("%s has its Secret as it was", c.name)
}

func (c *cluster) move(to place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place = to
}

// deletes says whether a Machine is being deleted.
func (c *cluster) deletes() bool {
	for _, r := range c.api.all() {
		if m, _ := c.api.latestOf(r); m.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// refuseElsewhere refuses what is to be made in another place than home, and checks that
// the Machine has no server there: the API could have made another.
func (w *world) refuseElsewhere(request *http.Request, c call) *http.Response {
	if c.operation != opCreate || strings.Contains(request.URL.Path, home.project) && strings.Contains(request.URL.Path, "/"+home.region+"/") {
		return nil
	}
	who := owner{c.cluster, c.subject}
	if ids := w.servers(mayJoin)[who]; len(ids) > 0 {
		w.violated("%s has %v, and a server is asked for elsewhere", who.machine, ids)
	}
	w.mu.Lock()
	w.posts[who] = c.number
	w.mu.Unlock()
	w.log("%s -> refused elsewhere", c)
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"code":403,"msg":"Quota exceeded for instances"}`)), Request: request,
	}
}

// checkElsewhere: a server that is made for an earlier request than that for one elsewhere
// would be the second.
func (w *world) checkElsewhere(who owner, c call) {
	w.mu.Lock()
	later := w.posts[who] > c.number
	w.mu.Unlock()
	if later {
		w.violated("a server was asked for elsewhere before it was certain that %s gets none", who.machine)
	}
}

// editLabel gives a server another's label, and lets an orphan run look at it.
func (c *cluster) editLabel(rng *rand.Rand, left time.Duration) {
	one, other := c.runningTwo(rng)
	if other == nil {
		return
	}
	id := serverOf(one.Spec.ProviderID)
	c.label(id, other.Name)
	c.collectSoon()
	c.world.sleep(between(rng, 5*time.Second, min(left, 2*time.Minute)))
	c.label(id, one.Name)
}

// runningTwo are two Machines that run, and that nobody asks for meanwhile; nil if there
// are not two.
func (c *cluster) runningTwo(rng *rand.Rand) (one, other *v1alpha1.Machine) {
	var running []*v1alpha1.Machine
	for i := range c.world.plan.Machines {
		if m := c.api.current(machineName(i), nil); m != nil && m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			running = append(running, m)
		}
	}
	if len(running) < 2 {
		return nil, nil
	}
	rng.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	return running[0], running[1]
}

// label gives a server this machine label; it tries until the cloud accepts it.
func (c *cluster) label(id, machine string) {
	w := c.world
	change := iaas.UpdateServerPayload{Labels: map[string]any{provider.StackitMachineLabel: machine}}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := w.foreign.api.UpdateServer(ctx, home.project, home.region, id).UpdateServerPayload(change).Execute()
		cancel()
		if err == nil {
			w.log("%s labels %s as %s's by hand", c.name, id, machine)
			return
		}
		if _, exists := w.cloud.Server(id); !exists || !w.sleep(5*time.Second) {
			return
		}
	}
}

// editName makes a Machine again under its name.
func (c *cluster) editName(rng *rand.Rand, left time.Duration) {
	r := c.find(machineName(rng.IntN(c.world.plan.Machines)))
	if r == nil {
		return
	}
	m, exists := c.api.latestOf(r)
	if !exists || m.DeletionTimestamp != nil {
		return
	}
	id := serverOf(m.Spec.ProviderID)
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || rng.IntN(2) == 0 {
		c.makeAgain(r)
		return
	}
	// The new Machine's process knows nothing of the old server, whose label hides it.
	c.label(id, m.Name+"-old")
	c.world.abandon(id)
	if p := c.running(); p != nil {
		p.crash("before a name is used again")
	}
	c.world.sleep(25 * time.Second) // the new Machine is not taken for a predecessor's work
	c.makeAgain(r)
	c.world.sleep(between(rng, 0, min(left-25*time.Second, 2*time.Minute)))
	c.label(id, m.Name)
	c.collectSoon()
}

func (c *cluster) makeAgain(r *record) {
	m, _ := c.api.latestOf(r)
	c.world.log("%s %s loses its finalizer by hand", c.name, m.Name)
	c.api.drop(r)
	c.want(m.Name, m.Spec.Class.Name)
}

func (w *world) abandon(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned[id] = true
}

// wasAbandoned says that a user has made one of the servers no Machine's. It may be found
// again beside one that was made meanwhile: then there are two by a user's doing, until an
// orphan run.
func (w *world) wasAbandoned(ids ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(ids, func(id string) bool { return w.abandoned[id] })
}

// isAbandoned says that the server is no Machine's by a user's doing.
func (w *world) isAbandoned(server *iaasmock.Server) bool {
	if !w.wasAbandoned(server.ID) {
		return false
	}
	who := ownerOf(server)
	for _, c := range w.clusters {
		if m := c.api.current(who.machine, nil); c.name == who.cluster && m != nil && serverOf(m.Spec.ProviderID) == server.ID {
			return false
		}
	}
	return true
}

// forgetAbandoned: an orphan run has seen to them.
func (w *world) forgetAbandoned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.abandoned)
}

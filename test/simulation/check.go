// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	request, err := buffered(request)
	if err != nil {
		return nil, err
	}
	return serve(d.world.cloud, request)
}

// owner is whose server something is.
type owner struct{ cluster, machine string }

// ownerOf says for whom a server was made: its metadata and its name do, which nobody
// changes. Its labels may be lost, or edited.
func ownerOf(server *iaasmock.Server) owner { return owner{server.Metadata[clusterField], server.Name} }

func serverOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// mayJoin says that the server's Node is there, or may come.
func mayJoin(server *iaasmock.Server) bool {
	return server.Status != iaasmock.StatusDeleting && server.Status != iaasmock.StatusError
}

func anyServer(*iaasmock.Server) bool { return true }

// check is made at every change in the cloud.
func (w *world) check() {
	w.foreign.check(w, false)
	if !w.plan.promised() {
		return
	}
	for who, servers := range w.servers(mayJoin) {
		if len(servers) > 1 && !w.wasAbandoned(servers...) {
			w.violated("%d servers of %s in %s could join at a time", len(servers), who.machine, who.cluster)
		}
	}
}

// servers of the clusters that fit, without second ones from OpenStack.
func (w *world) servers(fits func(*iaasmock.Server) bool) map[owner][]string {
	found := map[owner][]string{}
	for _, server := range w.cloud.Servers() {
		if _, foreign := w.foreign.servers[server.ID]; !foreign && fits(&server) && !w.isAbandoned(&server) && !w.isTwin(server.ID) {
			found[ownerOf(&server)] = append(found[ownerOf(&server)], server.ID)
		}
	}
	return found
}

// mayAsk checks a request before it is carried out: nobody changes what is not its
// own, or deletes the server of a Machine that is to stay.
func (w *world) mayAsk(c call, request *http.Request, by *cluster) {
	var id string
	switch c.operation {
	case opDelete:
		id = serverIDIn(request)
		w.mayDelete(c, id, by)
	case opDeleteNIC, opDeleteVolume:
		w.mayDelete(c, lastSegment(request), by)
		return
	case opCreate:
		w.mayPost(c)
		return
	case opPatch:
		id = w.serverOfNIC(lastSegment(request))
	default:
		return
	}
	server, exists := w.cloud.Server(id)
	if !exists {
		return
	}
	who := ownerOf(&server)
	if _, foreign := w.foreign.servers[id]; foreign || who.cluster != by.name || !c.calledFor(who.machine) {
		w.violated("%s of %s by %s for %s, which it does not belong to", c.operation, id, by.name, c.caller)
	}
	m := by.api.current(who.machine, nil)
	if c.operation == opDelete && m != nil && m.DeletionTimestamp == nil && server.Status == iaasmock.StatusActive && serverOf(m.Spec.ProviderID) == id {
		w.violated("%s runs for %s, which is to stay, and is deleted", id, who.machine)
	}
}

// calledFor says whether the manager's call that the request belongs to is about the
// Machine. Orphan runs are about all of them.
func (c *call) calledFor(machine string) bool {
	return c.caller == "" || c.caller == callerCollector || strings.HasPrefix(c.caller, machine+" ")
}

// promptCodes come back after seconds: any disturbance may bring them about.
var promptCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}

// longestCall is the driver's longest.
const longestCall = 10 * time.Minute

// checkCode checks a driver error's code: one that makes the manager wait for
// minutes, or give up, needs a cause that says so.
func (w *world) checkCode(method string, code codes.Code, err error) {
	if strings.ContainsAny(strings.TrimPrefix(err.Error(), "machine codes error: "), "\n") {
		w.violated("the error of %s has several lines: %v", method, err)
	}
	if leak := secretIn(err.Error()); leak != "" {
		w.violated("the error of %s holds %s", method, leak)
	}
	if method == "GetMachineStatus" && (code == codes.NotFound || code == codes.Uninitialized) {
		return
	}
	if w.disturbed && slices.Contains(promptCodes, code) {
		return
	}
	if code == codes.DeadlineExceeded && w.plan.Boot >= longestCall {
		return
	}
	if code == codes.Unauthenticated && w.plan.Rotations > 0 {
		return
	}
	w.mu.Lock()
	explained := false
	for _, cause := range w.causes {
		explained = explained || slices.Contains(cause.explains, code)
	}
	w.mu.Unlock()
	if !explained {
		w.violated("%s answers %s without a reason: %v", method, code, err)
	}
}

// nodeReady says whether the Machine's Node is Ready: its server runs, with or
// without its allowed addresses.
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

// checkFailure: a Machine that has to be replaced needs a cause that can only end
// so.
func (w *world) checkFailure(c *cluster, m *v1alpha1.Machine) {
	w.mu.Lock()
	spoiled := false
	for _, cause := range w.causes {
		spoiled = spoiled || cause.spoils
	}
	w.mu.Unlock()
	if !spoiled {
		w.violated("%s of %s has failed for good", m.Name, c.name)
	}
}

// settled says whether every Machine runs, or is gone if it is to go.
func (w *world) settled() bool {
	for _, c := range w.clusters {
		for _, r := range c.api.all() {
			m, exists := c.api.latestOf(r)
			if exists && (m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || !w.nodeReady(m)) {
				return false
			}
		}
	}
	return true
}

// checkGone is made when a Machine is gone: so is its server.
func (w *world) checkGone(who owner) {
	if !w.plan.promised() {
		return
	}
	w.checkRemains(who)
	for _, id := range w.servers(w.stays)[who] {
		w.violated("%s of %s is gone, and %s is left", who.machine, who.cluster, id)
	}
}

// stays says that the server would stay if nobody looked for it any more. A DELETE that was
// accepted and a moment in which the project looks empty are taken for the end of a
// deletion.
func (w *world) stays(server *iaasmock.Server) bool {
	return w.plan.Hiccup == 0 || server.Status != iaasmock.StatusDeleting
}

// checkEnd is made when all Machines are gone. What an orphan run has deleted may take its
// time: nobody waits for it.
func (w *world) checkEnd() {
	if !w.plan.promised() {
		return
	}
	if !w.plan.Collects && w.plan.Hiccup == 0 {
		w.foreign.check(w, true)
	}
	for who, ids := range w.servers(func(server *iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting }) {
		w.violated("at the end: %v of %s in %s is left", ids, who.machine, who.cluster)
	}
}

// checkRest is made when all is at rest: each Machine has one server, which nobody
// will look at any more and which lacks nothing, and there is nothing else of ours.
func (w *world) checkRest(when string) {
	w.foreign.check(w, false)
	// A deletion that is stuck in the cloud is asked for again when the Machine goes.
	servers := w.servers(func(server *iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting })
	for _, c := range w.clusters {
		for _, r := range c.api.all() {
			m, _ := c.api.latestOf(r)
			who := owner{c.name, m.Name}
			if ids := servers[who]; len(ids) != 1 || ids[0] != serverOf(m.Spec.ProviderID) {
				w.violated("%s: %s of %s has the servers %v, its ProviderID is %s", when, m.Name, c.name, ids, m.Spec.ProviderID)
			}
			delete(servers, who)
			if m.Spec.Class.Name == classA && !w.initialized(serverOf(m.Spec.ProviderID)) {
				w.violated("%s: %s of %s runs without its allowed addresses", when, m.Name, c.name)
			}
		}
	}
	for who, ids := range servers {
		w.violated("%s: %v of %s in %s is left, and there is no such Machine", when, ids, who.machine, who.cluster)
	}
}

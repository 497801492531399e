// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// check is made at every change in the cloud.
func (w *world) check() {
	w.checkForeign(false)
	if !w.plan.promised() {
		return
	}
	for who, servers := range w.servers(mayJoin) {
		if len(servers) > 1 && !w.wasAbandoned(servers...) {
			w.violated("%d servers of %s in %s could join at a time", len(servers), who.machine, who.cluster)
		}
	}
}

// mayAsk checks a request before it is carried out: nobody changes what is not its
// own, or deletes the server of a Machine that is to stay.
func (w *world) mayAsk(c call, request *http.Request) {
	var id string
	switch c.operation {
	case opDelete:
		id = serverIDIn(request)
		w.mayDelete(c, id)
	case opDeleteNIC, opDeleteVolume:
		w.mayDelete(c, lastSegment(request))
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
	if _, foreign := w.foreign.servers[id]; foreign || who.cluster != c.cluster || !c.calledFor(who.machine) {
		w.violated("%s of %s by %s for %s, which it does not belong to", c.operation, id, c.cluster, c.caller)
	}
	m := w.machine(owner{c.cluster, who.machine})
	if c.operation == opDelete && m != nil && m.DeletionTimestamp == nil && server.Status == iaasmock.StatusActive && serverOf(m.Spec.ProviderID) == id {
		w.violated("%s runs for %s, which is to stay, and is deleted", id, who.machine)
	}
}

// promptCodes come back after seconds: any disturbance may bring them about.
var promptCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}

// longestCall is the driver's longest.
const longestCall = 10 * time.Minute

// checkText checks a driver error's text: it has one line, a reason of its code, and no secret.
func (w *world) checkText(method string, code codes.Code, err error) {
	if strings.ContainsAny(strings.TrimPrefix(err.Error(), "machine codes error: "), "\n") {
		w.violated("the error of %s has several lines: %v", method, err)
	}
	if reason := provider.ReasonIn(err.Error()); reason == "" || reason.Code() != code {
		w.violated("the error of %s has no reason, or one of another code: %v", method, err)
	}
	if leak := secretIn(err.Error()); leak != "" {
		w.violated("the error of %s holds %s", method, leak)
	}
}

func isCreationTimedOut(err error) bool {
	return err != nil && provider.ReasonIn(err.Error()) == provider.ReasonCreationTimedOut
}

// checkCode checks a driver error's code: one that makes the manager wait for
// minutes, or give up, needs a cause that says so.
func (w *world) checkCode(method string, code codes.Code, err error) {
	w.checkText(method, code, err)
	if method == "GetMachineStatus" && (code == codes.NotFound || code == codes.Uninitialized) {
		return
	}
	if w.disturbed && slices.Contains(promptCodes, code) || isCreationTimedOut(err) { // the manager replaces it: checkFailure
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
		w.violated("%s answers %s without a cause: %v", method, code, err)
	}
}

// checkFailure: a Machine that has to be replaced needs a cause that can only end
// so.
func (w *world) checkFailure(who owner) {
	w.mu.Lock()
	spoiled := false
	for _, cause := range w.causes {
		spoiled = spoiled || cause.spoils
	}
	w.mu.Unlock()
	if !spoiled {
		w.violated("%s of %s has failed for good", who.machine, who.cluster)
	}
}

// checkGone is made when a Machine is gone: so is its server.
func (w *world) checkGone(who owner) {
	if !w.plan.promised() {
		return
	}
	w.checkLeftovers(who)
	for _, id := range w.servers(w.stays)[who] {
		w.violated("%s of %s is gone, and %s is left", who.machine, who.cluster, id)
	}
}

// checkEnd is made when all Machines are gone. What an orphan run has deleted may take its
// time: nobody waits for it.
func (w *world) checkEnd() {
	if !w.plan.promised() {
		return
	}
	if !w.plan.Collects && w.plan.Hiccup == 0 {
		w.checkForeign(true)
	}
	for who, ids := range w.servers(func(server *iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting }) {
		w.violated("at the end: %v of %s in %s is left", ids, who.machine, who.cluster)
	}
}

// checkRest is made when all is at rest: each Machine has one server, which nobody
// will look at any more and which lacks nothing, and there is nothing else of ours.
func (w *world) checkRest(when string) {
	w.checkForeign(false)
	// A deletion that is stuck in the cloud is asked for again when the Machine goes.
	servers := w.servers(func(server *iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting })
	for _, api := range w.apis {
		for _, r := range api.all() {
			m, _ := api.latestOf(r)
			who := owner{api.cluster, m.Name}
			if ids := servers[who]; len(ids) != 1 || ids[0] != serverOf(m.Spec.ProviderID) {
				w.violated("%s: %s of %s has the servers %v, its ProviderID is %s", when, m.Name, api.cluster, ids, m.Spec.ProviderID)
			}
			delete(servers, who)
			if m.Spec.Class.Name == classA && !w.initialized(serverOf(m.Spec.ProviderID)) {
				w.violated("%s: %s of %s runs without its allowed addresses", when, m.Name, api.cluster)
			}
		}
	}
	for who, ids := range servers {
		w.violated("%s: %v of %s in %s is left, and there is no such Machine", when, ids, who.machine, who.cluster)
	}
}

// checkSecrets: runs at the same time share the log, so each reports its leaks.
func (w *world) checkSecrets() {
	klog.Flush()
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, leak := range log.leaks {
		w.violated("the log holds %s", leak)
	}
}

// checkForeign compares what is there and nobody's of ours with what was. onlyForeign says
// that nothing else may be there.
func (w *world) checkForeign(onlyForeign bool) {
	for _, change := range w.foreign.changes(w.cloud, onlyForeign) {
		w.violated("%s", change)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// healing is how long after the last fault it takes at most until all Machines run or are gone: calls that were under
// way, the manager's ten minutes after ResourceExhausted, and a creation.
const healing = 25 * time.Minute

// violated records a broken rule.
func (w *world) violated(format string, args ...any) {
	w.logf("BROKEN "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.broken, text) {
		w.broken = append(w.broken, text)
	}
}

// judge waits until everything has come true, and checks it; then all Machines are deleted.
func (w *world) judge() {
	w.await("all Machines run, or are gone", func() bool {
		return !slices.ContainsFunc(w.all(), func(m machine) bool { return m.deleted != nil || !m.running })
	})
	w.checkPosts()
	w.sleep(w.plan.late + w.plan.lag + provider.DefaultSettle)
	if w.plan.settled() {
		w.checkRest()
	}
	w.collect()
	w.checkRest()
	for _, m := range w.all() {
		w.unwant(m.name)
	}
	w.await("all Machines are gone", func() bool { return len(w.all()) == 0 })
	if !w.plan.settled() {
		w.collect()
		w.collect() // what was DELETING for long
	}
	for id, thing := range w.things() {
		if _, isForeign := w.foreign[id]; !isForeign {
			w.violated("%T %s is left although all Machines are gone", thing, id)
		}
	}
}

func (w *world) await(what string, isTrue func() bool) {
	for deadline := time.Now().Add(healing); !isTrue(); w.sleep(5 * time.Second) {
		if time.Now().After(deadline) {
			w.violated("not so within %s: %s", healing, what)
			return
		}
	}
}

// collect makes a run of the orphan collector, and waits for its deletions.
func (w *world) collect() {
	w.collectOrphans()
	w.sleep(time.Minute + w.plan.deletion + w.plan.lag)
}

// ours returns the IDs of the servers of a Machine which fit.
func (w *world) ours(machine string, fits func(iaasmock.Server) bool) (ids []string) {
	for _, server := range w.cloud.Servers() {
		if _, isForeign := w.foreign[server.ID]; !isForeign && server.Name == machine && fits(server) {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// mayJoin reports whether a server's Node is in the cluster, or may still join it.
func mayJoin(server iaasmock.Server) bool {
	return server.Status != iaasmock.StatusDeleting && server.Status != iaasmock.StatusError
}

// checkCloud checks the cloud after each change.
func (w *world) checkCloud() {
	now := w.things()
	for id, was := range w.foreign {
		if !reflect.DeepEqual(was, now[id]) {
			w.violated("%T %s of another owner has changed", was, id)
		}
	}
	for i := range w.plan.machines {
		if ids := w.ours(name(i), mayJoin); w.plan.settled() && len(ids) > 1 {
			w.violated("Machine %s has %d servers that could join", name(i), len(ids))
		}
	}
}

// checkRequest checks a request before it is carried out: nothing is deleted that a Machine needs which is to stay.
func (w *world) checkRequest(c *call) {
	server, _ := w.cloud.Server(c.id)
	w.mu.Lock()
	m, isNeeded := w.machines[server.Name], server.Status == iaasmock.StatusActive
	if w.migrated[c.id] != nil {
		m, isNeeded = w.machines[fromOpenStack], true
	} else if m != nil {
		isNeeded = isNeeded && serverOf(m.providerID) == c.id
	}
	isNeeded = isNeeded && m != nil && m.deleted == nil
	w.mu.Unlock()
	if isNeeded && strings.HasPrefix(c.operation, "Delete") {
		w.violated("%s of %s, which Machine %s needs", c.operation, c.id, m.name)
	}
}

// checkGone checks that a deletion which the driver calls complete is: servers are gone or, if they never ran or the
// API said by mistake that they are gone, at least DELETING.
func (w *world) checkGone(m machine) {
	w.mu.Lock()
	isMistaken := slices.ContainsFunc(w.hits, func(f planned) bool { return f.name == exists && f.operation == opGet })
	w.mu.Unlock()
	isLeft := func(server iaasmock.Server) bool {
		return mayJoin(server) || !isMistaken && !server.LaunchedAt.IsZero()
	}
	if ids := w.ours(m.name, isLeft); w.plan.settled() && len(ids) > 0 {
		w.violated("Machine %s is gone, but its servers %v are not", m.name, ids)
	}
}

// checkRest checks that each Machine has its server, with its allowed addresses, and that there are no others.
func (w *world) checkRest() {
	needed := map[string]bool{}
	for _, m := range w.all() {
		id := serverOf(m.providerID)
		// A deletion that has come to a halt is repeated when the Machine is deleted.
		ids := w.ours(m.name, func(server iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting })
		if server, _ := w.cloud.Server(id); len(ids) != 1 || id != ids[0] || server.Status != iaasmock.StatusActive {
			w.violated("Machine %s with the %s server %s has the servers %v", m.name, server.Status, id, ids)
		}
		needed[id] = true
	}
	for _, server := range w.cloud.Servers() {
		if _, isForeign := w.foreign[server.ID]; !isForeign && !needed[server.ID] && mayJoin(server) {
			w.violated("server %s of %s is left", server.ID, server.Name)
		}
	}
	for _, nic := range w.cloud.NICs() {
		if needed[nic.ServerID] && !slices.Contains(nic.AllowedAddresses, allowed) {
			w.violated("server %s runs without its allowed addresses", nic.ServerID)
		}
	}
}

// checkPosts bounds the number of POSTs: one for each Machine and for each fault that hit one, and one every five
// seconds while they all fail.
func (w *world) checkPosts() {
	w.mu.Lock()
	posts, most := w.counts[opCreate], w.uids
	for _, f := range w.hits {
		if f.operation == opCreate {
			most++
		}
	}
	w.mu.Unlock()
	for _, f := range w.plan.lasting {
		if f.Operation == opCreate || f.Operation == iaasmock.OperationIaaS {
			most += int(f.Duration / (5 * time.Second))
		}
	}
	if w.plan.settled() && posts > most {
		w.violated("%d POSTs of servers: must be at most %d", posts, most)
	}
}

// checkError checks an error for the manager: it needs a reason, and a code after which the manager comes again within
// seconds, unless a fault explains another: one refusal of a read or a DELETE does not.
func (w *world) checkError(method string, code codes.Code, isDecoded bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var explained []codes.Code
	if len(w.hits)+len(w.plan.lasting)+w.plan.crashes > 0 {
		explained = append(explained, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded)
	}
	refusals := 0
	for _, f := range w.hits {
		isWaitedOut := slices.Contains([]string{opList, opGet, opDelete, opNICsOf}, f.operation) && f.in.Status > 0
		if isWaitedOut && f.explains != nil {
			refusals++
		}
		if !isWaitedOut || refusals > 1 {
			explained = append(explained, f.explains...)
		}
	}
	isUsual := method == "GetMachineStatus" && (code == codes.NotFound || code == codes.Uninitialized)
	if !isDecoded || provider.ReasonIn(err.Error()) == "" || !isUsual && !slices.Contains(explained, code) {
		w.broken = append(w.broken, fmt.Sprintf("%s ends with an error that no fault explains: %v", method, err))
	}
}

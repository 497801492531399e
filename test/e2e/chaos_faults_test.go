// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// chaosFaults are what the cloud may do wrong. Left out is what no program can heal
// (a server that never boots or goes) and what waits for somebody (credentials that
// are refused).
var chaosFaults = []iaasmock.Fault{
	{Operation: "CreateServer", Status: http.StatusInternalServerError},
	{Operation: "CreateServer", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}},
	{Operation: "CreateServer", Status: http.StatusBadGateway, Body: "<html>bad gateway</html>", ContentType: "text/html"},
	{Operation: "CreateServer", Status: http.StatusGatewayTimeout, Executed: true},
	{Operation: "CreateServer", DropBefore: true},
	{Operation: "CreateServer", DropAfter: true},
	{Operation: "CreateServer", Delay: 5 * time.Second},
	{Operation: "CreateServer", AnswerDelay: 5 * time.Second},
	{Operation: "CreateServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found"},
	{Operation: "CreateServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "the hypervisor failed"},
	{Operation: "GetServer", Status: http.StatusInternalServerError},
	{Operation: "GetServer", Status: http.StatusNotFound, Body: "<html>no such page</html>", ContentType: "text/html"},
	{Operation: "GetServer", DropBefore: true},
	{Operation: "ListServers", Status: http.StatusServiceUnavailable},
	{Operation: "ListServers", Status: http.StatusOK, Body: "{}"},
	{Operation: "ListServers", DropAfter: true},
	{Operation: "DeleteServer", Status: http.StatusInternalServerError},
	{Operation: "DeleteServer", Status: http.StatusConflict},
	{Operation: "DeleteServer", DropBefore: true},
	{Operation: "DeleteServer", DropAfter: true},
	{Operation: "DeleteServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "the volume is busy"},
	{Operation: "ListServerNICs", Status: http.StatusInternalServerError},
	{Operation: "ListServerNICs", Status: http.StatusNotFound},
	{Operation: "UpdateNic", Status: http.StatusConflict},
	{Operation: "UpdateNic", DropAfter: true},
	{Operation: "Token", Status: http.StatusServiceUnavailable},
	{Operation: "Token", DropBefore: true},
	{Operation: "", Delay: 2 * time.Second},
}

// chaosFaultsAtATime are in place, so that the calls in between succeed.
const chaosFaultsAtATime = 4

// chaosCloud makes the cloud misbehave.
type chaosCloud struct {
	cloud  *iaasmock.Cloud
	random *rand.Rand
	// remove takes away the faults that are in place, the oldest first.
	remove []func()
	counts struct{ injected, crashed int }
}

// act injects a fault for a few calls; one time in ten it ends a server instead.
func (c *chaosCloud) act(context.Context) time.Duration {
	if servers := c.cloud.Servers(); len(servers) > 0 && c.random.IntN(10) == 0 {
		c.crash(servers[c.random.IntN(len(servers))])
	} else {
		c.inject(chaosFaults[c.random.IntN(len(chaosFaults))])
	}
	return between(c.random, 500*time.Millisecond, 3*time.Second)
}

func (c *chaosCloud) inject(fault iaasmock.Fault) {
	if len(c.remove) == chaosFaultsAtATime {
		c.remove[0]()
		c.remove = c.remove[1:]
	}
	fault.Count = 1 + c.random.IntN(3)
	c.remove = append(c.remove, c.cloud.Inject(fault))
	c.counts.injected++
	_, _ = fmt.Fprintf(GinkgoWriter, "cloud: %d times %s answers %d %s %s (dropped before %t, after %t, late by %s, %s)\n",
		fault.Count, fault.Operation, fault.Status, fault.FinalStatus, fault.ErrorMessage,
		fault.DropBefore, fault.DropAfter, fault.Delay, fault.AnswerDelay)
}

// crash takes a server away, or puts it out of order. Its Machine is then replaced.
func (c *chaosCloud) crash(server iaasmock.Server) {
	what := "is gone"
	// The server may have gone by itself meanwhile: that is as good.
	if c.random.IntN(2) == 0 {
		_ = c.cloud.RemoveServer(server.ID)
	} else {
		what = "is out of order"
		_ = c.cloud.SetServerStatus(server.ID, iaasmock.StatusError, "the host has burnt down")
	}
	c.counts.crashed++
	_, _ = fmt.Fprintf(GinkgoWriter, "cloud: server %s (%s) %s\n", server.ID, server.Name, what)
}

func (c *chaosCloud) endFaults() {
	for _, remove := range c.remove {
		remove()
	}
}

// chaosProcesses ends processes with SIGKILL, and pauses the leader for longer than
// its lease lasts.
type chaosProcesses struct {
	env    *localenv.Env
	random *rand.Rand
	counts struct{ leader, standby, paused, manager, apiServer int }
}

func (p *chaosProcesses) act(ctx context.Context) time.Duration {
	choice := p.random.IntN(8)
	if p.counts.paused == 0 {
		choice = 3 // for sure in every run
	}
	switch choice {
	case 0:
		p.counts.standby++
		p.env.KillReplica(3 - p.leader(ctx))
	case 1, 2:
		p.counts.leader++
		p.env.KillReplica(p.leader(ctx))
	case 3:
		p.pause(ctx, p.leader(ctx))
	case 4, 5:
		p.counts.manager++
		p.env.KillManager()
		Expect(p.env.StartManager(ctx)).To(Succeed())
	default:
		p.counts.apiServer++
		p.env.KillAPIServer()
		Expect(p.env.StartAPIServer(ctx)).To(Succeed())
	}
	_, _ = fmt.Fprintf(GinkgoWriter, "processes: ended so far %+v\n", p.counts)
	return between(p.random, 5*time.Second, 15*time.Second)
}

// pause is shorter than settle (30 s): what the paused replica was about to send shows
// before the next leader asks for a server.
func (p *chaosProcesses) pause(ctx context.Context, replica int) {
	resume, ok := p.env.PauseReplica(replica)
	if !ok {
		return
	}
	defer resume()
	p.counts.paused++
	select {
	case <-ctx.Done():
	case <-time.After(between(p.random, 7*time.Second, 15*time.Second)):
	}
}

func (p *chaosProcesses) leader(ctx context.Context) int {
	GinkgoHelper()
	leader, err := p.env.Leader(ctx)
	Expect(err).NotTo(HaveOccurred())
	return max(1, leader)
}

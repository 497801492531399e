// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The operations that the driver calls, as the API's document names them.
const (
	opToken, opCreate, opList, opGet = "Token", "CreateServer", "ListServers", "GetServer"
	opDelete, opNICsOf, opPatch      = "DeleteServer", "ListServerNICs", "UpdateNic"
	opDeleteNIC                      = "DeleteNic"
)

// operations are the same by method and path.
var operations = map[string]string{
	"POST token": opToken, "POST servers": opCreate, "GET servers": opList, "GET servers/*": opGet,
	"DELETE servers/*": opDelete, "GET servers/*/nics": opNICsOf, "GET networks/*/nics": "ListNics",
	"PATCH networks/*/nics/*": opPatch, "DELETE networks/*/nics/*": opDeleteNIC,
}

// fault is what can happen to a request.
type fault struct {
	name string
	// of are the operations that it can hit; nil means all.
	of []string
	// in is the fault in the cloud. late carries the request out after its sender has given up, crash ends the process
	// after the request.
	in          iaasmock.Fault
	late, crash bool
	// explains are the codes, beyond those that the manager retries within seconds, which calls may end with.
	explains []codes.Code
}

// answered is an answer of the API itself.
func answered(status int, message string) iaasmock.Fault {
	return iaasmock.Fault{Status: status, Body: fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message)}
}

// page is a page of a gateway; executed means that the API has carried the request out.
func page(status int, executed bool) iaasmock.Fault {
	return iaasmock.Fault{Status: status, ContentType: "text/html", Executed: executed}
}

// ending is the end of a server's boot or deletion in ERROR.
func ending(message string) iaasmock.Fault {
	return iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: message}
}

// exists is the name of the fault that answers 404 about a server by mistake.
const exists = "404 though it exists"

var faults = []fault{
	{name: "crash before it", crash: true, in: iaasmock.Fault{DropBefore: true}},
	{name: "crash after it", crash: true},
	{name: "lost, carried out late", late: true},
	{name: "crash, carried out late", late: true, crash: true},
	{name: "reset before", in: iaasmock.Fault{DropBefore: true}},
	{name: "answer lost", in: iaasmock.Fault{DropAfter: true}},
	{name: "never answered", in: iaasmock.Fault{NeverAnswers: true}},
	{name: "slow", in: iaasmock.Fault{Delay: 5 * time.Second, AnswerDelay: 4 * time.Second}},
	{name: "500", in: iaasmock.Fault{Status: 500}},
	{name: "500 after it was done", in: iaasmock.Fault{Status: 500, Executed: true}},
	{name: "502 after it was done", in: page(502, true)},
	{name: "503, Retry-After", in: iaasmock.Fault{Status: 503, Header: http.Header{"Retry-After": {"3"}}}},
	{name: "404 of a gateway", in: page(404, false)},
	{name: "429", in: iaasmock.Fault{Status: 429}},
	{name: "401", in: answered(401, "unauthorized"), explains: []codes.Code{codes.Unauthenticated}},
	{name: "403", in: answered(403, "forbidden"), explains: []codes.Code{codes.PermissionDenied, codes.Unauthenticated}},
	{name: "409", of: []string{opCreate, opDelete, opPatch}, in: answered(409, "busy")},
	{name: exists, of: []string{opGet, opDelete}, in: answered(404, "server not found")},
	{name: "404 about the project", of: []string{opGet, opDelete, opList}, in: answered(404, "project not found"),
		explains: []codes.Code{codes.InvalidArgument}},
	{name: "no NIC", of: []string{opNICsOf}, in: iaasmock.Fault{EmptyList: true}},
	{name: "quota", of: []string{opCreate}, in: answered(403, "Quota exceeded for instances"),
		explains: []codes.Code{codes.ResourceExhausted}},
	{name: "no host", of: []string{opCreate}, in: ending("No valid host was found"),
		explains: []codes.Code{codes.ResourceExhausted}},
	{name: "boot fails", of: []string{opCreate}, in: ending("image is broken"),
		explains: []codes.Code{codes.Internal, codes.ResourceExhausted}},
	{name: "deletion fails", of: []string{opDelete}, in: ending("deletion failed"),
		explains: []codes.Code{codes.Internal}},
	{name: "never gone", of: []string{opDelete}, in: iaasmock.Fault{NeverGone: true}},
}

func faultsOf(operation string) []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		return f.of != nil && !slices.Contains(f.of, operation)
	})
}

// planned is a fault of a run's nth request of an operation, counted from 0, and of times-1 after it.
type planned struct {
	fault
	operation  string
	nth, times int
}

// plan is what happens in a run.
type plan struct {
	seed uint64
	// machines is the number of Machines that users create and delete. One more, fromOpenStack, is there from the
	// beginning; hasID means that it has the ProviderID of Gardener's OpenStack provider.
	machines             int
	fromOpenStack, hasID bool
	// boot and deletion are how long a server takes for them, latency is the longest way of a request or an answer.
	boot, deletion, latency time.Duration
	// lag is how long lists lag behind.
	lag time.Duration
	// late is how long after its sender gave up a request may be carried out.
	late time.Duration
	// skew is how far the API server's clock is ahead of the others.
	skew time.Duration
	// period is how long users are active and faults occur.
	period  time.Duration
	faults  []planned
	crashes int
	// forgets is the probability, 0 to 1, with which the manager does not know its last write.
	forgets float64
	// lasting are faults of minutes.
	lasting []iaasmock.Fault
}

// settled reports whether the driver promises that there are never two servers.
func (p *plan) settled() bool { return p.lag+p.late < provider.DefaultSettle }

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func oneIn(random *rand.Rand, n int) bool { return random.IntN(n) == 0 }

// between returns a duration to the nanosecond, so that few moments coincide.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(max(int64(most-least), 1)))
}

// planOf draws the plan of a seed.
func planOf(seed uint64) plan {
	random := rand.New(rand.NewPCG(seed, 0))
	p := plan{
		seed: seed, machines: 1 + random.IntN(4),
		boot:     pick(random, 2*time.Second, 12*time.Second, 40*time.Second),
		deletion: pick(random, time.Second, 5*time.Second, 20*time.Second),
		latency:  pick(random, 5*time.Millisecond, 100*time.Millisecond, 2*time.Second),
		skew:     pick(random, 0, 0, between(random, -9*time.Second, 9*time.Second)),
		period:   time.Duration(2+random.IntN(8)) * time.Minute,
		lag:      pick(random, 0, 0, 3*time.Second, 14*time.Second, 26*time.Second),
	}
	if oneIn(random, 12) {
		return p // no faults
	}
	p.late = pick(random, 0, (provider.DefaultSettle-p.lag)/2, provider.DefaultSettle-p.lag-3*time.Second)
	p.fromOpenStack, p.hasID = oneIn(random, 4), oneIn(random, 2)
	if !p.fromOpenStack && oneIn(random, 8) { // a lost server of OpenStack's is nobody's
		p.lag, p.late = 45*time.Second, 50*time.Second
	}
	p.crashes, p.forgets = pick(random, 0, 0, 1, 3), pick(random, 0, 0.2, 0.6)
	if oneIn(random, 3) {
		p.lasting = append(p.lasting, iaasmock.Fault{
			Operation: pick(random, opCreate, opDelete, opList, opGet, opPatch, iaasmock.OperationIaaS),
			Status:    pick(random, 429, 500, 503), After: between(random, 0, p.period/2),
			Duration: between(random, 10*time.Second, 5*time.Minute),
		})
	}
	p.drawFaults(random)
	return p
}

// drawFaults draws the faults of single requests. Two GETs answered 404 prove a server gone, so at most one is wrong.
func (p *plan) drawFaults(random *rand.Rand) {
	hidden, all := false, slices.Sorted(maps.Values(operations))
	for range pick(random, 0, 5, 15, 40) {
		operation := pick(random, all...)
		one := planned{fault: pick(random, faultsOf(operation)...), operation: operation,
			nth: random.IntN(pick(random, 3, 30)), times: 1 + random.IntN(4)}
		if one.name == exists && operation == opGet {
			if hidden {
				continue
			}
			hidden, one.times = true, 1
		}
		p.faults = append(p.faults, one)
	}
}

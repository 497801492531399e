// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

// Fault is what befalls requests of the driver for an operation, or writes of the manager to Machines
// (opWrite): those of a cluster, by its index, from the nth on, which is counted from 0.
type Fault struct {
	Cluster    int
	Operation  string
	Nth, Times int
	// What happens: one of FaultsOf.
	What  string
	call  callFault
	write writeFault
	// late is how long nothing shows in the cache from that write on.
	late    time.Duration
	trouble *trouble
}

// GoString implements fmt.GoStringer.
func (f Fault) GoString() string { return f.String() }

func (f Fault) String() string {
	text := fmt.Sprintf("%s %d: %s", f.Operation, f.Nth, f.What)
	if f.Times > 1 {
		text += fmt.Sprintf(", %d times", f.Times)
	}
	if f.Cluster > 0 {
		text += fmt.Sprintf(", cluster %d", f.Cluster)
	}
	return text
}

// ends says that the process ends, or stands still.
func (f *Fault) ends() bool {
	return f.call.crashBefore || f.call.crashAfter || f.write.crashBefore || f.write.crashAfter || f.call.pause.length > 0
}

// FaultsOf are all that can befall a request for the operation when it reaches the cloud, or a write.
func FaultsOf(operation string) []Fault {
	all := []Fault{
		{What: "crash before it", call: callFault{crashBefore: true}},
		{What: "crash once it is sent, carried out late", call: callFault{crashBefore: true, late: true}},
		{What: "crash after it", call: callFault{crashAfter: true}},
		{What: "lost", call: callFault{vanish: true}},
		{What: "pause after it", call: callFault{pause: stillness{
			length: 14 * time.Second, renewal: time.Second, fresh: 3 * time.Second}}},
		{What: "pause after it, another leads", call: callFault{pause: stillness{
			length: 50 * time.Second, takeover: leaseDuration, notice: renewDeadline + retryPeriod, fresh: 8 * time.Second}}},
		{What: "the project looks empty from then on", call: callFault{hiccup: longestHiccup}},
		{What: "lost, carried out late", call: callFault{vanish: true, late: true}},
	}
	if operation == opWrite {
		all = []Fault{
			{What: "crash before it", write: writeFault{crashBefore: true}},
			{What: "crash after it", write: writeFault{crashAfter: true}},
			{What: "conflict", write: writeFault{conflict: true}},
			{What: "500", write: writeFault{failed: true}},
			{What: "answer lost", write: writeFault{lost: true}},
			{What: "the cache stands still from then on", late: 3 * time.Minute},
		}
	} else {
		for _, t := range troublesOf(operation) {
			all = append(all, Fault{What: t.name, trouble: t})
		}
	}
	for i := range all {
		all[i].Operation, all[i].Times = operation, 1
	}
	return all
}

// injector says what goes wrong. How long requests and events take depends on the seed and on what they
// are, not on what else is going on.
type injector struct {
	plan  *Plan
	clock clock.Clock
	// over is set once nothing goes wrong any more.
	over atomic.Bool

	mu sync.Mutex
	// counts of requests and writes, by cluster and operation.
	counts map[string]int
	// standsUntil is when the cache of each cluster shows again what happens.
	standsUntil map[string]time.Time
	// operations that were asked for, in order.
	operations []string
}

func newInjector(plan *Plan) *injector {
	return &injector{plan: plan, clock: clock.RealClock{}, counts: map[string]int{}, standsUntil: map[string]time.Time{}}
}

// befalls counts a request or write, and returns its fault; nil if it has none.
func (i *injector) befalls(cluster, operation string) *Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.operations = append(i.operations, operation)
	n := i.counts[cluster+operation]
	i.counts[cluster+operation]++
	for j := range i.plan.Faults {
		f := &i.plan.Faults[j]
		isMeant := f.Operation == operation && clusterName(f.Cluster) == cluster && n >= f.Nth && n < f.Nth+f.Times
		if isMeant && !i.over.Load() {
			return f
		}
	}
	return nil
}

// ways are how long a request's way to the cloud takes, and its answer's back.
func (i *injector) ways(c call) (there, back time.Duration) {
	rng := random(i.plan.Seed, "request", c.cluster, c.operation, c.subject, c.caller, c.repeat)
	return between(rng, time.Millisecond, i.plan.Latency), between(rng, time.Millisecond, i.plan.Latency)
}

// request is what befalls a request when it reaches the cloud.
func (i *injector) request(c call) (callFault, *trouble) {
	f := i.befalls(c.cluster, c.operation)
	if f == nil {
		return callFault{}, nil
	}
	u := f.call
	if u.late {
		rng := random(i.plan.Seed, "late", c.cluster, c.operation, c.subject, c.caller, c.repeat)
		u.lateBy = between(rng, i.plan.Late/2, i.plan.Late)
	}
	return u, f.trouble
}

func (i *injector) write(cluster string) writeFault {
	f := i.befalls(cluster, opWrite)
	if f == nil {
		return writeFault{}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if f.late > 0 {
		i.standsUntil[cluster] = i.clock.Now().Add(f.late)
	}
	return f.write
}

// shown is how long after it an event shows in a process's cache.
func (i *injector) shown(p *process, e manager.Event) time.Duration {
	rng := random(i.plan.Seed, "shown", p.name, e.Resource, e.Name, e.At)
	after := between(rng, time.Millisecond, longestWrite)
	if e.Resource != "machines" {
		return after
	}
	if !i.over.Load() && chance(rng, i.plan.Stale) {
		after = between(rng, 0, longestStale)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(after, i.standsUntil[p.cluster.name].Sub(e.At))
}

// longestStale is the longest time for which a watch shows nothing of an event. Until then the manager's
// writes conflict, five a second.
const longestStale = 10 * time.Second

// trouble is a kind of fault and the codes that it may bring about, beside those
// that tell the manager to come back soon.
type trouble struct {
	name string
	// operations it is for; none means all of the IaaS API.
	operations []string
	fault      iaasmock.Fault
	explains   []codes.Code
	// spoils says that a Machine may fail for good and has to be replaced.
	spoils bool
	// doubles says that the cloud itself makes second servers.
	doubles bool
	// strands says that only the process that made a server can find it again.
	strands bool
	// hides says that a server is not shown that is there.
	hides bool
	// leaves says that NICs or volumes are not shown that are there: where that comes about
	// twice in a row, those of a Machine from OpenStack are left.
	leaves bool
	// forgets says that lists of servers are empty by mistake. Before a POST that
	// makes a second server which nobody can foresee.
	forgets bool
}

const (
	// opWrite is a write of the manager to a Machine.
	opWrite  = "write"
	opToken  = "Token"
	opList   = "ListServers"
	opCreate = "CreateServer"
	opGet    = "GetServer"
	opDelete = "DeleteServer"
	opPatch  = "UpdateNic"

	opServerNICs = "ListServerNICs"
	opNICs       = "ListNics"

	opGetNIC       = "GetNic"
	opDeleteNIC    = "DeleteNic"
	opVolumes      = "ListVolumes"
	opGetVolume    = "GetVolume"
	opDeleteVolume = "DeleteVolume"
)

// opsOfOne are about one NIC or volume of a Machine from OpenStack.
var opsOfOne = []string{opGetNIC, opDeleteNIC, opGetVolume, opDeleteVolume}

// gateway is a fault whose answer is not the API's.
func gateway(status int, executed bool) iaasmock.Fault {
	return iaasmock.Fault{Status: status, Body: "<html>gateway</html>", ContentType: "text/html", Executed: executed}
}

func apiAnswer(status int, message string) iaasmock.Fault {
	return iaasmock.Fault{Status: status, Body: fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message)}
}

// failedDeletion is what a Machine is told that finds its predecessor's server in ERROR.
var failedDeletion = []codes.Code{codes.Internal}

// troubles are the faults that the cloud knows, in the forms that matter to the
// driver.
var troubles = []trouble{
	{name: "reset before", fault: iaasmock.Fault{DropBefore: true}},
	{name: "answer lost", fault: iaasmock.Fault{DropAfter: true}},
	{name: "500", fault: iaasmock.Fault{Status: 500}},
	{name: "500 without a body", fault: iaasmock.Fault{Status: 500, ContentType: "text/plain"}},
	{name: "502 of a gateway", fault: gateway(502, false)},
	{name: "502 after it was done", fault: gateway(502, true)},
	{name: "503 with Retry-After", fault: iaasmock.Fault{Status: 503, Header: http.Header{"Retry-After": {"3"}}}},
	{name: "504 after it was done", fault: gateway(504, true)},
	{name: "408", fault: iaasmock.Fault{Status: 408}},
	{name: "429 with Retry-After", fault: iaasmock.Fault{Status: 429, Header: http.Header{"Retry-After": {"2"}}}},
	{name: "404 of a gateway", fault: gateway(404, false), operations: slices.Concat(opsOfOne, []string{opList, opGet, opDelete, opServerNICs, opNICs, opVolumes, opPatch})},
	{name: "silence before", fault: iaasmock.Fault{Delay: 10 * time.Minute}},
	{name: "silence after it was done", fault: iaasmock.Fault{AnswerDelay: 10 * time.Minute}},
	{name: "slow", fault: iaasmock.Fault{Delay: 5 * time.Second, AnswerDelay: 4 * time.Second}},
	{name: "never answered", fault: iaasmock.Fault{NeverAnswers: true}},
	{name: "half an answer", fault: iaasmock.Fault{HalfAnswer: true}},
	{name: "401 once", fault: iaasmock.Fault{Status: 401}, explains: []codes.Code{codes.Unauthenticated}},
	{name: "403", fault: apiAnswer(403, "forbidden"), explains: []codes.Code{codes.PermissionDenied}},

	{name: "404 though it exists", fault: apiAnswer(404, "server not found"), operations: []string{opGet, opDelete}, hides: true},
	{name: "404 though there is one", fault: apiAnswer(404, "not found"), operations: opsOfOne},
	{name: "404 about the project", fault: apiAnswer(404, "project not found"), operations: []string{opGet, opDelete, opList}},

	{name: "400", fault: apiAnswer(400, "bad request"), operations: []string{opCreate}, explains: []codes.Code{codes.InvalidArgument}},
	{name: "NIC in use", fault: apiAnswer(409, "nic is in use"), operations: []string{opCreate}, explains: []codes.Code{codes.FailedPrecondition}},
	{name: "quota", fault: apiAnswer(403, "Quota exceeded for instances"), operations: []string{opCreate}, explains: []codes.Code{codes.ResourceExhausted}},
	{name: "no host", fault: iaasmock.Fault{Operation: opCreate, FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found"},
		operations: []string{opCreate}, explains: []codes.Code{codes.ResourceExhausted}},
	{name: "boot fails", fault: iaasmock.Fault{Operation: opCreate, FinalStatus: iaasmock.StatusError, ErrorMessage: "image is broken"},
		operations: []string{opCreate}, explains: []codes.Code{codes.Internal}},
	{name: "never boots", fault: iaasmock.Fault{Operation: opCreate, NeverBoots: true}, operations: []string{opCreate}, spoils: true},
	{name: "labels dropped", fault: iaasmock.Fault{Operation: opCreate, DropLabels: true},
		operations: []string{opCreate}, explains: []codes.Code{codes.FailedPrecondition}, spoils: true, strands: true},
	{name: "the answer names another's server", fault: iaasmock.Fault{Operation: opCreate, OtherServer: iaasmock.AnyServer, Executed: true}, operations: []string{opCreate}},
	{name: "the answer names another's server, none is made", fault: iaasmock.Fault{Operation: opCreate, OtherServer: iaasmock.AnyServer}, operations: []string{opCreate}},

	{name: "deletion fails", fault: iaasmock.Fault{Operation: opDelete, FinalStatus: iaasmock.StatusError, ErrorMessage: "deletion failed"},
		operations: []string{opDelete}, explains: failedDeletion},
	{name: "never gone", fault: iaasmock.Fault{Operation: opDelete, NeverGone: true}, operations: []string{opDelete}},
	{name: "stale list", fault: iaasmock.Fault{Operation: opList, Stale: 20 * time.Second}, operations: []string{opList}, hides: true},
	{name: "empty list", fault: iaasmock.Fault{Operation: opList, EmptyList: true}, operations: []string{opList}, forgets: true, hides: true},
	{name: "no NIC of the server", fault: iaasmock.Fault{Operation: opServerNICs, EmptyList: true}, operations: []string{opServerNICs}},
	{name: "no NIC in the network", fault: iaasmock.Fault{Operation: opNICs, EmptyList: true}, operations: []string{opNICs}, leaves: true},
	{name: "no volume in the project", fault: iaasmock.Fault{Operation: opVolumes, EmptyList: true}, operations: []string{opVolumes}, leaves: true},
	{name: "busy", fault: apiAnswer(409, "the server is busy"), operations: []string{opDelete, opPatch, opDeleteNIC, opDeleteVolume}},

	{name: "token endpoint down", fault: iaasmock.Fault{Status: 503}, operations: []string{opToken}},
	{name: "token endpoint missing", fault: gateway(404, false), operations: []string{opToken}},
	{name: "token endpoint resets", fault: iaasmock.Fault{DropAfter: true}, operations: []string{opToken}},
	{name: "token without expiry", fault: iaasmock.Fault{Operation: opToken, TokenWithoutExpiry: true}, operations: []string{opToken}},
	{name: "token seems expired", fault: iaasmock.Fault{Operation: opToken, TokenSkew: -2 * time.Hour}, operations: []string{opToken}},
	{name: "key refused", fault: apiAnswer(400, "invalid assertion"), operations: []string{opToken}, explains: []codes.Code{codes.Unauthenticated}},
}

const presetDroppedLabels = "dropped-labels"

// presetTroubles is what the presets of the mock bring about, which hold for the whole
// fault period.
var presetTroubles = map[string]trouble{
	"no-capacity":       {explains: []codes.Code{codes.ResourceExhausted}},
	"quota-exceeded":    {explains: []codes.Code{codes.ResourceExhausted}},
	"boot-error":        {explains: []codes.Code{codes.Internal}},
	"delete-error":      {explains: failedDeletion},
	"bad-request":       {explains: []codes.Code{codes.InvalidArgument}},
	"too-large":         {explains: []codes.Code{codes.InvalidArgument}},
	"forbidden":         {explains: []codes.Code{codes.PermissionDenied}},
	"unauthorized":      {explains: []codes.Code{codes.Unauthenticated}},
	"stuck-creating":    {spoils: true},
	"duplicate-servers": {doubles: true},
	"empty-lists":       {forgets: true},
	presetDroppedLabels: {explains: []codes.Code{codes.FailedPrecondition}, spoils: true},
}

// troublesOf are those that can meet the operation.
func troublesOf(operation string) []*trouble {
	var fitting []*trouble
	for i := range troubles {
		t := &troubles[i]
		if slices.Contains(t.operations, operation) || (len(t.operations) == 0 && operation != opToken) {
			fitting = append(fitting, t)
		}
	}
	return fitting
}

// betweenHiccups is from the end of a moment in which the project looks empty to the
// beginning of the next.
const betweenHiccups = time.Minute

// hiccup lets the project look empty for a moment now and then, until the fault period is over.
func (w *world) hiccup() {
	length := w.plan.Hiccup
	if length == 0 {
		return
	}
	first := between(random(w.plan.Seed, "first hiccup"), 0, betweenHiccups)
	for after := first; after+length < w.plan.FaultPeriod; after += length + betweenHiccups {
		w.lookEmpty(after, length)
	}
}

// lookEmpty lets the project look empty: lists are empty, GET and DELETE answer 404. What
// is asked for is made all the same.
func (w *world) lookEmpty(after, length time.Duration) {
	if length == 0 {
		return
	}
	w.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, EmptyProject: true, After: after, Duration: length})
	w.spawn(func() {
		if w.sleep(after) {
			w.log("THE PROJECT LOOKS EMPTY for %s", length)
		}
	})
}

// anothers is a server of somebody else, which the answer to this CreateServer names. Its
// labels say whose it is: one without a machine label, of the Machine's name, looks like one
// whose labels the cloud has dropped, one without a cluster label like one from before there
// were any.
func (w *world) anothers(c call) string {
	var ids []string
	for _, server := range w.cloud.Servers() {
		labeled := server.Labels[provider.StackitMachineLabel] != "" && server.Labels[clusterLabel] != ""
		if labeled && ownerOf(&server) != (owner{c.cluster, c.subject}) {
			ids = append(ids, server.ID)
		}
	}
	return pick(random(w.plan.Seed, "another's", c.cluster, c.subject, c.repeat), ids...)
}

// anyOther lets a preset that shows any other server show one that is another's for all.
func (w *world) anyOther(fault iaasmock.Fault) iaasmock.Fault {
	if fault.OtherServer == iaasmock.AnyServer {
		fault.OtherServer = w.anothers(call{cluster: "of none"})
	}
	return fault
}

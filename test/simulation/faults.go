// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

// Fault is a fault of the driver's requests for an operation, or of the manager's writes to Machines. It hits Times of
// them in a row, from the Nth on.
type Fault struct {
	// Cluster is the index of the cluster whose requests are hit, from 0.
	Cluster int
	// Operation is the operation in the API document, such as GetServer; "Token" is a request for an access token,
	// "write" a write of the manager to a Machine.
	Operation string
	// Nth is the first request or write of the operation that is hit, counted from 0; Times is how many are hit.
	Nth, Times int
	// What is the name of the fault, as in FaultsOf.
	What string

	// crashBefore ends the process before the request arrives, crashAfter once it has been executed.
	crashBefore, crashAfter bool
	// late means that a request is executed after its sender has given up, as after a broken connection.
	late bool
	// pause is the pause of the process once a request has been executed.
	pause stillness
	// conflict and failed refuse a write, with a conflict or a 500; lost loses its answer.
	conflict, failed, lost bool
	// stale is how long the cache shows no changes, starting with a write.
	stale time.Duration
	// trouble is the fault in the cloud.
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

// ends reports whether the fault ends or pauses the process.
func (f *Fault) ends() bool { return f.crashBefore || f.crashAfter || f.pause.length > 0 }

// FaultsOf returns all faults that can hit a request for the operation or, for "write", a write of the manager to a
// Machine. Each hits the first request or write of the cluster with index 0, once.
func FaultsOf(operation string) []Fault {
	all := []Fault{
		{What: "crash before it", crashBefore: true},
		{What: "crash once it is sent, carried out late", crashBefore: true, late: true},
		{What: "crash after it", crashAfter: true},
		{What: "pause after it", pause: stillness{length: 14 * time.Second, renewal: time.Second, fresh: 3 * time.Second}},
		{What: "pause after it, another leads", pause: stillness{
			length: 50 * time.Second, takeover: leaseDuration, notice: renewDeadline + retryPeriod, fresh: 8 * time.Second}},
		{What: "lost, carried out late", late: true},
	}
	if operation == opWrite {
		all = []Fault{
			{What: "crash before it", crashBefore: true},
			{What: "crash after it", crashAfter: true},
			{What: "conflict", conflict: true},
			{What: "500", failed: true},
			{What: "answer lost", lost: true},
			{What: "the cache stands still from then on", stale: 3 * time.Minute},
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

// befalls counts a request of a cluster, or a write, and returns its fault.
func (w *world) befalls(cluster, operation string) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operations = append(w.operations, operation)
	n := w.counts[cluster+operation]
	w.counts[cluster+operation]++
	for _, f := range w.plan.Faults {
		isMeant := f.Operation == operation && clusterName(f.Cluster) == cluster && n >= f.Nth && n < f.Nth+f.Times
		if !isMeant || w.faultsOver {
			continue
		}
		if f.stale > 0 {
			w.staleUntil[cluster] = w.clock.Now().Add(f.stale)
		}
		return f
	}
	return Fault{}
}

// shown returns the delay until an event shows in a process's cache.
func (w *world) shown(p *process, e manager.Event) time.Duration {
	rng := random(w.plan.Seed, "shown", p.name, e.Resource, e.Name, e.At)
	after := between(rng, time.Millisecond, longestWrite)
	if e.Resource != "machines" {
		return after
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.faultsOver && chance(rng, w.plan.Stale) {
		after = between(rng, 0, longestStale)
	}
	return max(after, w.staleUntil[p.cluster.name].Sub(e.At))
}

// longestStale is the longest time for which a watch withholds an event. Until then the manager's writes
// conflict, five times a second.
const longestStale = 10 * time.Second

// trouble is a kind of fault with the codes that it may cause, besides those that make the manager retry
// soon.
type trouble struct {
	name string
	// operations are the operations it applies to, unless the fault names one; none means all of the IaaS API.
	operations []string
	fault      iaasmock.Fault
	explains   []codes.Code
	// spoils means that a Machine may fail for good and has to be replaced.
	spoils bool
	// doubles means that the absence of a server cannot be proved: the cloud itself creates duplicates, or lists of
	// servers are empty by mistake, or older than settle.
	doubles bool
	// strands means that only the process that created a server can find it again.
	strands bool
	// hides means that an existing server is not shown.
	hides bool
	// leaves means that existing NICs or volumes are not shown: if that happens twice in a row, the resources of a
	// Machine from OpenStack are left behind.
	leaves bool
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

	opDeleteNIC = "DeleteNic"
)

// operations are all operations of the IaaS API that the driver uses.
var operations = []string{opCreate, opList, opGet, opDelete, opPatch, opServerNICs, opNICs, opDeleteNIC}

// gateway returns a fault with a gateway's answer instead of the API's.
func gateway(status int, executed bool) iaasmock.Fault {
	return iaasmock.Fault{Status: status, Body: "<html>gateway</html>", ContentType: "text/html", Executed: executed}
}

// apiAnswer returns a fault with the API's own answer to an operation, or to any.
func apiAnswer(operation string, status int, message string) iaasmock.Fault {
	body := fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message)
	return iaasmock.Fault{Operation: operation, Status: status, Body: body}
}

// inError returns a fault that makes a server end in ERROR.
func inError(operation, message string) iaasmock.Fault {
	return iaasmock.Fault{Operation: operation, FinalStatus: iaasmock.StatusError, ErrorMessage: message}
}

// failedDeletion are the codes for a Machine whose predecessor's server is in ERROR.
var failedDeletion = []codes.Code{codes.Internal}

// troubles are the faults of the cloud, in the forms that matter to the driver.
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
	{name: "404 of a gateway", fault: gateway(404, false),
		operations: []string{opList, opGet, opDelete, opServerNICs, opNICs, opPatch, opDeleteNIC}},
	{name: "silence before", fault: iaasmock.Fault{Delay: 10 * time.Minute}},
	{name: "silence after it was done", fault: iaasmock.Fault{AnswerDelay: 10 * time.Minute}},
	{name: "slow", fault: iaasmock.Fault{Delay: 5 * time.Second, AnswerDelay: 4 * time.Second}},
	{name: "never answered", fault: iaasmock.Fault{NeverAnswers: true}},
	{name: "half an answer", fault: iaasmock.Fault{HalfAnswer: true}},
	{name: "401 once", fault: iaasmock.Fault{Status: 401}, explains: []codes.Code{codes.Unauthenticated}},
	{name: "403", fault: apiAnswer("", 403, "forbidden"), explains: []codes.Code{codes.PermissionDenied}},

	{name: "404 though it exists", fault: apiAnswer("", 404, "server not found"),
		operations: []string{opGet, opDelete}, hides: true},
	{name: "404 though there is one", fault: apiAnswer("", 404, "not found"), operations: []string{opDeleteNIC}},
	{name: "404 about the project", fault: apiAnswer("", 404, "project not found"),
		operations: []string{opGet, opDelete, opList}},

	{name: "400", fault: apiAnswer(opCreate, 400, "bad request"), explains: []codes.Code{codes.InvalidArgument}},
	{name: "the network is busy", fault: apiAnswer(opCreate, 409, "the network is being updated")},
	{name: "quota", fault: apiAnswer(opCreate, 403, "Quota exceeded for instances"),
		explains: []codes.Code{codes.ResourceExhausted}},
	{name: "no host", fault: inError(opCreate, "No valid host was found"),
		explains: []codes.Code{codes.ResourceExhausted}},
	{name: "boot fails", fault: inError(opCreate, "image is broken"), explains: failedBoots},
	{name: "never boots", fault: iaasmock.Fault{Operation: opCreate, NeverBoots: true}, spoils: true},
	{name: "deletion fails", fault: inError(opDelete, "deletion failed"), explains: failedDeletion},
	{name: "never gone", fault: iaasmock.Fault{Operation: opDelete, NeverGone: true}},
	{name: "stale list", fault: iaasmock.Fault{Operation: opList, Stale: 20 * time.Second}, hides: true},
	{name: "no NIC of the server", fault: iaasmock.Fault{Operation: opServerNICs, EmptyList: true}},
	{name: "no NIC in the network", fault: iaasmock.Fault{Operation: opNICs, EmptyList: true}, leaves: true},
	{name: "busy", fault: apiAnswer("", 409, "the server is busy"),
		operations: []string{opDelete, opPatch, opDeleteNIC}},

	{name: "token endpoint down", fault: iaasmock.Fault{Status: 503}, operations: []string{opToken}},
	{name: "token endpoint missing", fault: gateway(404, false), operations: []string{opToken}},
	{name: "token endpoint resets", fault: iaasmock.Fault{DropAfter: true}, operations: []string{opToken}},
	{name: "token seems expired", fault: iaasmock.Fault{Operation: opToken, TokenSkew: -2 * time.Hour}},
	{name: "key refused", fault: apiAnswer(opToken, 400, "invalid assertion"),
		explains: []codes.Code{codes.Unauthenticated}},
}

// failedBoots are the codes for servers that fail for an unknown reason: for the first of a class, and for
// later ones.
var failedBoots = []codes.Code{codes.Internal, codes.ResourceExhausted}

const presetDroppedLabels, presetFullZone = "dropped-labels", "full-zone"

// presetTroubles maps the mock's presets, which last for the whole fault period, to their effects.
var presetTroubles = map[string]trouble{
	"no-capacity":       {explains: []codes.Code{codes.ResourceExhausted}},
	"quota-exceeded":    {explains: []codes.Code{codes.ResourceExhausted}},
	"boot-error":        {explains: failedBoots},
	"project-404":       {explains: []codes.Code{codes.InvalidArgument}},
	"delete-error":      {explains: failedDeletion},
	"bad-request":       {explains: []codes.Code{codes.InvalidArgument}},
	"too-large":         {explains: []codes.Code{codes.InvalidArgument}},
	"forbidden":         {explains: []codes.Code{codes.PermissionDenied}},
	"unauthorized":      {explains: []codes.Code{codes.Unauthenticated}},
	"stuck-creating":    {spoils: true},
	"duplicate-servers": {doubles: true},
	"empty-lists":       {doubles: true, hides: true},
	"stale-lists":       {doubles: true, hides: true},
	"stale-reads":       {doubles: true, hides: true},
	"empty-project":     {hides: true},
	"random-404":        {hides: true},
	"forbidden-path":    {explains: []codes.Code{codes.PermissionDenied}},
	presetFullZone:      {explains: []codes.Code{codes.ResourceExhausted}},
	presetDroppedLabels: {explains: []codes.Code{codes.FailedPrecondition}, spoils: true},
}

// preset is a fault that lasts for the fault period of a plan.
type preset struct {
	Name  string
	Fault iaasmock.Fault
}

func presets() []preset {
	const noHost = "No valid host was found. There are not enough hosts available."
	return []preset{
		{presetFullZone, iaasmock.Fault{
			Operation: opCreate, Zone: "eu01-1", FinalStatus: iaasmock.StatusError, ErrorMessage: noHost}},
		{"unavailable", iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 503}},
		{"stale-lists", iaasmock.Fault{Operation: opList, Stale: 30 * time.Second}},
	}
}

// troublesOf returns the troubles that apply to the operation.
func troublesOf(operation string) []*trouble {
	var fitting []*trouble
	for i := range troubles {
		t := &troubles[i]
		ofAll := t.fault.Operation == "" && len(t.operations) == 0 && operation != opToken
		if t.fault.Operation == operation || slices.Contains(t.operations, operation) || ofAll {
			fitting = append(fitting, t)
		}
	}
	return fitting
}

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
)

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

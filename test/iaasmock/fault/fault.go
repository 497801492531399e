// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package fault describes faults of the mock of the IaaS API: a Fault selects calls and
// makes them fail or slow down. Presets are ready-made faults; a fault can also be
// written as JSON. A Book holds the injected faults and chooses those that hit a call.
package fault

import (
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// AnyServer is a Fault.OtherServer that is any server.
const AnyServer = "*"

// Fault makes calls of the mock fail or slow down. The first fields select calls, the
// rest describe the effect; unset fields do neither.
//
// If several faults hit a call, only the one injected first applies. Faults that only
// delay always apply as well; their delays add up.
//
// In JSON the fields have the same names, beginning with a small letter, and durations
// are strings such as "1m30s". JSON input has one more field: "preset" names one of
// Presets, which the other fields then change.
type Fault struct {
	// Name is shown in lists of faults. A preset's fault has the preset's name.
	Name string

	// Operation is an operationId of the API document, OperationToken, OperationUnknown,
	// OperationIaaS for all but the token endpoint, or "" for any.
	Operation string
	// Match selects requests; nil selects all. It must not read the body.
	Match func(*http.Request) bool
	// Server, a server's name or ID, selects calls about it: the call that creates the server, and
	// calls with the server or its NIC in the path. Validate refuses it for an Operation that is
	// about no server, such as a list.
	Server string
	// MachineType and Zone select the CreateServer calls that ask for this machine type, and for this
	// availability zone.
	MachineType, Zone string
	// Probability is that of hitting a selected call, up to 1; 0 means 1. A call that is not hit
	// is not counted.
	Probability float64
	// Rate is how many of the selected calls per source address and second pass; the others are hit.
	// With a Status of 429 it simulates a rate limit. 0 lets no call pass.
	Rate float64
	// Burst is how many calls Rate lets pass at once after a quiet period; 0 means 1.
	Burst int
	// Count is the number of calls to hit; 0 means all until it is removed.
	Count int
	// After is how long after Inject it begins.
	After time.Duration
	// Duration is how long it lasts from then on; 0 means until it is removed.
	Duration time.Duration

	// Delay is the time before the call is executed, in addition to the latency.
	Delay time.Duration
	// DelayMax, if larger than Delay, makes the delay random, from Delay to DelayMax.
	DelayMax time.Duration
	// AnswerDelay is the time between the execution of the call and the answer. A client
	// that disconnects meanwhile gets no answer.
	AnswerDelay time.Duration

	// Status, if not 0, is the answer's status; the call is not executed unless Executed is set.
	Status int
	// Body is the body of the answer with Status. With neither Body nor ContentType the answer is
	// an error in the API's form; with only ContentType text/html it is nginx's error page.
	Body string
	// ContentType is the type of Body. Default: application/json.
	ContentType string
	// Header is set on the answer, also without Status.
	Header http.Header
	// Executed also executes the call, as when a gateway times out. Only the answer is
	// replaced, by Status and Body or by OtherServer.
	Executed bool

	// DropBefore resets the connection without executing the call.
	DropBefore bool
	// DropAfter executes the call and resets the connection: the answer is lost.
	DropAfter bool
	// NeverAnswers executes the call, unless there is a Status, and keeps the connection
	// open without an answer until the client disconnects.
	NeverAnswers bool
	// HalfAnswer closes the connection in the middle of the answer's body. An answer
	// without a body is lost as with DropAfter.
	HalfAnswer bool

	// FinalStatus is the server's final state. With CreateServer it replaces
	// ACTIVE, usually by ERROR; with DeleteServer the server is not removed.
	FinalStatus string
	// ErrorMessage is the server's errorMessage in FinalStatus.
	ErrorMessage string
	// NeverBoots keeps the server of CreateServer in CREATING.
	NeverBoots bool
	// NeverGone keeps the server of DeleteServer in DELETING, until the next
	// DeleteServer.
	NeverGone bool
	// Duplicate makes CreateServer create a second server from the same request, which the
	// answer does not show. It has no effect where that is impossible, as with nicIds.
	Duplicate bool
	// DropLabels makes CreateServer ignore the labels of the request.
	DropLabels bool
	// OtherServer makes the answer of CreateServer show another existing server: the server with
	// this name or ID, or with AnyServer any server of the project and region. The requested server
	// is not created unless Executed is set. If there is no such server, the call is executed
	// as usual.
	OtherServer string
	// Stale makes ListServers and GetServer show servers and their states as of this long
	// ago. Servers that were deleted before Inject are not shown.
	Stale time.Duration
	// ForbiddenAfterDelete makes GetServer answer 403 in place of 404: access to a server is lost
	// when it is deleted.
	ForbiddenAfterDelete bool
	// IgnoreSelector makes a list show all resources, regardless of label_selector.
	IgnoreSelector bool
	// OwnBootVolume makes CreateServer name the boot volume itself and keep it after the
	// server, regardless of deleteOnTermination.
	OwnBootVolume bool
	// EmptyList makes a list empty; the call still succeeds.
	EmptyList bool
	// CutOffAt truncates a list to its first CutOffAt items; the call still succeeds. 0 shows
	// all.
	CutOffAt int
	// EmptyProject makes the project look as if it had no servers, NICs and volumes: their
	// lists are empty, GET and DELETE of a single resource answer 404 and do nothing. Without
	// Operation it selects these calls. All others work.
	EmptyProject bool

	// TokenWithoutExpiry makes access tokens without exp. They are valid for the normal
	// lifetime.
	TokenWithoutExpiry bool
	// TokenSkew, with Token, is how far the mock's clock is ahead of the client's
	// (negative: behind). Assertions, iat and exp follow it; the mock still accepts the
	// token for its normal lifetime.
	TokenSkew time.Duration
}

// has reports whether the fault selects the operation.
func (f *Fault) has(operation string) bool {
	if f.EmptyProject && !slices.Contains(emptiedOperations, operation) {
		return false
	}
	return f.Operation == "" || f.Operation == operation || f.Operation == OperationIaaS && operation != OperationToken
}

// hasEffect reports whether the fault has an effect other than a delay.
func (f Fault) hasEffect() bool {
	f.Name, f.Operation, f.Match, f.Server, f.MachineType, f.Zone = "", "", nil, "", "", ""
	f.Probability, f.Rate, f.Burst, f.Count, f.After, f.Duration = 0, 0, 0, 0, 0, 0
	f.Delay, f.DelayMax, f.AnswerDelay = 0, 0, 0
	return !reflect.ValueOf(f).IsZero()
}

// doesNothing reports whether the fault neither delays nor changes anything.
func (f *Fault) doesNothing() bool {
	return !f.hasEffect() && f.Delay == 0 && f.DelayMax == 0 && f.AnswerDelay == 0
}

// Operations are the operations of the mock that a Fault may name: operationIds of the
// API document, and GetProject of the resource manager.
var Operations = []string{
	"CreateNetwork", "CreateNic", "CreateServer", "CreateVolume", "DeleteNetwork", "DeleteNic", "DeleteServer",
	"DeleteVolume", "GetAffinityGroup", "GetImage", "GetKeyPair", "GetMachineType", "GetNetwork", "GetNic", "GetProject",
	"GetProjectDetails", "GetProjectNIC", "GetSecurityGroup", "GetServer", "GetServerLog", "GetSnapshot", "GetVolume",
	"GetVolumePerformanceClass", "ListAffinityGroups", "ListAttachedVolumes", "ListAvailabilityZones",
	"ListImages", "ListKeyPairs", "ListMachineTypes", "ListNetworks", "ListNics", "ListProjectNICs",
	"ListQuotas", "ListSecurityGroups", "ListServerNICs", "ListServers", "ListVolumePerformanceClasses",
	"ListVolumes", "UpdateNic", "UpdateServer", "UpdateVolume",
}

// Operations that a Fault may name besides those in Operations.
const (
	// OperationIaaS is every call except those of the token endpoint, which is a separate
	// service.
	OperationIaaS = "IaaS"
	// OperationToken is a call of a token endpoint: for keys, or for workload identities.
	OperationToken = "Token"
	// OperationUnknown is a call that the mock does not implement.
	OperationUnknown = "Unknown"
)

const operationCreate = "CreateServer"

// operationsOfServers are the operations on a server, which they create or identify by its ID or by its NIC's.
var operationsOfServers = []string{
	operationCreate, "GetServer", "UpdateServer", "DeleteServer", "GetServerLog", "ListServerNICs", "ListAttachedVolumes",
	"GetProjectNIC", "GetNic", "UpdateNic", "DeleteNic",
}

// listOperations returns the operations that answer with a list, except the given ones.
func listOperations(without ...string) (lists []string) {
	without = append(without, "ListQuotas") // its answer is one object
	for _, operation := range Operations {
		if strings.HasPrefix(operation, "List") && !slices.Contains(without, operation) {
			lists = append(lists, operation)
		}
	}
	return lists
}

// emptiedOperations are the operations that EmptyProject works with: lists, reads and deletions
// of servers, NICs and volumes.
var emptiedOperations = []string{
	"ListServers", "GetServer", "GetServerLog", "DeleteServer", "ListServerNICs", "ListAttachedVolumes", "ListProjectNICs",
	"GetProjectNIC", "ListNics", "GetNic", "DeleteNic", "ListVolumes", "GetVolume", "DeleteVolume",
}

// Spread returns a random duration from 0 to span.
func Spread(rng *rand.Rand, span time.Duration) time.Duration {
	if span <= 0 {
		return 0
	}
	return time.Duration(rng.Float64() * float64(span))
}

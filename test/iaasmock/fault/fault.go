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

// AnyServer is a value of Fault.OtherServer: it selects any existing server.
const AnyServer = "*"

// Fault makes calls of the mock fail or slow down. The first fields select calls, the others define
// the effect. Unset fields have no effect.
//
// If several faults hit a call, only the one injected first applies. Faults that only
// delay always apply as well; their delays add up.
//
// In JSON the fields have the same names, beginning with a small letter, and durations
// are strings such as "1m30s". JSON input has one more field: "preset" names one of
// Presets, which the other fields then change.
type Fault struct {
	// Name is the name of the fault in lists. The fault of a preset has the preset's name.
	Name string

	// Operation selects calls by operation: one of Operations, OperationToken, OperationUnknown, or
	// OperationIaaS for all calls except calls of the token endpoints; "" selects all calls.
	Operation string
	// Match selects requests; nil selects all. It must not read the body.
	Match func(*http.Request) bool
	// Server selects the calls about one server, by its name or ID: the call that creates it, and
	// calls with the server or its NIC in the path. It is invalid for an Operation that does not
	// concern one server, such as a list.
	Server string
	// MachineType and Zone select CreateServer calls with this machine type, and with this
	// availability zone.
	MachineType, Zone string
	// Probability is the probability, up to 1, of hitting a selected call; 0 means 1. Calls that
	// are not hit do not count towards Count.
	Probability float64
	// Rate is the number of selected calls per second and source address that the fault lets pass;
	// it hits all others. 0 lets no call pass. With Status 429 the fault simulates a rate limit.
	Rate float64
	// Burst is the number of calls that Rate lets pass at once after a quiet period; 0 means 1.
	Burst int
	// Count is the number of calls to hit; 0 means no limit.
	Count int
	// After is the time from Inject until the fault begins.
	After time.Duration
	// Duration is the time from the start of the fault to its end; 0 means until it is removed.
	Duration time.Duration

	// Delay is the time before the call is executed, in addition to the latency.
	Delay time.Duration
	// DelayMax, if larger than Delay, makes the delay random, from Delay to DelayMax.
	DelayMax time.Duration
	// AnswerDelay is the time between the execution of the call and the answer.
	AnswerDelay time.Duration

	// Status is the HTTP status of the answer; 0 means no change. The call is not executed unless
	// Executed is set.
	Status int
	// Body is the body of an answer with Status. Without Body and ContentType the answer is an
	// error in the API's form; with only ContentType text/html it is nginx's error page.
	Body string
	// ContentType is the content type of Body. Default: application/json.
	ContentType string
	// Header holds header fields that are added to the answer, with or without Status.
	Header http.Header
	// Executed executes the call although Status and Body, or OtherServer, replace its answer, as
	// when a gateway times out.
	Executed bool

	// DropBefore resets the connection without executing the call.
	DropBefore bool
	// DropAfter executes the call and resets the connection: the answer is lost.
	DropAfter bool
	// NeverAnswers keeps the connection open without an answer until the client disconnects. The
	// call is executed, unless Status prevents it.
	NeverAnswers bool
	// HalfAnswer closes the connection in the middle of the answer's body. An answer
	// without a body is lost as with DropAfter.
	HalfAnswer bool

	// FinalStatus is the final state of the server. After CreateServer it replaces ACTIVE, usually
	// with ERROR; after DeleteServer the server enters this state instead of being removed.
	FinalStatus string
	// ErrorMessage is the errorMessage of the server in FinalStatus.
	ErrorMessage string
	// NeverBoots keeps the server created by CreateServer in CREATING.
	NeverBoots bool
	// NeverGone keeps the server that DeleteServer deletes in DELETING, until the next
	// DeleteServer.
	NeverGone bool
	// Duplicate makes CreateServer create a second server from the same request. The answer shows
	// only the first. Duplicate has no effect on requests that can succeed only once, such as those
	// with nicIds.
	Duplicate bool
	// DropLabels makes CreateServer ignore the labels of the request.
	DropLabels bool
	// OtherServer makes the answer of CreateServer show another, existing server: the server with
	// this name or ID or, for AnyServer, any server of the project and region. The requested server
	// is not created unless Executed is set. If no such server exists, OtherServer has no effect.
	OtherServer string
	// Stale makes ListServers or GetServer show the servers and states as of this much time ago.
	// Servers that were deleted before Inject are not shown.
	Stale time.Duration
	// ForbiddenAfterDelete makes GetServer answer 403 instead of 404, as if the deletion of a
	// server also removed access to it.
	ForbiddenAfterDelete bool
	// IgnoreSelector makes a list show all resources, regardless of label_selector.
	IgnoreSelector bool
	// OwnBootVolume makes CreateServer choose the boot volume's name, and keep the volume after the
	// server's deletion, regardless of deleteOnTermination.
	OwnBootVolume bool
	// EmptyList makes a list empty, with the status of success.
	EmptyList bool
	// CutOffAt truncates a list to its first CutOffAt items, with the status of success; 0 means no
	// limit.
	CutOffAt int
	// EmptyProject makes the project seem to have no servers, NICs or volumes: their lists are
	// empty, and GET and DELETE of a single resource answer 404 and do nothing. Without Operation,
	// the fault selects only these calls.
	EmptyProject bool

	// TokenWithoutExpiry issues access tokens without exp. They are valid for the normal lifetime.
	TokenWithoutExpiry bool
	// TokenSkew is how far the token endpoint's clock is ahead of the client's (negative: behind),
	// for the operation Token. It affects the check of assertions and the claims iat and exp; the
	// mock still accepts the token for its normal lifetime.
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

// Operations lists the operations of the mock that a Fault may select: operationIds of the API
// document, and GetProject of the resource manager.
var Operations = []string{
	"CreateNetwork", "CreateNic", "CreateServer", "CreateVolume", "DeleteNetwork", "DeleteNic", "DeleteServer",
	"DeleteVolume", "GetAffinityGroup", "GetImage", "GetKeyPair", "GetMachineType", "GetNetwork", "GetNic", "GetProject",
	"GetProjectDetails", "GetProjectNIC", "GetSecurityGroup", "GetServer", "GetServerLog", "GetSnapshot", "GetVolume",
	"GetVolumePerformanceClass", "ListAffinityGroups", "ListAttachedVolumes", "ListAvailabilityZones",
	"ListImages", "ListKeyPairs", "ListMachineTypes", "ListNetworks", "ListNics", "ListProjectNICs",
	"ListQuotas", "ListSecurityGroups", "ListServerNICs", "ListServers", "ListVolumePerformanceClasses",
	"ListVolumes", "UpdateNic", "UpdateServer", "UpdateVolume",
}

// Further operations that a Fault may select, in addition to Operations.
const (
	// OperationIaaS selects every call except calls of the token endpoint, which is a separate
	// service.
	OperationIaaS = "IaaS"
	// OperationToken selects calls of the token endpoints, for keys and for workload identities.
	OperationToken = "Token"
	// OperationUnknown selects calls that the mock does not implement.
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

// Spread returns a random duration from 0 to span, and 0 for a negative span.
func Spread(rng *rand.Rand, span time.Duration) time.Duration {
	if span <= 0 {
		return 0
	}
	return time.Duration(rng.Float64() * float64(span))
}

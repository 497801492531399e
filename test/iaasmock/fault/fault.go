// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package fault describes faults of the mock of the IaaS API: a Fault selects calls and
// makes them fail or slow down. A fault can also be written as JSON. A Book holds the
// injected faults and chooses those that hit a call.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Fault makes calls of the mock fail or slow down. The first fields select calls, the others define
// the effect. Unset fields have no effect; neither has a field at a call that it does not concern.
//
// If several faults hit a call, only the one injected first applies. Faults that only
// delay always apply as well; their delays add up.
type Fault struct {
	// Operation selects calls by operation: one of Operations, OperationToken, OperationUnknown, or
	// OperationIaaS for all calls except calls of the token endpoints; "" selects all calls.
	Operation string `json:"operation,omitempty"`
	// Match selects requests; nil selects all. It must not read the body.
	Match func(*http.Request) bool `json:"-"`
	// Server selects the calls about one server, by its name or ID: the call that creates it, and
	// calls with the server or its NIC in the path.
	Server string `json:"server,omitempty"`
	// MachineType and Zone select CreateServer calls with this machine type, and with this
	// availability zone.
	MachineType string `json:"machineType,omitempty"`
	Zone        string `json:"zone,omitempty"`
	// Probability is the probability, up to 1, of hitting a selected call; 0 means 1. Calls that
	// are not hit do not count towards Count.
	Probability float64 `json:"probability,omitempty"`
	// Rate is the number of selected calls per second and source address that the fault lets pass;
	// it hits all others. 0 lets no call pass. With Status 429 the fault simulates a rate limit.
	Rate float64 `json:"rate,omitempty"`
	// Burst is the number of calls that Rate lets pass at once after a quiet period; 0 means 1.
	Burst int `json:"burst,omitempty"`
	// Count is the number of calls to hit; 0 means no limit.
	Count int `json:"count,omitempty"`
	// After is the time from Inject until the fault begins.
	After time.Duration `json:"after,omitempty"`
	// Duration is the time from the start of the fault to its end; 0 means until it is removed.
	Duration time.Duration `json:"duration,omitempty"`

	// Delay is the time before the call is executed, in addition to the latency.
	Delay time.Duration `json:"delay,omitempty"`
	// AnswerDelay is the time between the execution of the call and the answer.
	AnswerDelay time.Duration `json:"answerDelay,omitempty"`

	// Status is the HTTP status of the answer; 0 means no change. The call is not executed unless
	// Executed is set.
	Status int `json:"status,omitempty"`
	// Body is the body of an answer with Status. Without Body and ContentType the answer is an
	// error in the API's form; with only ContentType text/html it is nginx's error page.
	Body string `json:"body,omitempty"`
	// ContentType is the content type of Body. Default: application/json.
	ContentType string `json:"contentType,omitempty"`
	// Header holds header fields that are added to the answer, with or without Status.
	Header http.Header `json:"header,omitempty"`
	// Executed executes the call although Status and Body replace its answer, as when a gateway
	// times out.
	Executed bool `json:"executed,omitempty"`

	// DropBefore resets the connection without executing the call.
	DropBefore bool `json:"dropBefore,omitempty"`
	// DropAfter executes the call and resets the connection: the answer is lost.
	DropAfter bool `json:"dropAfter,omitempty"`
	// NeverAnswers keeps the connection open without an answer until the client disconnects. The
	// call is executed, unless Status prevents it.
	NeverAnswers bool `json:"neverAnswers,omitempty"`
	// HalfAnswer closes the connection in the middle of the answer's body. An answer
	// without a body is lost as with DropAfter.
	HalfAnswer bool `json:"halfAnswer,omitempty"`

	// FinalStatus is the final state of the server. After CreateServer it replaces ACTIVE, usually
	// with ERROR; after DeleteServer the server enters this state instead of being removed.
	FinalStatus string `json:"finalStatus,omitempty"`
	// ErrorMessage is the errorMessage of the server in FinalStatus.
	ErrorMessage string `json:"errorMessage,omitempty"`
	// NeverBoots keeps the server created by CreateServer in CREATING.
	NeverBoots bool `json:"neverBoots,omitempty"`
	// NeverGone keeps the server that DeleteServer deletes in DELETING, until the next
	// DeleteServer.
	NeverGone bool `json:"neverGone,omitempty"`
	// Stale makes ListServers show the servers and states as of this much time ago.
	// Servers that were deleted before Inject are not shown.
	Stale time.Duration `json:"stale,omitempty"`
	// IgnoreSelector makes a list show all resources, regardless of label_selector.
	IgnoreSelector bool `json:"ignoreSelector,omitempty"`
	// EmptyList makes a list empty, with the status of success.
	EmptyList bool `json:"emptyList,omitempty"`
	// CutOffAt truncates a list to its first CutOffAt items, with the status of success; 0 means no
	// limit.
	CutOffAt int `json:"cutOffAt,omitempty"`
	// EmptyProject makes the project seem to have no servers, NICs or volumes: their lists are
	// empty, and GET and DELETE of a single resource answer 404 and do nothing. Without Operation,
	// the fault selects only these calls.
	EmptyProject bool `json:"emptyProject,omitempty"`
	// TokenSkew is how far the token endpoint's clock is ahead of the client's (negative: behind),
	// for the operation Token. It affects the check of assertions and the claims iat and exp; the
	// mock still accepts the token for its normal lifetime.
	TokenSkew time.Duration `json:"tokenSkew,omitempty"`
}

// Operations lists the operations of the mock that a Fault may select: operationIds of the API
// document.
var Operations = []string{
	"CreateNic", "CreateServer", "CreateVolume", "DeleteNic", "DeleteServer", "DeleteVolume",
	"GetImage", "GetKeyPair", "GetNetwork", "GetProjectNIC", "GetServer", "GetServerLog",
	"GetVolume", "ListAvailabilityZones", "ListMachineTypes", "ListNics", "ListProjectNICs",
	"ListQuotas", "ListServerNICs", "ListServers",
	"ListVolumes", "UpdateNic", "UpdateServer",
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

// emptied are the operations that EmptyProject works with: lists, reads and deletions of servers,
// NICs and volumes.
var emptied = []string{
	"ListServers", "GetServer", "GetServerLog", "DeleteServer", "ListServerNICs", "ListProjectNICs", "GetProjectNIC",
	"ListNics", "DeleteNic", "ListVolumes", "GetVolume", "DeleteVolume",
}

// has reports whether the fault selects the operation.
func (f *Fault) has(operation string) bool {
	if f.EmptyProject && !slices.Contains(emptied, operation) {
		return false
	}
	return f.Operation == "" || f.Operation == operation || f.Operation == OperationIaaS && operation != OperationToken
}

// onlyDelays reports whether the fault has no effect other than a delay.
func (f Fault) onlyDelays() bool {
	f.Operation, f.Match, f.Server, f.MachineType, f.Zone = "", nil, "", "", ""
	f.Probability, f.Rate, f.Burst, f.Count, f.After, f.Duration = 0, 0, 0, 0, 0, 0
	f.Delay, f.AnswerDelay = 0, 0
	return reflect.ValueOf(f).IsZero()
}

// Validate returns an error for a fault that selects no call or does nothing; nil if it is valid.
func (f *Fault) Validate() error {
	known := append([]string{"", OperationIaaS, OperationToken, OperationUnknown}, Operations...)
	switch {
	case !slices.Contains(known, f.Operation):
		return fmt.Errorf("operation: unknown %q; known: %s", f.Operation, strings.Join(known[1:], ", "))
	case f.Probability < 0 || f.Probability > 1:
		return fmt.Errorf("probability: invalid %v; want more than 0 and at most 1", f.Probability)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status: invalid %d; want 200 to 599", f.Status)
	case f.onlyDelays() && f.Delay == 0 && f.AnswerDelay == 0:
		return errors.New(`the fault does nothing; set a field such as "status":503, or name a preset`)
	}
	return nil
}

// SourceLimit returns a fault that limits each source address to rate calls per second, and burst
// calls at once; rate 0 lets no call pass. STACKIT limits all calls of a source address together and
// sends no Retry-After: stackit-s3-provisioner recorded this answer of the object-storage API
// (2026-09-02). Clients behind one address share the limit.
func SourceLimit(rate float64, burst int) Fault {
	return Fault{Operation: OperationIaaS, Rate: rate, Burst: burst, Status: http.StatusTooManyRequests,
		Body: `{"status":429,"error":"Too Many Requests","message":"rate limit on IP level exceeded; ` +
			`please try again later"}`}
}

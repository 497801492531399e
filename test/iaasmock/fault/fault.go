// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package fault says what can go wrong in the mock of the IaaS API: a Fault selects calls and
// says what happens to them; presets, flags, JSON and scenario files are ways to write one. A
// Book holds the faults that are in force, and decides which of them meets a call.
package fault

import (
	"net/http"
	"time"
)

// Operations of a Fault beside those of the API document.
const (
	// OperationIaaS stands for every call but those of the token endpoint, which is a
	// service of its own.
	OperationIaaS = "IaaS"
	// OperationToken is a call of the token endpoint.
	OperationToken = "Token"
	// OperationUnknown is a call that the mock does not know.
	OperationUnknown = "Unknown"
)

const (
	operationCreate = "CreateServer"
	statusError     = "ERROR"
)

// How Fault.Delay to Fault.DelayMax is spread.
const (
	// DelayUniform makes every time between them as likely. The default.
	DelayUniform = "uniform"
	// DelayNormal makes times in the middle likely.
	DelayNormal = "normal"
	// DelayLongTail keeps most calls near Delay and lets few take very long: the
	// mean is a tenth of the way.
	DelayLongTail = "longtail"
)

// Fault is something that goes wrong. The first fields say for which calls, the
// rest what happens to them; a field that is not set narrows nothing down and
// does nothing.
//
// Of several faults that hit a call the one injected first is used, alone, except
// for faults that only delay: all of their delays add up, and another fault is
// used beside them.
//
// In JSON the fields have the same names, beginning with a small letter, and
// durations are strings such as "1m30s". Reading knows one more: "preset" names
// one of Presets, which the other fields then change.
type Fault struct {
	// Name is for people: what shows faults shows it. A preset's is that of the
	// preset.
	Name string

	// Operation is the operationId of the official API document, "Token" for
	// the token endpoint, "Unknown" for what the mock does not know,
	// OperationIaaS for all but "Token", "" for any.
	Operation string
	// Match narrows it down; nil fits every request. It must not read the body.
	Match func(*http.Request) bool
	// Server and LabelSelector narrow it down to calls about one server: the one
	// to be made, the one in the path, or that of the NIC in the path. A call
	// about none, such as a list, does not fit then.
	//
	// Server is a server's name or ID.
	Server string
	// LabelSelector has the grammar of Kubernetes: "app=a,tier in (b,c),!d".
	LabelSelector string
	// Probability that it hits a call that fits, up to 1; 0 stands for 1. A call
	// that it spares counts nowhere.
	Probability float64
	// Count is how many calls it hits; 0 means all until it is removed.
	Count int
	// After is how long after Inject it begins.
	After time.Duration
	// Duration is how long it lasts from then on; 0 means until it is removed.
	Duration time.Duration

	// Delay is waited first, in addition to the latency.
	Delay time.Duration
	// DelayMax makes the delay random, from Delay to this, if it is more.
	DelayMax time.Duration
	// DelayDistribution is DelayUniform (also if empty), DelayNormal or
	// DelayLongTail.
	DelayDistribution string
	// AnswerDelay holds the answer back; the call is carried out before. A client
	// that leaves meanwhile never hears of it.
	AnswerDelay time.Duration

	// Status is answered instead of doing anything, if it is not 0.
	Status int
	// Body is answered with Status. With neither Body nor ContentType the
	// answer has the API's own error form.
	Body string
	// ContentType belongs to Body; default application/json.
	ContentType string
	// Header is added to the answer, also without Status.
	Header http.Header
	// Executed: the call is carried out all the same, only its answer is
	// replaced by Status and Body, as when a gateway gave up waiting.
	Executed bool

	// DropBefore resets the connection; nothing was done.
	DropBefore bool
	// DropAfter carries the call out and resets the connection: the answer is
	// lost.
	DropAfter bool
	// NeverAnswers carries the call out, unless there is a Status, and keeps
	// the connection open without an answer until the client leaves.
	NeverAnswers bool
	// HalfAnswer ends the connection in the middle of the answer's body. An
	// answer without a body is lost as with DropAfter.
	HalfAnswer bool
	// RefuseConnections refuses new connections and resets calls on those that
	// are open, as if nothing was running. It is about no call in particular:
	// nothing may narrow it down. Only a Listener can refuse, elsewhere calls
	// are reset.
	RefuseConnections bool

	// FinalStatus, with CreateServer: the state the server ends in instead of
	// ACTIVE, usually StatusError. With DeleteServer: the state it ends in
	// instead of being gone. With StartServer, StopServer, DeallocateServer,
	// RebootServer, RescueServer, UnrescueServer and ResizeServer: the state it
	// ends in instead of the action's own.
	FinalStatus string
	// ErrorMessage is the server's errorMessage in FinalStatus.
	ErrorMessage string
	// NeverBoots, with CreateServer: it stays CREATING.
	NeverBoots bool
	// NeverGone, with DeleteServer: it stays DELETING, until the next
	// DeleteServer.
	NeverGone bool
	// Duplicate, with CreateServer: a second server is made from the same
	// request, which the answer does not tell of; none if there cannot be a
	// second one, as when NICs were handed in.
	Duplicate bool
	// Stale, with ListServers and GetServer: they show which servers there were,
	// and in which state, that long ago. Servers that were gone before Inject
	// are not shown.
	Stale time.Duration
	// EmptyList, with a list: it shows nothing, by mistake, and the answer is a
	// success.
	EmptyList bool

	// TokenWithoutExpiry, with Token: the access token has no exp. It is valid
	// as long as any other.
	TokenWithoutExpiry bool
	// TokenSkew, with Token: the cloud's clock is ahead of the client's by this,
	// behind if negative. Assertions are judged and tokens dated by it; the
	// cloud takes these tokens for their lifetime all the same.
	TokenSkew time.Duration
}

// ReplacesAnswer says that calls are answered with the fault's Status.
func (f *Fault) ReplacesAnswer() bool { return f.Status != 0 }

// has: the operation is one that the fault is for.
func (f *Fault) has(operation string) bool {
	return f.Operation == "" || f.Operation == operation || f.Operation == OperationIaaS && operation != OperationToken
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// call is an API request on its way.
type call struct {
	// number counts the requests of the run, from 1.
	number int
	// cluster whose process asks; operation of the API; subject is what it is
	// about, in the trace's names.
	cluster, operation, subject string
	// process that asks.
	process string
	// caller is for whom the request is made; "" if for several, as a list is.
	caller string
	// repeat counts earlier requests of the same kind for this caller.
	repeat int
}

func (c call) String() string {
	text := fmt.Sprintf("%s   %s %s #%d", c.process, c.operation, c.subject, c.repeat)
	if c.caller != "" {
		text += " for " + c.caller
	}
	return text
}

// calledFor says whether the manager's call that the request belongs to is about the
// Machine. Orphan runs are about all of them.
func (c *call) calledFor(machine string) bool {
	return c.caller == "" || c.caller == callerCollector || strings.HasPrefix(c.caller, machine+" ")
}

// caller is the key of who calls the driver, in the context of the call.
type caller struct{}

// calledBy lets two calls that ask for the same at the same moment differ in what
// befalls them: which of them is the first would be the scheduler's choice.
func calledBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, caller{}, who)
}

// callerCollector is who makes the calls of an orphan run.
const callerCollector = "collector"

// callFault is what happens to a request.
type callFault struct {
	// there and back are how long its ways take.
	there, back time.Duration
	trouble     *trouble
	// vanish: the sender hears of a broken connection. late is when the request is
	// carried out all the same; 0 means never.
	vanish bool
	late   time.Duration
	// hiccup is for how long the project looks empty from then on.
	hiccup time.Duration
	// pause of the process once the request is carried out.
	pause stillness
	// The process crashes before the request is sent, or once it is carried out.
	// With late, what was "not sent" is carried out that much later.
	crashBefore, crashAfter bool
}

// answer is a driver call that has ended.
type answer struct {
	number                   int
	cluster, machine, method string
	repeat                   int
}

// answerFault is what happens to an answer: the process crashes before the manager
// makes use of it, or after it has written down what follows from it; or that
// write fails.
type answerFault struct {
	crashBefore, crashAfter, conflict bool
}

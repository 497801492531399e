// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Storm is a time in which the cloud does less than it is asked for.
type Storm struct {
	// Operation that fails; "" is all of them.
	Operation string
	// Status is the answer; 0 resets connections.
	Status int
	// Rate is how many calls a second are carried out all the same; 0 is none.
	Rate int
	// From the beginning of the run, For that long; For is 0 if there is no storm.
	From, For time.Duration
}

// fault is the storm as the mock's fault.
func (s Storm) fault() iaasmock.Fault {
	fault := iaasmock.Fault{Operation: s.Operation, Status: s.Status, DropBefore: s.Status == 0, After: s.From, Duration: s.For}
	if s.Operation == "" {
		fault.Operation = iaasmock.OperationIaaS
	}
	if s.Rate > 0 {
		limit := rate.NewLimiter(rate.Limit(s.Rate), s.Rate)
		fault.Match = func(*http.Request) bool { return !limit.Allow() }
	}
	return fault
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// Types of package fault for tests, which then need only this package.
type (
	// Fault makes calls of the mock fail or slow down; see package fault.
	Fault = fault.Fault
	// ActiveFault is an injected fault that has not ended.
	ActiveFault = fault.Active
)

// OperationIaaS is a Fault.Operation that selects all calls except calls of the token endpoints.
const OperationIaaS = fault.OperationIaaS

// Inject adds a fault, and returns a function that removes it; calls that the fault has hit are not
// affected. Inject panics if the fault is invalid.
func (c *Cloud) Inject(f Fault) (remove func()) {
	id := c.inject(f).ID
	return func() { c.faults.Remove(id) }
}

// Faults returns the faults that have not ended, including faults that have not begun, in the order
// of injection.
func (c *Cloud) Faults() []ActiveFault { return c.faults.Active(c.clock.Now()) }

// ClearFaults removes all faults.
func (c *Cloud) ClearFaults() { c.faults.Clear() }

func (c *Cloud) inject(f Fault) ActiveFault {
	if err := f.Validate(); err != nil {
		panic("iaasmock: " + err.Error())
	}
	if f.Stale > 0 {
		c.locked(func(time.Time) { c.keepGoneFor = max(c.keepGoneFor, f.Stale) })
	}
	return c.faults.Add(f, c.clock.Now(), c.random.Float64)
}

// hidden returns a 404 for the server, NIC or volume that the path names, while the project looks
// empty; nil if it names none, as the path of a list.
func hidden(vars map[string]string) *apiError {
	for _, by := range []named{namedServer, namedNIC, namedVolume} {
		if vars[by.variable] != "" {
			return notFound(by.what)
		}
	}
	return nil
}

// nginxPage is nginx's error page.
const nginxPage = "<html>\r\n<head><title>%[1]d %[2]s</title></head>\r\n" +
	"<body>\r\n<center><h1>%[1]d %[2]s</h1></center>\r\n" +
	"<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"

// faultAnswer returns the answer of a fault with a Status.
func faultAnswer(f *Fault) answer {
	if f.Body == "" && f.ContentType == "" {
		// Source: the injected fault.
		return errorAnswer(newError(f.Status, "%s", http.StatusText(f.Status)))
	}
	body := f.Body
	if body == "" && f.ContentType == "text/html" {
		body = fmt.Sprintf(nginxPage, f.Status, http.StatusText(f.Status))
	}
	return answer{status: f.Status, contentType: cmp.Or(f.ContentType, jsonContentType), body: []byte(body)}
}

func (c *Cloud) faultCall(operation string, vars map[string]string, r *http.Request, body []byte) *fault.Call {
	return &fault.Call{
		Operation: operation, Request: r, Now: c.clock.Now(),
		Subject: sync.OnceValues(func() (fault.Subject, bool) {
			if operation == createServerOperation {
				return orderedSubject(body)
			}
			return c.existingSubject(vars)
		}),
	}
}

// orderedSubject returns the server that CreateServer asks for, or none if the body, which has not
// been checked yet, cannot be read.
func orderedSubject(body []byte) (fault.Subject, bool) {
	var order struct {
		Name        string `json:"name"`
		MachineType string `json:"machineType"`
		Zone        string `json:"availabilityZone"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return fault.Subject{}, false
	}
	return fault.Subject{Name: order.Name, MachineType: order.MachineType, Zone: order.Zone}, true
}

func (c *Cloud) existingSubject(vars map[string]string) (found fault.Subject, ok bool) {
	id := vars[namedServer.variable]
	c.locked(func(time.Time) {
		if nic, known := c.nics.get(vars[namedNIC.variable]); id == "" && known {
			id = nic.ServerID
		}
		var s *server
		if s, ok = c.servers.get(id); ok {
			found = fault.Subject{ID: s.ID, Name: s.Name}
		}
	})
	return found, ok
}

// createServerOperation is the only operation whose faults read the body, for the new server's
// name, machine type and zone.
const createServerOperation = "CreateServer"

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// faultCall is a call as faults see it.
type faultCall struct {
	operation string
	request   *http.Request
	now       time.Time
	// subject is asked only where a fault wants to know.
	subject func() (subject, bool)
}

// subject is the server that a call is about.
type subject struct {
	id, name string
	labels   labels.Set
}

func (c *Cloud) faultCall(route route, vars map[string]string, r *http.Request, body []byte) *faultCall {
	return &faultCall{
		operation: route.operation, request: r, now: c.clock.Now(),
		subject: sync.OnceValues(func() (subject, bool) {
			if route.operation == createServerOperation {
				return orderedSubject(body)
			}
			return c.existingSubject(vars)
		}),
	}
}

// fits tells whether the fault is for this call.
func (e *faultEntry) fits(call *faultCall) bool {
	f := &e.fault
	if !f.has(call.operation) || f.Match != nil && !f.Match(call.request) {
		return false
	}
	if f.Server == "" && f.LabelSelector == "" {
		return true
	}
	s, ok := call.subject()
	return ok && (f.Server == "" || f.Server == s.name || f.Server == s.id) && e.labelSelector.Matches(s.labels)
}

// orderedSubject is the server that CreateServer asks for. The body has not been
// checked yet: what does not look like a server is none.
func orderedSubject(body []byte) (subject, bool) {
	var order struct {
		Name   string         `json:"name"`
		Labels map[string]any `json:"labels"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return subject{}, false
	}
	s := subject{name: order.Name, labels: labels.Set{}}
	for key, value := range order.Labels {
		if text, ok := value.(string); ok {
			s.labels[key] = text
		}
	}
	return s, true
}

func (c *Cloud) existingSubject(vars map[string]string) (found subject, ok bool) {
	id := vars["serverId"]
	c.locked(func(time.Time) {
		if nic, known := c.nics.get(vars["nicId"]); id == "" && known {
			id = nic.ServerID
		}
		var s *server
		if s, ok = c.servers.get(id); ok {
			found = subject{id: s.ID, name: s.Name, labels: s.Labels}
		}
	})
	return found, ok
}

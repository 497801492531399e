// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"encoding/json"
	"net/http"
)

// describe names the request in words that are the same in every run of a seed.
func (w *world) describe(cluster, process string, request *http.Request) call {
	c := call{cluster: cluster, process: process, operation: operationOf(request), subject: request.URL.Query().Get("label_selector")}
	switch c.operation {
	case opCreate:
		var payload struct{ Name string }
		if body, err := request.GetBody(); err == nil {
			_ = json.NewDecoder(body).Decode(&payload)
		}
		c.subject = payload.Name
	case opGet, opDelete, opServerNICs:
		c.subject = cmp.Or(w.trace.name(serverIDIn(request)), serverIDIn(request))
	case opPatch:
		c.subject = w.trace.name(w.serverOfNIC(lastSegment(request)))
	case opGetNIC, opDeleteNIC, opGetVolume, opDeleteVolume:
		c.subject = cmp.Or(w.trace.name(lastSegment(request)), lastSegment(request))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.begun[c.cluster] = append(w.begun[c.cluster], w.clock.Since(w.start))
	c.number = w.calls
	c.caller, _ = request.Context().Value(caller{}).(string)
	key := c.cluster + c.operation + c.subject + c.caller
	c.repeat = w.repeats[key]
	w.repeats[key]++
	return c
}

func (w *world) describeAnswer(cluster, machine, method string) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	key := "answer" + cluster + machine + method
	repeat := w.repeats[key]
	w.repeats[key]++
	return answer{w.answers, cluster, machine, method, repeat}
}

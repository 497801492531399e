// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"io"
	"net/http"
	"strings"
)

// refuseElsewhere refuses what is to be made in another place than ownPlace, and checks that
// the Machine has no server there: the API could have made another.
func (w *world) refuseElsewhere(request *http.Request, c call) *http.Response {
	if c.operation != opCreate || strings.Contains(request.URL.Path, ownPlace.project) && strings.Contains(request.URL.Path, "/"+ownPlace.region+"/") {
		return nil
	}
	who := owner{c.cluster, c.subject}
	if ids := w.servers(mayJoin)[who]; len(ids) > 0 && w.plan.promised() {
		w.violated("%s has %v, and a server is asked for elsewhere", who.machine, ids)
	}
	w.mu.Lock()
	w.posts[who] = c.number
	w.mu.Unlock()
	w.log("%s -> refused elsewhere", c)
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"code":403,"msg":"Quota exceeded for instances"}`)), Request: request,
	}
}

// checkElsewhere: a server that is made for an earlier request than that for one elsewhere
// would be the second.
func (w *world) checkElsewhere(who owner, c call) {
	w.mu.Lock()
	later := w.posts[who] > c.number
	w.mu.Unlock()
	if later && w.plan.promised() {
		w.violated("a server was asked for elsewhere before it was certain that %s gets none", who.machine)
	}
}

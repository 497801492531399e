// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"reflect"
	"time"
)

// keepGhosts makes servers that go from now on visible to a look that far back.
func (c *Cloud) keepGhosts(back time.Duration) {
	c.locked(func(time.Time) { c.ghostsStay = max(c.ghostsStay, back) })
}

// staleServer shows the server in the path as it was at t.
func (c *Cloud) staleServer(r *request, t time.Time, details bool) (any, *apiError) {
	servers := c.serversAt(t, func(s *server) bool { return s.ID == r.vars["serverId"] && s.in(r) })
	if len(servers) == 0 {
		return nil, notFound("server")
	}
	return c.showServer(servers[0], t, details), nil
}

// replicaLag is how far the replica is behind that answers the next list.
func (c *Cloud) replicaLag() time.Duration {
	if len(c.replicaLags) == 0 {
		return 0
	}
	return c.replicaLags[c.replicas.number(len(c.replicaLags))]
}

// showList is how a list is answered: without anything if it is empty by mistake.
func (c *Cloud) showList(things list, emptyByMistake bool) list {
	if emptyByMistake {
		things = items([]any{})
	}
	if c.nullLists && reflect.ValueOf(things.Items).Len() == 0 {
		things.Items = nil
	}
	return things
}

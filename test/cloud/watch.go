// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

// watch looks at the project until ctx ends: by the run's selector and without one. The
// witness checks what it sees. What fails is followed by the next time.
func (s *suite) watch(ctx context.Context) {
	tagged := map[string]bool{}
	for {
		if _, err := s.api.Servers(ctx, mark.Selector(s.name)); err == nil {
			s.inspect(ctx, tagged)
		}
		if api.Pause(ctx, s.Poll) != nil {
			return
		}
	}
}

// inspect reads all servers of the project.
func (s *suite) inspect(ctx context.Context, tagged map[string]bool) {
	servers, err := s.api.Servers(ctx, "")
	if err != nil {
		return
	}
	live := map[string]string{}
	for _, server := range servers {
		run, ours := mark.RunOf(server.Name, server.Labels)
		switch {
		case !ours || server.Status == api.StatusDeleted:
		case run != s.name:
			s.yield(run, server)
		default:
			if server.Live() {
				live[server.ID] = server.Name
			}
			// Until it is ACTIVE: some are deleted before, or end in ERROR.
			if !tagged[server.ID] {
				tagged[server.ID] = s.tag(ctx, server.ID) == nil && s.sweeper.Known.Complete(server.ID)
			}
		}
	}
	s.guard.Seen(live)
}

// yield ends this run if another one began before it: two runs that began at the same time
// have not seen each other.
func (s *suite) yield(other string, server api.Server) {
	if !server.Live() {
		return
	}
	if age, known := mark.Age(other, server.CreatedAt, time.Now()); known && age <= sweep.OldAfter && other < s.name {
		s.guard.Trip("run %s is under way in this project: it has server %s", other, server.ID)
	}
}

// tag notes the NICs and the boot volume of a server, and gives them the run's marks when it
// is ACTIVE: what is changed before may keep it from booting. The error says that it is to be
// tagged again.
func (s *suite) tag(ctx context.Context, id string) error {
	server, err := s.api.Server(ctx, id)
	if err != nil || server == nil {
		return err
	}
	if !s.sweeper.Note(server) {
		return fmt.Errorf("server %s is not the run's", server.ID)
	}
	if server.Status != api.StatusActive {
		return fmt.Errorf("the server is %s", server.Status)
	}
	took, err := s.sweeper.Tag(ctx, server)
	for _, kind := range slices.Sorted(maps.Keys(took)) {
		s.note("Labels of a "+kind+" may have keys such as kubernetes.io/cluster", took[kind], "test/cloud/sweep/tag.go")
	}
	return err
}

// noteTimeout is less than any client waits for the answer to its DELETE.
const noteTimeout = 5 * time.Second

// Begun implements guard.Observer: it notes what a server has, before a DELETE of it is sent.
func (s *suite) Begun(e guard.Exchange) {
	if e.Kind() != guard.DeleteServer || s.sweeper.Known.Complete(e.ServerID()) {
		return
	}
	// Also when the run is to end: servers are deleted then, too.
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if server, err := s.api.Server(ctx, e.ServerID()); err == nil && server != nil {
		s.sweeper.Note(server)
	}
}

// Observe implements guard.Observer.
func (s *suite) Observe(guard.Exchange) {}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

// watch looks at the project until ctx ends: by the run's selector and without one. The
// witness checks what it sees. A look that fails is followed by the next one.
func (s *suite) watch(ctx context.Context) {
	tagged := map[string]bool{}
	for {
		if _, err := s.api.Servers(ctx, mark.Selector(s.name)); err == nil {
			s.look(ctx, tagged)
		}
		if api.Pause(ctx, s.Poll) != nil {
			return
		}
	}
}

// look looks at all servers of the project.
func (s *suite) look(ctx context.Context, tagged map[string]bool) {
	servers, err := s.api.Servers(ctx, "")
	if err != nil {
		return
	}
	live := map[string]string{}
	for _, server := range servers {
		run, ours := mark.RunOf(server.Name, server.Labels)
		switch {
		case !ours || !server.Live():
		case run != s.name:
			s.yield(run, server)
		default:
			live[server.ID] = server.Name
			if server.Status == api.StatusActive && !tagged[server.ID] {
				tagged[server.ID] = s.tag(ctx, server.ID) == nil
			}
		}
	}
	s.guard.Seen(live)
}

// yield ends this run if another one began before it: two runs that began at the same time
// have not seen each other.
func (s *suite) yield(other string, server api.Server) {
	if age, known := mark.Age(other, server.CreatedAt, time.Now()); known && age <= sweep.OldAfter && other < s.name {
		s.guard.Trip("run %s is under way in this project: it has server %s", other, server.ID)
	}
}

// tag notes the NICs and volumes of a server, and gives them the run's marks.
func (s *suite) tag(ctx context.Context, id string) error {
	server, err := s.api.Server(ctx, id)
	if err != nil || server == nil {
		return err
	}
	s.mu.Lock()
	for _, nic := range server.NICs {
		s.belongings[belonging{"NIC", nic.ID}] = server.ID
	}
	for _, volume := range append(server.Volumes, server.BootVolume.ID) {
		if volume != "" {
			s.belongings[belonging{"volume", volume}] = server.ID
		}
	}
	s.mu.Unlock()
	took, err := sweep.Tag(ctx, s.api, server)
	for _, kind := range slices.Sorted(maps.Keys(took)) {
		s.note("Labels of a "+kind+" may have keys such as kubernetes.io/cluster", took[kind], "test/cloud/sweep/sweep.go")
	}
	return err
}

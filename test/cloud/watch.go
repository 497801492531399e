// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

// watch looks at the project until ctx ends: by the run's selector and without one. The
// witness judges what it sees. A look that fails is followed by the next one.
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

// live returns the names of the run's servers that nobody is deleting.
func (s *suite) live(ctx context.Context) ([]string, error) {
	servers, err := s.api.Servers(ctx, mark.Selector(s.name))
	var names []string
	for _, server := range servers {
		if server.Live() {
			names = append(names, server.Name)
		}
	}
	return names, err
}

// left returns what there is of the run: servers that nobody has deleted or that do not go,
// and NICs and volumes whose server has gone.
func (s *suite) left(ctx context.Context) ([]string, error) {
	servers, err := s.api.Servers(ctx, "")
	if err != nil {
		return nil, err
	}
	var left []string
	there := map[string]bool{}
	for _, server := range servers {
		there[server.ID] = true
		if strings.HasPrefix(server.Name, mark.Name(s.name, "")) && server.Status != api.StatusDeleted {
			left = append(left, fmt.Sprintf("server %s (%s), %s", server.ID, server.Name, server.Status))
		}
	}
	s.mu.Lock()
	belongings := maps.Clone(s.belongings)
	s.mu.Unlock()
	for thing, server := range belongings {
		if there[server] {
			continue
		}
		is, err := s.isThere(ctx, thing)
		if err != nil {
			return nil, err
		}
		if is {
			left = append(left, fmt.Sprintf("%s %s, whose server %s has gone", thing.kind, thing.id, server))
		}
	}
	slices.Sort(left)
	return left, nil
}

// belonging says how many NICs and volumes of the run's servers are known.
func (s *suite) belonging() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.belongings)
}

func (s *suite) isThere(ctx context.Context, thing belonging) (bool, error) {
	if thing.kind == "NIC" {
		nic, err := s.api.NIC(ctx, thing.id)
		return nic != nil, err
	}
	volume, err := s.api.Volume(ctx, thing.id)
	return volume != nil, err
}

// deleteUnmarked deletes the servers that the API has answered our own POSTs with, and that
// the sweep does not find because they lack a mark. It works without the door.
func (s *suite) deleteUnmarked(ctx context.Context) (deleted int, err error) {
	client, err := api.New(s.Settings, s.Settings.Endpoint)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("servers without marks were not gone after %s", s.Patience))
	defer cancel()
	for _, id := range s.guard.Servers() {
		for counted := false; ; {
			server, err := client.Server(ctx, id)
			if err != nil {
				return deleted, err
			}
			if server == nil || server.Status == api.StatusDeleted {
				break
			}
			if !counted {
				counted = true
				deleted++
				s.say("deletes server %s (%s), which lacks the suite's marks", id, server.Name)
			}
			_, _ = client.Do(ctx, http.MethodDelete, api.PathServers+"/"+id, nil)
			if err := api.Pause(ctx, s.Poll); err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

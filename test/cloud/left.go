// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

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

// expectNothingLeft waits until nothing of the run is there.
func (s *suite) expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	s.eventually(ctx, s.left).Should(BeEmpty(), "what is left of the run, after all of it was deleted")
}

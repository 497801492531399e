// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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

// left returns what there is of the run: servers, and NICs and volumes whose server has gone.
func (s *suite) left(ctx context.Context) ([]string, error) {
	s.knowServers()
	left, err := s.sweeper.Left(ctx, s.name)
	slices.Sort(left)
	return left, err
}

// knowServers notes the servers that the API has answered the run's POSTs with.
func (s *suite) knowServers() {
	for _, id := range s.guard.Servers() {
		s.sweeper.Known.Server(s.name, id)
	}
}

// expectNothingLeft waits until nothing of the run is there.
func (s *suite) expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	s.eventually(ctx, s.left).Should(BeEmpty(), "what is left of the run, after all of it was deleted")
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"slices"
	"sync"

	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/witness"
)

// current is the suite whose specs run. Ginkgo's specs are made before it is.
var current *suite

// suite is one run.
type suite struct {
	Options

	name    string
	guard   *guard.Guard
	witness *witness.Witness
	door    *guard.Door
	// api goes through the door, sweeper does, too.
	api     *api.Client
	sweeper sweep.Sweeper

	mu   sync.Mutex
	rows []report.Row
}

func newSuite(ctx context.Context, o Options, name string) (*suite, error) {
	s := &suite{Options: o, name: name, guard: guard.New(ctx, o.Limits)}
	s.witness = witness.New(name, o.Settle, func(text string) {
		s.say("FOUND: %s", text)
		s.guard.Stop(errors.New(text))
	})
	var err error
	if s.door, err = guard.Open(s.guard, o.Settings.Endpoint, s.witness, s); err != nil {
		return nil, err
	}
	s.api, err = api.New(o.Settings, s.door.URL())
	s.sweeper = o.sweeper(s.api)
	return s, err
}

// note adds a row to the report.
func (s *suite) note(assumption, seen string, where ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := report.Row{Assumption: assumption, Seen: seen, Where: where}
	if !slices.ContainsFunc(s.rows, func(other report.Row) bool { return other.Assumption == assumption && other.Seen == seen }) {
		s.rows = append(s.rows, row)
	}
}

func (s *suite) noted() []report.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// eventually waits for something that one boot, deletion or other matter of the API decides.
func (s *suite) eventually(ctx context.Context, actual any) AsyncAssertion {
	return Eventually(ctx, actual).WithTimeout(s.Patience).WithPolling(s.Poll)
}

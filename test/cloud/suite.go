// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/witness"
)

// suite is the state of one run.
type suite struct {
	Options

	name    string
	guard   *guard.Guard
	witness *witness.Witness
	proxy   *guard.Proxy
	// api and the sweep send their requests through the guard's proxy.
	api   *api.Client
	sweep *sweep.Sweep
	// network is the ID of the run's.
	network string
	// cluster is nil before the driver's first spec.
	cluster *cluster
	// passed says that all specs did.
	passed bool

	mu   sync.Mutex
	rows []report.Row
}

func newSuite(ctx context.Context, o Options, name string, exchanges *report.Exchanges) (*suite, error) {
	s := &suite{Options: o, name: name, guard: guard.New(ctx), rows: unknowns()}
	s.witness = witness.New(name, o.Settle, func(text string) {
		s.say("FOUND: %s", text)
		s.guard.Stop(errors.New(text))
	})
	var err error
	if s.proxy, err = guard.NewProxy(s.guard, o.Settings.Endpoint, s.witness, exchanges); err != nil {
		return nil, err
	}
	if s.api, err = api.New(o.Settings, s.proxy.URL()); err != nil {
		return nil, err
	}
	s.sweep = sweep.New(o.sweepOptions(s.api), name)
	return s, nil
}

// spec is one scenario. Its error says in one line what was expected and what was seen.
type spec struct {
	name string
	run  func(context.Context, *suite) error
}

// run runs the specs until one fails, and watches the project meanwhile. The API's specs come first: a
// run against an API that does not meet the driver's needs ends there, after one server.
func (s *suite) run() error {
	watching, stop := context.WithCancel(s.guard.Context())
	var watched sync.WaitGroup
	watched.Go(func() { s.watch(watching) })
	defer func() {
		if s.cluster != nil {
			s.cluster.env.Stop()
		}
		stop()
		watched.Wait()
	}()
	for _, spec := range append(apiSpecs(), driverSpecs()...) {
		began := time.Now()
		err := spec.run(s.guard.Context(), s)
		if ended := s.guard.Err(); ended != nil {
			err = ended // What was seen of it is not the reason.
		}
		took := time.Since(began).Round(time.Second)
		if err != nil {
			s.say("RED   %5s  %s: %v", took, spec.name, err)
			if s.cluster != nil && !errors.Is(err, ErrSignal) {
				s.cluster.showLog()
			}
			return fmt.Errorf("%s: %w", spec.name, err)
		}
		s.say("ok    %5s  %s", took, spec.name)
	}
	s.passed = true
	return nil
}

// watch reads the project until ctx ends: lists with and without the run's selector, and each server
// that is new or being deleted, since lists may lag. The witness and the guard see the answers.
func (s *suite) watch(ctx context.Context) {
	for api.Pause(ctx, s.Poll) == nil {
		_, _ = s.api.Servers(ctx, mark.Selector(s.name))
		_, _ = s.api.Servers(ctx, "")
		for _, id := range append(s.guard.Unnoted(), s.witness.Going()...) {
			_, _ = s.api.Server(ctx, id)
		}
	}
}

// hopeless is an error that ends a wait.
type hopeless struct{ error }

// look returns what was seen instead of what is expected; done once it is seen.
type look func(context.Context) (seen string, done bool, err error)

// await looks until it is done, or patience ends. It looks again after a failure: one answer proves
// nothing.
func (s *suite) await(ctx context.Context, wanted string, look look) error {
	return s.awaitFor(ctx, s.Patience, wanted, look)
}

func (s *suite) awaitFor(ctx context.Context, patience time.Duration, wanted string, look look) error {
	deadline := time.Now().Add(patience)
	for {
		seen, done, err := look(ctx)
		switch {
		case errors.As(err, &hopeless{}):
			return fmt.Errorf("wanted: %s; seen: %w", wanted, err)
		case err != nil:
			seen = strings.ReplaceAll(err.Error(), "\n", "; ")
		case done:
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wanted: %s; seen: %s, after %s", wanted, seen, patience)
		}
		if err := api.Pause(ctx, s.Poll); err != nil {
			return err
		}
	}
}

// ask sends a request until it gets an answer other than 429 or 5xx.
func (s *suite) ask(ctx context.Context, method, path string, body any) (answer api.Answer, err error) {
	err = s.await(ctx, "an answer to "+method+" "+path, func(ctx context.Context) (string, bool, error) {
		answer, err = s.api.Do(ctx, method, path, body)
		return fmt.Sprint(answer.Status), decided(answer), err
	})
	return answer, err
}

func decided(a api.Answer) bool {
	return a.Status != http.StatusTooManyRequests && a.Status < http.StatusInternalServerError
}

// note adds an observation to an assumption, one of unknowns.
func (s *suite) note(assumption, seen string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rows {
		row := &s.rows[i]
		if row.Assumption != assumption {
			continue
		}
		if row.Seen == "" {
			row.Seen = seen
		} else if !strings.Contains(row.Seen, seen) {
			row.Seen += "; " + seen
		}
	}
}

func (s *suite) measured() []report.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

// expectNothingLeft waits until the servers created so far are gone, and then, no longer than lists may
// lag, until their NICs and volumes are.
func (s *suite) expectNothingLeft(ctx context.Context) error {
	lookFor := func(wanted func() []mark.Thing) look {
		return func(ctx context.Context) (string, bool, error) {
			s.sweep.Note(s.guard.Things())
			err := s.sweep.Look(ctx)
			left := wanted()
			return fmt.Sprint(left), len(left) == 0, err
		}
	}
	servers := func() (servers []mark.Thing) {
		for _, t := range s.sweep.Left() {
			if t.Kind == mark.KindServer {
				servers = append(servers, t)
			}
		}
		return servers
	}
	if err := s.await(ctx, "no server of the run", lookFor(servers)); err != nil {
		return err
	}
	err := s.awaitFor(ctx, s.Settle, "no NIC or boot volume without its server", lookFor(s.sweep.Left))
	seen := "nothing was left"
	if left := s.sweep.Left(); len(left) > 0 {
		seen = fmt.Sprintf("KEPT: %v", left)
	}
	if s.sweep.NotAllowed(mark.KindVolume) {
		seen += "; boot volumes: not allowed (GET of a volume answered 403)"
	}
	s.note(rowParts, seen)
	return err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// suite is the state of one run.
type suite struct {
	*options

	name  string
	guard *guard.Guard
	proxy *guard.Proxy
	// api and the cleaner send their requests through the guard's proxy.
	api     *api.Client
	cleaner *sweep
	// network is the ID of the run's.
	network string
	// cluster is nil before the driver's first spec.
	cluster *cluster
	// passed says that all specs did.
	passed bool
}

func newSuite(ctx context.Context, o *options, name string, exchanges *guard.Exchanges) (*suite, error) {
	s := &suite{options: o, name: name, guard: guard.New(ctx, name, o.settle)}
	var err error
	if s.proxy, err = guard.NewProxy(s.guard, o.settings.Endpoint, exchanges); err != nil {
		return nil, err
	}
	if s.api, err = api.New(o.settings.Account, s.proxy.URL()); err != nil {
		return nil, err
	}
	s.cleaner = o.newSweep(s.api, name)
	return s, nil
}

// spec is one scenario. Its error says in one line what was expected and what was seen.
type spec struct {
	name string
	run  func(context.Context, *suite) error
}

// runSpecs runs the specs until one fails, and watches the project meanwhile. The API's specs come first: a
// run against an API that does not meet the driver's needs ends there, after one server. A signal ends ctx.
func (s *suite) runSpecs(ctx context.Context) error {
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
			if s.cluster != nil && ctx.Err() == nil {
				s.cluster.showLog()
			}
			return fmt.Errorf("%s: %w", spec.name, err)
		}
		s.say("ok    %5s  %s", took, spec.name)
	}
	s.passed = true
	return nil
}

// watch reads the project until ctx ends: lists with and without the run's selector, and single servers,
// since lists may lag. The guard sees the answers.
func (s *suite) watch(ctx context.Context) {
	for api.Pause(ctx, s.poll) == nil {
		_, _ = s.api.Servers(ctx, api.Selector(s.name))
		_, _ = s.api.Servers(ctx, "")
		for _, id := range s.guard.ToRead() {
			_, _ = s.api.Server(ctx, id)
		}
	}
}

// hopeless is an error that ends a wait.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// look returns what was seen instead of what is expected; done once it is seen.
type look func(context.Context) (seen string, done bool, err error)

// await looks until it is done, or patience ends. It looks again after a failure: one answer proves
// nothing.
func (o *options) await(ctx context.Context, wanted string, look look) error {
	return o.awaitFor(ctx, o.patience, wanted, look)
}

func (o *options) awaitFor(ctx context.Context, patience time.Duration, wanted string, look look) error {
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
		if err := api.Pause(ctx, o.poll); err != nil {
			return err
		}
	}
}

// measure sends a request until it is executed or refused. A refusal counts once two answers in a row have the
// same status. Longer than the API may be down it does not wait: the last answer is the result. An API that
// cannot do what the driver never asks for is none to be red about.
func (s *suite) measure(ctx context.Context, method, path string, body any) (answer api.Answer, err error) {
	_ = s.awaitFor(ctx, 3*s.settle, "an answer to "+method+" "+path, func(ctx context.Context) (string, bool, error) {
		before := answer.Status
		answer, err = s.api.Do(ctx, method, path, body)
		return "", answer.Succeeded() || answer.Refused() && answer.Status == before, err
	})
	return answer, context.Cause(ctx)
}

// create sends a POST, and another one if the first has created nothing: where the answer does not show the
// resource, it looks in the list for one of its name.
func (s *suite) create(ctx context.Context, path string, body map[string]any) (id string, err error) {
	var answer api.Answer
	isIt := func(made api.Server) bool { return made.ID != "" && made.Name == body["name"] && made.Live() }
	wanted := fmt.Sprintf("POST %s makes %s", path, body["name"])
	err = s.await(ctx, wanted, func(ctx context.Context) (seen string, done bool, err error) {
		before := answer.Status
		answer, err = s.api.Do(ctx, http.MethodPost, path, body)
		seen = fmt.Sprintf("POST answered %d %s", answer.Status, answer.Text())
		made := api.Item[api.Server](answer)
		switch {
		case isIt(made): // An answer with another one does not count.
			id = made.ID
			return seen, true, nil
		case answer.Refused() && answer.Status == before:
			return seen, false, hopeless{errors.New(seen)}
		case answer.Refused():
			return seen, false, err
		}
		if err := api.Pause(ctx, s.settle); err != nil {
			return seen, false, err
		}
		list, err := s.api.Do(ctx, http.MethodGet, path, nil)
		items, _ := api.Items[api.Server](list)
		if i := slices.IndexFunc(items, isIt); i >= 0 {
			id = items[i].ID
		}
		return seen, id != "", err
	})
	return id, err
}

// expectNothingLeft waits until the servers created so far are gone, and then, a bit longer than lists may
// lag and the API may be down, until their NICs and volumes are.
func (s *suite) expectNothingLeft(ctx context.Context) error {
	lookFor := func(kinds ...string) look {
		return func(ctx context.Context) (string, bool, error) {
			s.cleaner.note(s.guard.Things()...)
			err := s.cleaner.look(ctx)
			left := s.cleaner.left(kinds...)
			return fmt.Sprint(left), len(left) == 0, err
		}
	}
	if err := s.await(ctx, "no server of the run", lookFor(api.KindServer)); err != nil {
		return err
	}
	err := s.awaitFor(ctx, 3*s.settle, "no NIC or boot volume without its server",
		lookFor(api.PartKinds...))
	s.guard.Note(guard.RowParts, fmt.Sprintf("%d left, and %d that the account is not allowed to read",
		len(s.cleaner.left(api.PartKinds...)), len(s.cleaner.unreadable())))
	return err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// sideDeleteTimeout limits a DELETE that a creation sends.
	sideDeleteTimeout = 5 * time.Second
	// discardTimeout limits the wait until a failed server is DELETING: the cluster autoscaler waits for
	// the answer.
	discardTimeout = 10 * time.Second
)

// create returns the Machine's server and addresses once it runs and its NICs are set up.
func (c *call) create(ctx context.Context) (id string, addresses []corev1.NodeAddress, err error) {
	var w *watch
	if c.fromOpenStack {
		w, err = c.takeOver(ctx)
	} else {
		w, err = c.findOrPost(ctx)
	}
	if err == nil {
		addresses, err = w.awaitReady(ctx)
	}
	switch {
	case errors.Is(err, errGone), errors.Is(err, errUnusable):
		return "", nil, cmp.Or(c.heldBack(c.unseenKey()), newError(ReasonInterrupted,
			"the server of machine %s was deleted while it was being created", c.machine))
	case errors.Is(err, errFaulty):
		return "", nil, c.discard(ctx, w)
	case err != nil:
		return "", nil, err
	}
	return w.id, addresses, nil
}

// findOrPost returns the Machine's server: the one in the request or the record, from a list, or a new
// one. A list without a usable server counts only if it began late enough to show every server. If a
// POST fails, the manager calls again, and that call begins with a list.
func (c *call) findOrPost(ctx context.Context) (*watch, error) {
	known := c.record()
	if known.state == stateNothing && c.certainOfPredecessor.IsZero() && c.serverID == "" {
		if _, err := c.nextChoice(); err != nil {
			return nil, err
		}
	}
	if id := cmp.Or(c.serverID, known.serverID); id != "" {
		if w, err := c.adopt(ctx, c.watch(id)); !errors.Is(err, errUnusable) {
			return w, err
		}
	}
	polls := pollsFrom(c.clock.Now())
	for due := (time.Time{}); ; {
		servers, began, err := c.find(ctx, due)
		if err != nil {
			return nil, err
		}
		w, deleting, err := c.keepOne(ctx, servers)
		now, certain := c.clock.Now(), c.certain()
		switch {
		case !errors.Is(err, errUnusable):
			return w, err
		case !c.expires.IsZero() && !now.Before(c.expires):
			return nil, newError(ReasonCreationTimedOut,
				"machine %s is older than its creation timeout and has no server: its MachineSet replaces the machine", c.machine)
		case began.Before(certain):
			due = earlier(polls.after(now, now), later(certain, now))
			continue
		}
		return c.post(ctx, began, deleting)
	}
}

// adopt reads a server, and records it as the Machine's. errUnusable: it is gone or being deleted. A
// server in ERROR is not recorded: another one may still show that an earlier POST created.
func (c *call) adopt(ctx context.Context, w *watch) (*watch, error) {
	err := w.awaitShown(ctx)
	switch {
	case errors.Is(err, errGone):
		return nil, errUnusable
	case err != nil:
		return nil, err
	case w.isDeleting():
		c.records.change(&c.ref, func(known *record) { known.unused(w.id) })
		return nil, errUnusable
	case w.server.Status != statusError:
		c.records.change(&c.ref, func(known *record) { known.shown(w.id) })
	}
	klog.V(2).InfoS("Using the machine's server", "machine", c.machine, "server", w.id, "status", w.server.Status)
	return w, nil
}

// keepOne adopts the best of the Machine's servers; errUnusable if none is usable. The others are
// deleted, because the manager's orphan collector ignores them while the Machine is being created.
// deleting are those that are being deleted already.
func (c *call) keepOne(ctx context.Context, servers []Server) (kept *watch, deleting []string, err error) {
	slices.SortFunc(servers, func(a, b Server) int { return CompareServers(&a, &b) })
	err = errUnusable
	for i := range servers {
		w := c.watchListed(&servers[i])
		if !w.isDeleting() && errors.Is(err, errUnusable) {
			w.needsGet = true // the list may be old
			kept, err = c.adopt(ctx, w)
		} else if !w.isDeleting() {
			w.isSurplus = true
			_ = w.deleteAside(ctx) // logged; the Machine's deletion repeats it
		}
		if w.isDeleting() {
			deleting = append(deleting, w.id)
		}
	}
	return kept, deleting, err
}

// deleteAside sends a DELETE for a server that the Machine does not use, and waits for the answer only.
func (w *watch) deleteAside(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sideDeleteTimeout)
	defer cancel()
	err := w.sendDelete(ctx)
	klog.InfoS("Sent a DELETE for a server of the Machine that is not used",
		"machine", w.call.machine, "server", w.id, "status", w.server.Status, "err", err)
	return err
}

// post requests the Machine's server. began is the start of the list that showed none but those that
// are being deleted: more than one would use the quota of a third, and any holds NICs and volumes that
// the class names.
func (c *call) post(ctx context.Context, began time.Time, deleting []string) (*watch, error) {
	choice, err := c.nextChoice()
	if err != nil {
		return nil, err
	}
	if len(deleting) > 1 || len(deleting) > 0 && c.spec.IsExclusive() {
		return nil, newError(ReasonNotReady,
			"server %s of machine %s is still being deleted: the next one is created once it is gone", deleting[0], c.machine)
	}
	certain, claimed := c.certain(), false
	if c.records.change(&c.ref, func(known *record) { claimed = known.claim(began, certain, choice) }); !claimed {
		return nil, newError(ReasonInterrupted, "another call is already creating the server of machine %s", c.machine)
	}
	server, err := c.sendPost(ctx, choice)
	if err != nil {
		return nil, c.noteExhausted(err, choice, "")
	}
	c.hasWorked = true
	w := c.watch(server.ID)
	w.polls.first = firstPoll + c.spread(minPoll)
	w.due = w.polls.since.Add(w.polls.first)
	return w, nil
}

// sendPost sends a claimed POST, and records its outcome, also after a panic.
func (c *call) sendPost(ctx context.Context, choice apis.Choice) (server *Server, err error) {
	err = errors.New("the POST did not end")
	defer func() {
		id := ""
		if err == nil {
			id = server.ID
		}
		mayExist := err == nil || outcomeUnknown(err)
		c.records.change(&c.ref, func(known *record) { known.postEnded(c.clock.Now(), id, mayExist) })
	}()
	if choice != c.spec.Choices()[0] {
		klog.InfoS("Requesting a server with a fallback of its MachineClass", "machine", c.machine, "machineClass", c.class,
			"machineType", choice.MachineType, "zone", choice.AvailabilityZone)
	}
	if server, err = c.client.CreateServer(ctx, c.serverRequest(choice)); err == nil {
		klog.V(2).InfoS("Server creation accepted", "machine", c.machine, "server", server.ID)
	}
	return server, err
}

// outcomeUnknown reports whether a failed POST may have created a server: unless the API refused
// it, or it was never sent. 429 is a refusal in any form.
func outcomeUnknown(err error) bool {
	var api *APIError
	if !errors.As(err, &api) {
		return true
	}
	var notSent *spi.NotSentError
	switch {
	case errors.As(err, &notSent), api.StatusCode == http.StatusTooManyRequests, isExhausted(err):
		return false
	case api.Status() == http.StatusRequestTimeout:
		return true
	default:
		return api.Status() < http.StatusBadRequest || api.Status() >= http.StatusInternalServerError
	}
}

// serverRequest returns the request for the Machine's server, of one of the spec's choices.
func (c *call) serverRequest(of apis.Choice) *ServerRequest {
	spec := *c.spec
	spec.MachineType, spec.AvailabilityZone = of.MachineType, of.AvailabilityZone
	return &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: &spec}
}

// discard sends a DELETE for a server in ERROR, waits at most discardTimeout until it is DELETING, and
// returns its fault. If the DELETE fails, the Machine's next call repeats it. A server from OpenStack
// stays.
func (c *call) discard(ctx context.Context, w *watch) error {
	fault := faultyError(w.server, c.spec.UserData)
	if c.fromOpenStack {
		return fault
	}
	fault = c.noteFault(w, fault)
	if err := w.deleteAside(ctx); err != nil || w.accepted.IsZero() {
		return fault
	}
	limited, cancel := context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	w.due = c.clock.Now().Add(minPollGap)
	for err := error(nil); err == nil && !w.isDeleting(); {
		_, err = w.poll(limited)
	}
	c.records.change(&c.ref, func(known *record) { known.unused(w.id) })
	return fault
}

// faultyError returns the error of a server that ended in ERROR. The API's message about it is
// classified like the answer to a POST.
func faultyError(server *Server, userData string) error {
	why := cmp.Or(redacted(server.ErrorMessage, userData), "no reason given")
	return &APIError{Call: callRunServer, Message: server.ErrorMessage,
		Err: fmt.Errorf("server %s ended in state ERROR: %s", server.ID, why)}
}

// awaitReady waits until the server runs, each of its NICs has an address, and the spec's NICs
// carry the allowedAddresses; it returns the addresses in a stable order. errFaulty: the server is
// in ERROR; errUnusable: it is being deleted.
func (w *watch) awaitReady(ctx context.Context) ([]corev1.NodeAddress, error) {
	for server := w.server; ; {
		if server != nil {
			addresses, err := w.makeReady(ctx, server)
			if err != nil || addresses != nil {
				return addresses, err
			}
		}
		var err error
		if server, err = w.poll(ctx); err != nil {
			return nil, err
		}
	}
}

// makeReady takes the next step for a server that was just read. It returns neither addresses nor
// an error if the server must be read again first. A failed step is repeated with the next read,
// unless the API refuses it.
func (w *watch) makeReady(ctx context.Context, server *Server) ([]corev1.NodeAddress, error) {
	c := w.call
	w.missing = ""
	switch {
	case server.Status == statusError:
		return nil, errFaulty
	case server.IsDeleting():
		c.records.change(&c.ref, func(known *record) { known.unused(w.id) })
		return nil, errUnusable
	case server.Status != statusActive:
		return nil, nil
	}
	c.failing.Set(c.specKey(), time.Time{})
	connected, err := c.connect(ctx, w.id, true)
	w.missing = c.missing(connected)
	if err == nil && w.missing == "" {
		return connected.addresses, nil
	}
	return nil, w.steps.afterStep(ctx, err, w.state())
}

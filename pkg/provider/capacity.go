// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// exhaustedFor is how long the Machines of a class that ran out of quota, or has no choice left,
	// get the same answer without a POST: every event of a class makes the manager call for all of its
	// Machines, regardless of its retry period.
	exhaustedFor = time.Minute
	// skippedFor is how long a choice without capacity is skipped while another one is left: longer
	// than it takes the next ones to fail.
	skippedFor = 10 * time.Minute
	// unseenFor is how long a class gets no server after one that no read has shown.
	unseenFor = 10 * time.Minute
)

// classErrors are the last errors of exhausted classes and choices.
type classErrors = recent.Map[classKey, classError]

// classKey identifies a class across sessions, with its providerSpec, since another one may succeed.
type classKey struct {
	place
	class string
	spec  specHash
	// choice is zero for all of the class's.
	choice apis.Choice
}

// classError is the answer to a class's Machines until the given time.
type classError struct {
	err   error
	until time.Time
}

func (c *call) specKey() classKey { return classKey{place: c.place, class: c.class, spec: c.specHash} }

// unseenKey is for all of the class's specs: a deletion does not know them.
func (c *call) unseenKey() classKey { return classKey{place: c.place, class: c.class} }

// nextChoice returns the first of the class's choices that is not exhausted. The error is that of an
// exhausted class, or of one whose servers no read shows.
func (c *call) nextChoice() (apis.Choice, error) {
	err := cmp.Or(c.heldBack(c.unseenKey()), c.heldBack(c.specKey()))
	if err != nil {
		return apis.Choice{}, err
	}
	for _, choice := range c.spec.Choices() {
		key := c.specKey()
		key.choice = choice
		if err = c.heldBack(key); err == nil {
			return choice, nil
		}
	}
	return apis.Choice{}, err
}

// heldBack returns the error because of which no server is requested with a key; nil without one.
func (c *call) heldBack(key classKey) error {
	if found, ok := c.exhausted.Lookup(key); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}

// noteExhausted records the error of a choice's server if it exhausts the class or the choice; zone is
// the server's, "" if unknown. It returns the error for the manager: Unavailable while another choice is
// left, so that the manager calls again within seconds. Once none is left, the next attempt begins with
// the first again.
func (c *call) noteExhausted(err error, failed apis.Choice, zone string) error {
	if !isExhausted(err) {
		return err
	}
	found, key, now := *classified(err), c.specKey(), c.clock.Now()
	text, place := found.Text, placeOf(failed, zone)
	found.Text, found.err = place+": "+text, err
	if found.Reason != ReasonQuotaExceeded { // which holds for all choices
		key.choice = failed
		c.exhausted.Set(key, classError{&found, now.Add(skippedFor)})
		if next, heldBack := c.nextChoice(); heldBack == nil {
			retried := found
			retried.Text, retried.isRetried = fmt.Sprintf("%s; next: %s: %s", place, next, text), true
			return &retried
		}
		for _, choice := range c.spec.Choices() {
			key.choice = choice
			c.exhausted.Set(key, classError{}) // none is marked any more
		}
	}
	key.choice = apis.Choice{}
	c.exhausted.Set(key, classError{&found, now.Add(exhaustedFor)})
	return &found
}

// placeOf names a choice's machine type and zone.
func placeOf(choice apis.Choice, zone string) string {
	switch {
	case choice.AvailabilityZone != "":
		return choice.String()
	case zone == "":
		return choice.MachineType + " in a zone chosen by STACKIT: the class sets no availabilityZone"
	default:
		return choice.MachineType + " in " + zone + ", chosen by STACKIT: the class sets no availabilityZone"
	}
}

// noteUnseen holds back the class's POSTs after one whose server no read has shown: an account that may
// create servers, but not see them, must not fill a project.
func (c *call) noteUnseen(serverID string) {
	err := newError(ReasonNotReady, "no read has shown server %s, which was created for machine %s: "+
		"the next server of class %s is created %s later (check that the service account may read servers)",
		serverID, c.machine, c.class, unseenFor)
	c.exhausted.Set(c.unseenKey(), classError{err, c.clock.Now().Add(unseenFor)})
}

// noteFault records what a server in ERROR shows about its class, an exhausted choice or quota or one
// more failure, and returns the error for the manager. Failures are counted because STACKIT does not
// document its messages for a full zone: a second server that fails, requested after the first one failed
// and with none ACTIVE since, lets the cluster autoscaler try another pool.
func (c *call) noteFault(w *watch, fault error) error {
	fault = c.noteExhausted(fault, c.choiceOf(w.server), w.server.Zone)
	if reasonOf(fault) != ReasonServerFailed {
		return fault
	}
	since, _ := c.failing.Lookup(c.specKey())
	if since.IsZero() {
		c.failing.Set(c.specKey(), c.clock.Now())
	}
	if since.IsZero() || !c.record().postedAt.After(since) {
		return fault
	}
	return newError(ReasonServersFail, "all recent servers of the class ended in ERROR: %w", fault)
}

// choiceOf returns the choice that the Machine's server was created with: the last POST's or, after a
// restart, by its machine type and zone.
func (c *call) choiceOf(server *Server) apis.Choice {
	if known := c.record(); known.serverID == server.ID && slices.Contains(c.spec.Choices(), known.choice) {
		return known.choice
	}
	for _, choice := range c.spec.Choices() {
		isInZone := choice.AvailabilityZone == server.Zone || choice.AvailabilityZone == "" || server.Zone == ""
		if len(c.spec.Fallbacks) == 0 || choice.MachineType == server.MachineType && isInZone {
			return choice
		}
	}
	return apis.Choice{MachineType: server.MachineType, AvailabilityZone: server.Zone} // the class was edited since
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Run deletes all things of the run, at once. It looks until nothing was there for the time
// that lists may lag: a request of a killed run may still be on its way.
func (s Sweeper) Run(ctx context.Context, run string) (found int, err error) {
	return s.sweep(ctx, func(t thing) bool { return t.run == run }, s.Settle)
}

// Old deletes the things of all runs that are older than OldAfter.
func (s Sweeper) Old(ctx context.Context) (found int, err error) {
	return s.sweep(ctx, func(t thing) bool { return t.ageKnown && t.age > OldAfter }, 0)
}

// sweep deletes what goes, in rounds: one whose lists fail in part does not keep what they show
// from going. It ends after rounds that show nothing for the quiet time, two at least.
func (s Sweeper) sweep(ctx context.Context, goes func(thing) bool, quiet time.Duration) (found int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("sweep: not everything was gone after %s", s.Patience))
	defer cancel()
	d := deleting{Sweeper: s, goes: goes, told: map[string]bool{}, asked: map[string]int{}}
	var problem error
	for clean := (time.Time{}); ; {
		began := time.Now()
		all, err := s.list(ctx)
		if ctx.Err() == nil {
			problem = err
		}
		switch {
		case d.remove(ctx, all) || err != nil:
			clean = time.Time{}
		case clean.IsZero():
			clean = began
		}
		if !clean.IsZero() && began.Sub(clean) >= quiet {
			return len(d.asked), nil
		}
		if err := api.Pause(ctx, s.Poll); err != nil {
			return len(d.asked), errors.Join(err, problem)
		}
	}
}

// deleting is one sweep.
type deleting struct {
	Sweeper

	goes func(thing) bool
	// told has what was said already.
	told map[string]bool
	// asked has the round in which each thing was found, or last asked to go.
	asked  map[string]int
	rounds int
}

// remove asks for deletions, and says whether there was anything to delete. What is refused is
// asked for again, as long as it is found.
func (d *deleting) remove(ctx context.Context, all things) (found bool) {
	d.rounds++
	for _, t := range all {
		if !t.ours || !d.goes(t) {
			continue
		}
		if holder, held := all.server(t.holder); held && (!holder.ours || !d.goes(holder)) {
			d.tell("leaves %s: it is attached to a server that is not to be deleted", t)
			continue
		}
		found = true
		d.tell("deletes %s", t)
		if d.due(t) {
			d.delete(ctx, t)
		}
	}
	return found
}

func (d *deleting) tell(format string, t thing) {
	if !d.told[t.id] {
		d.told[t.id] = true
		_, _ = fmt.Fprintf(d.Out, "sweep: "+format+"\n", t)
	}
}

// stuckAfter is after how many rounds a server that is being deleted is asked to go again.
const stuckAfter = 10

// due says whether a deletion is to be asked for now.
func (d *deleting) due(t thing) bool {
	last, known := d.asked[t.id]
	if !known {
		d.asked[t.id] = d.rounds
	}
	switch {
	case t.holder != "":
		return false // It goes with its server.
	case t.kind == server && !t.live():
		return known && d.rounds-last > stuckAfter
	}
	return true
}

// delete asks for one deletion. No other function does.
func (d *deleting) delete(ctx context.Context, t thing) {
	d.asked[t.id] = d.rounds
	if t.kind == server && t.live() {
		// So that what the server leaves is found.
		if read, err := d.API.Server(ctx, t.id); err == nil && read != nil {
			_, _ = d.Tag(ctx, read)
		}
	}
	_, _ = d.API.Do(ctx, http.MethodDelete, t.path, nil)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/inventory"
)

// clearScreen puts the cursor into the corner of an empty screen (ECMA-48).
const clearScreen = "\x1b[H\x1b[2J"

// watcher reads again and again.
type watcher struct {
	*listing
	op *account.Access
	// seen is the last inventory that could be compared; nil before the first.
	seen *inventory.Inventory
	// unread is what was said of parts that could not be read.
	unread []inventory.Unread
}

// run shows every round, until the context ends: that is no error.
func (w *watcher) run(ctx context.Context) error {
	for {
		found := inventory.Read(ctx, w.op, w.query)
		if stopped(ctx) {
			return nil
		}
		if err := w.show(found); err != nil {
			return err
		}
		timer := w.clock.NewTimer(w.interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// stopped says whether the user has ended the command.
func stopped(ctx context.Context) bool { return ctx.Err() != nil }

// show shows a round: on a terminal as a table, elsewhere what has changed.
func (w *watcher) show(found *inventory.Inventory) error {
	if isTerminal(w.streams.Out) {
		if _, err := fmt.Fprint(w.streams.Out, clearScreen); err != nil {
			return err
		}
		w.unread = nil
		defer w.sayUnread(found)
		return w.printText(found)
	}
	w.sayUnread(found)
	if w.seen == nil {
		w.seen = found
		return w.printText(found)
	}
	if !canCompare(w.seen, found) {
		return nil
	}
	changes := w.kind.table(w.seen).changesTo(w.kind.table(found), w.output.value == formatWide)
	w.seen = found
	for _, change := range changes {
		if _, err := fmt.Fprintf(w.streams.Out, "%s %s\n", found.Time.UTC().Format(time.RFC3339), change); err != nil {
			return err
		}
	}
	return nil
}

// sayUnread says what could not be read, unless it was said of the round before.
func (w *watcher) sayUnread(found *inventory.Inventory) {
	for _, unread := range found.Unread {
		if !slices.Contains(w.unread, unread) {
			w.say("%v", unread)
		}
	}
	w.unread = found.Unread
}

// canCompare says whether a later round has read all that the earlier one has: what was not
// read would look as if it had gone.
func canCompare(earlier, later *inventory.Inventory) bool {
	for _, now := range later.Unread {
		if !slices.ContainsFunc(earlier.Unread, func(was inventory.Unread) bool { return was.Part == now.Part && was.Where == now.Where }) {
			return false
		}
	}
	return true
}

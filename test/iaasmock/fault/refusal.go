// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "time"

// Refusal reports whether connections are refused now, and when that may change; zero:
// only by Add or Remove.
func (b *Book) Refusal(now time.Time) (refusing bool, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.entries {
		if !entry.fault.RefuseConnections || entry.over(now) {
			continue
		}
		turn := entry.startsAt
		if !now.Before(entry.startsAt) {
			refusing, turn = true, entry.endsAt
		}
		if !turn.IsZero() && (next.IsZero() || turn.Before(next)) {
			next = turn
		}
	}
	return refusing, next
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// The manager's lease, as it is by default.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// newFence is the fence of a leader with this lease, as cmd/machine-controller makes
// it.
func newFence(clock clock.WithTicker) *spi.Fence {
	return spi.NewFence(clock, max(time.Second, leaseDuration-renewDeadline-retryPeriod), max(leaseDuration, renewDeadline+retryPeriod+time.Second))
}

// stillness is a time in which a process stands still, and what comes of it. Its
// lease was renewed within a retry period before.
type stillness struct {
	// length of it; 0 is none.
	length time.Duration
	// takeover is when another process takes the lease, from the beginning, unless it
	// was renewed before; 0 means that there is no other.
	takeover time.Duration
	// renewal is how long after its end the lease is renewed that nobody took, notice
	// when the process ends that has lost it.
	renewal, notice time.Duration
	// fresh is how long after its end the process's cache shows the present.
	fresh time.Duration
}

// drawStillness draws one: within what passes for no pause, within the lease, or
// beyond.
func drawStillness(rng *rand.Rand) stillness {
	s := stillness{
		length: pick(rng, between(rng, time.Second, 3*time.Second), between(rng, 3*time.Second, leaseDuration+retryPeriod),
			between(rng, leaseDuration, time.Minute), between(rng, leaseDuration, 3*time.Minute)),
		renewal: between(rng, 0, retryPeriod),
		notice:  pick(rng, renewDeadline+retryPeriod, between(rng, 0, renewDeadline+retryPeriod)),
		fresh:   between(rng, 0, renewDeadline),
	}
	if rng.IntN(4) > 0 {
		// Renewed up to a retry period before, and tried to take as often.
		s.takeover = between(rng, leaseDuration-retryPeriod, leaseDuration+retryPeriod)
	}
	return s
}

// lost says whether another process leads afterwards.
func (s stillness) lost() bool { return s.takeover > 0 && s.takeover < s.length+s.renewal }

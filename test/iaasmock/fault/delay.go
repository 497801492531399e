// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"math/rand/v2"
	"time"
)

// Distributions of the random delay from Fault.Delay to Fault.DelayMax.
const (
	// DelayUniform makes every delay between them equally likely. It is the default.
	DelayUniform = "uniform"
	// DelayNormal makes delays in the middle more likely.
	DelayNormal = "normal"
	// DelayLongTail keeps most delays near Delay and makes a few very long: the mean is a
	// tenth of the way to DelayMax.
	DelayLongTail = "longtail"
)

// Spread returns a random duration from 0 to span with this distribution.
func Spread(rng *rand.Rand, span time.Duration, distribution string) time.Duration {
	if span <= 0 {
		return 0
	}
	var part float64
	switch distribution {
	case DelayNormal:
		part = 0.5 + rng.NormFloat64()/6
	case DelayLongTail:
		part = rng.ExpFloat64() / 10
	default:
		part = rng.Float64()
	}
	return time.Duration(min(max(part, 0), 1) * float64(span))
}

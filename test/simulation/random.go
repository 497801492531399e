// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// chance is true with that probability.
func chance(rng *rand.Rand, probability float64) bool {
	return probability > 0 && rng.Float64() < probability
}

// between is a duration in least to most, to the nanosecond: moments then hardly
// ever coincide, so that their order is the seed's and not the scheduler's.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// random is a stream that depends on the seed and a name only, not on what else
// was drawn.
func random(seed uint64, name ...any) *rand.Rand {
	hash := fnvHash(fmt.Sprint(name...))
	return rand.New(rand.NewPCG(seed, hash))
}

func fnvHash(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}

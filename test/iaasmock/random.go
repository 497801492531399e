// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// randomSource makes the Cloud's random streams, one for each purpose, so that drawing
// from one does not change the others. Secrets do not come from it.
type randomSource struct{ seed uint64 }

func (d randomSource) stream(purpose string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose))
	return rand.New(rand.NewPCG(d.seed, hash.Sum64()))
}

// lockedStream is a stream that calls share.
type lockedStream struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d randomSource) lockedStream(purpose string) *lockedStream {
	return &lockedStream{rng: d.stream(purpose)}
}

func (s *lockedStream) spread(span time.Duration, distribution string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fault.Spread(s.rng, span, distribution)
}

// number returns a random number from 0 to below-1.
func (s *lockedStream) number(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(below)
}

// uuid returns a random (version 4) UUID.
func (s *lockedStream) uuid() string {
	var id uuid.UUID
	s.mu.Lock()
	high, low := s.rng.Uint64(), s.rng.Uint64()
	s.mu.Unlock()
	for i := range 8 {
		id[i], id[8+i] = byte(high>>(8*i)), byte(low>>(8*i)) //nolint:gosec // the lowest byte is meant
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// maxBodies is how much memory the large request bodies that are under way may take
	// together, in bytes. User data may have a megabyte, and hundreds of machines may be created
	// at a time.
	maxBodies = 64 << 20
	// bodyCopies is how many copies of a body the SDK has in memory while it makes one.
	bodyCopies = 4
	// smallBody is the size, in bytes, up to which a request body does not count.
	smallBody = 64 << 10
)

// bodyShares are what the large request bodies of all sessions share.
type bodyShares struct {
	free  *semaphore.Weighted
	clock clock.PassiveClock
}

func newBodyShares(clock clock.PassiveClock) *bodyShares {
	return &bodyShares{semaphore.NewWeighted(maxBodies), clock}
}

// take waits until a request body of that many bytes may be made, and returns what ends its
// time. The error is a *NotSentError, with the context's.
func (b *bodyShares) take(ctx context.Context, size int) (done func(), err error) {
	if b == nil || size <= smallBody {
		return func() {}, nil
	}
	start := b.clock.Now()
	share := int64(min(bodyCopies*size, maxBodies))
	err = b.free.Acquire(ctx, share)
	callWaits.WithLabelValues(string(waitForBody)).Add(b.clock.Since(start).Seconds())
	if err != nil {
		return nil, notSent(fmt.Errorf("waiting for the memory of other requests: %w", err))
	}
	return func() { b.free.Release(share) }, nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
)

// exhaustedFor is how long a class that ran out of quota or capacity, or whose machine type
// does not exist, is answered so again without a POST: every event of a class makes the manager call
// for all of its machines, whatever its retry period.
const exhaustedFor = time.Minute

// exhaustion remembers which classes were answered ResourceExhausted.
type exhaustion = recent.Map[classKey, exhausted]

// classKey names a class across sessions, with the providerSpec that was refused:
// another may be served.
type classKey struct {
	endpoint, projectID, region, class string
	spec                               [sha256.Size]byte
}

// exhausted is the error that a class ran out with, and until when it is the answer.
type exhausted struct {
	err   error
	until time.Time
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

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
	endpoint, projectID, region, class, spec string
}

// exhausted is the error that a class ran out with, and until when it is the answer.
type exhausted struct {
	err   error
	until time.Time
}

func (c *call) classKey() classKey {
	return classKey{c.key.Endpoint, c.key.ProjectID, c.key.Region, c.class, c.rawSpec}
}

// noteExhausted remembers the error if it says that something is exhausted.
func (c *call) noteExhausted(err error) {
	if code, _ := classify(err); code == codes.ResourceExhausted {
		c.exhausted.Set(c.classKey(), exhausted{err, c.clock.Now().Add(exhaustedFor)})
	}
}

// checkExhausted returns the error that the class ran out with, if it still holds.
func (c *call) checkExhausted() error {
	if found, ok := c.exhausted.Lookup(c.classKey()); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}

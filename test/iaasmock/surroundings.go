// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"time"
)

// surroundings is what there is around servers, their NICs and volumes. The
// cloud's lock guards it, too.
type surroundings struct {
	publicIPs collection[*PublicIP]
	// publicPool is where public IPs come from.
	publicPool *addressPool
	// quotas are those that projects have of their own.
	quotas map[string]Quota
	// requests are the calls that changed something.
	requests requestBook
	// startedAt is when the projects were made.
	startedAt time.Time
}

func newSurroundings() surroundings {
	return surroundings{
		publicIPs: newCollection[*PublicIP](),
		quotas:    map[string]Quota{},
		requests:  requestBook{changes: newCollection[change]()},
	}
}

func (c *Cloud) seedSurroundings() (err error) {
	c.startedAt = c.clock.Now()
	if c.publicPool, err = newAddressPool(publicPrefix); err != nil {
		return err
	}
	for _, seeded := range c.catalogue.PublicIPs {
		if err := c.seedPublicIP(seeded); err != nil {
			return fmt.Errorf("public IP %s: %w", seeded.ID, err)
		}
	}
	for _, project := range c.catalogue.Projects {
		if project.Quota != nil {
			c.quotas[project.ID] = *project.Quota
		}
	}
	return nil
}

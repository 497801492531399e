// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"time"
)

// projectResources is what there is around servers, their NICs and volumes. The
// cloud's lock guards it, too.
type projectResources struct {
	publicIPs collection[*PublicIP]
	// publicPool is where public IPs come from.
	publicPool *addressPool
	// quotas are those that projects have of their own.
	quotas map[string]Quota
	// requests are the calls that changed something.
	requests changeLog
	// startedAt is when the projects were made.
	startedAt time.Time
}

func newProjectResources() projectResources {
	return projectResources{
		publicIPs: newCollection[*PublicIP](),
		quotas:    map[string]Quota{},
		requests:  changeLog{changes: newCollection[change]()},
	}
}

func (c *Cloud) loadProjectResources() (err error) {
	c.startedAt = c.clock.Now()
	if c.publicPool, err = newAddressPool(publicPrefix); err != nil {
		return err
	}
	for _, publicIP := range c.catalogue.PublicIPs {
		if err := c.loadPublicIP(publicIP); err != nil {
			return fmt.Errorf("public IP %s: %w", publicIP.ID, err)
		}
	}
	for _, project := range c.catalogue.Projects {
		if project.Quota != nil {
			c.quotas[project.ID] = *project.Quota
		}
	}
	return nil
}

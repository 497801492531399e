// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"time"
)

// projectResources are public IPs, quotas, requests and the age of projects. Cloud.mu
// guards them, too.
type projectResources struct {
	publicIPs collection[*PublicIP]
	// publicPool has the addresses of public IPs.
	publicPool *addressPool
	// quotas are the projects' own quotas.
	quotas map[string]Quota
	// requests are the calls that changed a resource.
	requests changeLog
	// startedAt is when the projects were created.
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

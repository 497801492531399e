// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

// projectResources are quotas and the age of projects. Cloud.mu
// guards them, too.
type projectResources struct {
	// quotas are the projects' own quotas.
	quotas map[string]Quota
	// startedAt is when the projects were created.
	startedAt time.Time
}

func newProjectResources() projectResources {
	return projectResources{
		quotas: map[string]Quota{},
	}
}

func (c *Cloud) loadProjectResources() {
	c.startedAt = c.clock.Now()
	for _, project := range c.catalogue.Projects {
		if project.Quota != nil {
			c.quotas[project.ID] = *project.Quota
		}
	}
}

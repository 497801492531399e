// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"time"
)

// Quota limits the resources of a project's servers in each region. A CreateServer that would
// exceed a limit is refused; existing resources stay.
type Quota struct {
	VCPUs int64
	// RAM is the total memory, in MB.
	RAM     int64
	Volumes int64
	// Gigabytes is the total size of volumes and snapshots.
	Gigabytes int64
	NICs      int64
}

// DefaultQuota returns the quota that every project has without WithQuota. It is enough for tens of
// thousands of servers.
func DefaultQuota() Quota {
	return Quota{VCPUs: 1_000_000, RAM: 4_000_000_000, Volumes: 100_000, Gigabytes: 1_000_000_000, NICs: 100_000}
}

// allowServer refuses a server that exceeds the rest of the quota. The message names the first
// exceeded limit.
func (c *Cloud) allowServer(project, region string, need Quota) *apiError {
	used, most := c.usage(project, region), c.quota
	for _, q := range []struct {
		name               string
		wanted, used, most int64
	}{
		{"cores", need.VCPUs, used.VCPUs, most.VCPUs},
		{"ram", need.RAM, used.RAM, most.RAM},
		{"ports", need.NICs, used.NICs, most.NICs},
		{"volumes", need.Volumes, used.Volumes, most.Volumes},
		{"gigabytes", need.Gigabytes, used.Gigabytes, most.Gigabytes},
	} {
		if q.wanted > 0 && q.used+q.wanted > q.most {
			// Source: pull request 96 of the public STACKIT provider for machine-controller-manager:
			// an exceeded quota is an error of the create call. The code is unknown; the text is
			// OpenStack's.
			return newError(http.StatusForbidden, "Quota exceeded for %s: Requested %d, but already used %d of %d %s",
				q.name, q.wanted, q.used, q.most, q.name)
		}
	}
	return nil
}

// usage returns the project's usage in the region.
func (c *Cloud) usage(project, region string) Quota {
	in := func(itsProject, itsRegion string) bool { return itsProject == project && itsRegion == region }
	var used Quota
	for s := range c.servers.each() {
		if in(s.ProjectID, s.Region) {
			machineType, _ := first(c.catalogue.Resources, func(r Resource) bool {
				return r.Kind == KindMachineType && r.ID == s.MachineType
			})
			used.VCPUs += machineType.number("vcpus")
			used.RAM += machineType.number("ram")
		}
	}
	for v := range c.volumes.each() {
		if in(v.ProjectID, v.Region) {
			used.Volumes++
			used.Gigabytes += v.Size
		}
	}
	for _, s := range c.catalogue.Resources {
		if s.Kind == KindSnapshot && in(s.ProjectID, s.Region) {
			used.Gigabytes += s.number("size")
		}
	}
	for n := range c.nics.each() {
		if in(n.ProjectID, n.Region) {
			used.NICs++
		}
	}
	return used
}

// listQuotas shows the enforced quotas. The others, which the document requires as well, look
// unlimited and unused.
func (c *Cloud) listQuotas(r *request) (any, *apiError) {
	var used Quota
	c.locked(func(time.Time) { used = c.usage(r.project(), r.region()) })
	view, most := object{}, c.quota
	for _, name := range []string{
		"snapshots", "backups", "backupGigabytes", "publicIps", "networks", "securityGroups", "securityGroupRules",
	} {
		view[name] = object{"limit": -1, "usage": 0}
	}
	for name, q := range map[string][2]int64{
		"vcpu": {most.VCPUs, used.VCPUs}, "ram": {most.RAM, used.RAM}, "volumes": {most.Volumes, used.Volumes},
		"gigabytes": {most.Gigabytes, used.Gigabytes}, "nics": {most.NICs, used.NICs},
	} {
		view[name] = object{"limit": q[0], "usage": q[1]}
	}
	return object{"quotas": view}, nil
}

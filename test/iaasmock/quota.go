// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Quota is how much a project may have in each region. Requests that would exceed a limit
// are refused; existing resources stay.
type Quota struct {
	VCPUs int64
	// RAM is in MB.
	RAM       int64
	Volumes   int64
	Snapshots int64
	Backups   int64
	// Gigabytes is the size of volumes and snapshots together, BackupGigabytes
	// that of backups.
	Gigabytes          int64
	BackupGigabytes    int64
	PublicIPs          int64
	Networks           int64
	NICs               int64
	SecurityGroups     int64
	SecurityGroupRules int64
}

// DefaultQuota returns the quota of every project without WithQuota: enough for tens of thousands of servers.
func DefaultQuota() Quota {
	return Quota{
		VCPUs: 1_000_000, RAM: 4_000_000_000,
		Volumes: 100_000, Snapshots: 100_000, Backups: 100_000, Gigabytes: 1_000_000_000, BackupGigabytes: 100_000_000,
		PublicIPs: 1000, Networks: 1000, NICs: 100_000, SecurityGroups: 1000, SecurityGroupRules: 10_000,
	}
}

// demand is a requested amount of a limited resource. name is the resource in messages.
type demand struct {
	name               string
	wanted, used, most int64
}

func (d demand) exceeds() bool { return d.wanted > 0 && d.used+d.wanted > d.most }

// exceededText lists all resources of which there would be too much.
func exceededText(exceeded []demand) string {
	var names, wanted, used, most []string
	for _, d := range exceeded {
		names = append(names, d.name)
		wanted = append(wanted, fmt.Sprint(d.wanted))
		used = append(used, fmt.Sprint(d.used))
		most = append(most, fmt.Sprint(d.most))
	}
	list := func(items []string) string { return strings.Join(items, ", ") }
	return fmt.Sprintf("Quota exceeded for %s: Requested %s, but already used %s of %s %s",
		list(names), list(wanted), list(used), list(most), list(names))
}

// quotaNeed is what a new server needs.
type quotaNeed struct {
	vcpus, ram, nics, volumes, gigabytes int64
}

// allowServer refuses a server that would exceed quotas. The message names all of them.
func (c *Cloud) allowServer(project, region string, need quotaNeed) *apiError {
	used, most := c.usage(project, region), c.quota
	var exceeded []demand
	for _, d := range []demand{
		{"cores", need.vcpus, used.VCPUs, most.VCPUs},
		{"ram", need.ram, used.RAM, most.RAM},
		{"ports", need.nics, used.NICs, most.NICs},
		{"volumes", need.volumes, used.Volumes, most.Volumes},
		{"gigabytes", need.gigabytes, used.Gigabytes, most.Gigabytes},
	} {
		if d.exceeds() {
			exceeded = append(exceeded, d)
		}
	}
	if exceeded == nil {
		return nil
	}
	// Source: pull request 96 of the public STACKIT provider for machine-controller-manager:
	// a quota exceeded is an error of the create call. The code is not known; the text is
	// OpenStack's.
	return newError(http.StatusForbidden, "%s", exceededText(exceeded))
}

// allowVolume refuses a volume that would exceed a quota, with OpenStack's messages.
func (c *Cloud) allowVolume(project, region string, gigabytes int64) *apiError {
	used, most := c.usage(project, region), c.quota
	switch {
	case used.Volumes+1 > most.Volumes:
		// Source: the document: a quota has a limit; 413 of CreateVolume.
		return newError(http.StatusRequestEntityTooLarge,
			"VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", most.Volumes)
	case used.Gigabytes+gigabytes > most.Gigabytes:
		// Source: the document: a quota has a limit; 413 of CreateVolume.
		return newError(http.StatusRequestEntityTooLarge,
			"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. "+
				"Requested %dG, quota is %dG and %dG has been consumed.", gigabytes, most.Gigabytes, used.Gigabytes)
	default:
		return nil
	}
}

// allowNIC refuses a NIC that would exceed the quota, with OpenStack's message.
func (c *Cloud) allowNIC(project, region string) *apiError {
	if c.usage(project, region).NICs+1 > c.quota.NICs {
		// Source: the document: a quota has a limit; 429 of CreateNic.
		return newError(http.StatusTooManyRequests, "Quota exceeded for resources: ['port'].")
	}
	return nil
}

// allowNetwork refuses a network that would exceed the quota, with OpenStack's message.
func (c *Cloud) allowNetwork(project, region string) *apiError {
	if c.usage(project, region).Networks+1 > c.quota.Networks {
		// Source: the document: a quota has a limit; OpenStack answers 409, which CreateNetwork has.
		return newError(http.StatusConflict, "Quota exceeded for resources: ['network'].")
	}
	return nil
}

// usage counts what the project has in the region.
func (c *Cloud) usage(project, region string) Quota {
	in := func(itsProject, itsRegion string) bool { return itsProject == project && itsRegion == region }
	var used Quota
	for s := range c.servers.each() {
		if in(s.ProjectID, s.Region) {
			machineType, _ := c.findMachineType(s.MachineType)
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
			used.Snapshots++
			used.Gigabytes += s.number("size")
		}
	}
	used.NICs = count(c.nics.each(), func(n *nic) bool { return in(n.ProjectID, n.Region) })
	used.Networks = count(c.networks.each(), func(n *network) bool { return in(n.ProjectID, n.Region) })
	used.SecurityGroups = count(slices.Values(c.catalogue.Resources), func(g Resource) bool {
		return g.Kind == KindSecurityGroup && in(g.ProjectID, g.Region)
	})
	return used
}

func count[T any](items iter.Seq[T], fits func(T) bool) (n int64) {
	for item := range items {
		if fits(item) {
			n++
		}
	}
	return n
}

func (c *Cloud) listQuotas(r *request) (any, *apiError) {
	var used, most Quota
	c.locked(func(time.Time) {
		used, most = c.usage(r.project(), r.region()), c.quota
	})
	view := object{}
	for _, q := range []struct {
		name        string
		limit, used int64
	}{
		{"vcpu", most.VCPUs, used.VCPUs},
		{"ram", most.RAM, used.RAM},
		{"volumes", most.Volumes, used.Volumes},
		{"snapshots", most.Snapshots, used.Snapshots},
		{"backups", most.Backups, used.Backups},
		{"gigabytes", most.Gigabytes, used.Gigabytes},
		{"backupGigabytes", most.BackupGigabytes, used.BackupGigabytes},
		{"publicIps", most.PublicIPs, used.PublicIPs},
		{"networks", most.Networks, used.Networks},
		{"nics", most.NICs, used.NICs},
		{"securityGroups", most.SecurityGroups, used.SecurityGroups},
		{"securityGroupRules", most.SecurityGroupRules, used.SecurityGroupRules},
	} {
		view[q.name] = object{"limit": q.limit, "usage": q.used}
	}
	return object{"quotas": view}, nil
}

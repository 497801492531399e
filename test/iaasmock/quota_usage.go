// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"iter"
	"time"
)

// usage counts what the project has in the region, by the same names as its
// quota.
func (c *Cloud) usage(project, region string) Quota {
	in := func(itsProject, itsRegion string) bool { return itsProject == project && itsRegion == region }
	var used Quota
	for s := range c.servers.each() {
		if in(s.ProjectID, s.Region) {
			machineType, _ := c.findMachineType(s.MachineType)
			used.VCPUs += machineType.VCPUs
			used.RAM += machineType.RAM
		}
	}
	for v := range c.volumes.each() {
		if in(v.ProjectID, v.Region) {
			used.Volumes++
			used.Gigabytes += v.Size
		}
	}
	for _, s := range c.catalogue.Snapshots {
		if in(s.ProjectID, s.Region) {
			used.Snapshots++
			used.Gigabytes += s.Size
		}
	}
	used.NICs = count(c.nics.each(), func(n *nic) bool { return in(n.ProjectID, n.Region) })
	used.PublicIPs = count(c.publicIPs.each(), func(p *PublicIP) bool { return in(p.ProjectID, p.Region) })
	used.Networks = count(c.networks.each(), func(n *network) bool { return in(n.ProjectID, n.Region) })
	for g := range c.securityGroups.each() {
		if in(g.ProjectID, g.Region) {
			used.SecurityGroups++
			used.SecurityGroupRules += int64(len(g.Rules))
		}
	}
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

type quotaView struct {
	Limit int64 `json:"limit"`
	Usage int64 `json:"usage"`
}

type quotasView struct {
	VCPU               quotaView `json:"vcpu"`
	RAM                quotaView `json:"ram"`
	Volumes            quotaView `json:"volumes"`
	Snapshots          quotaView `json:"snapshots"`
	Backups            quotaView `json:"backups"`
	Gigabytes          quotaView `json:"gigabytes"`
	BackupGigabytes    quotaView `json:"backupGigabytes"`
	PublicIPs          quotaView `json:"publicIps"`
	Networks           quotaView `json:"networks"`
	NICs               quotaView `json:"nics"`
	SecurityGroups     quotaView `json:"securityGroups"`
	SecurityGroupRules quotaView `json:"securityGroupRules"`
}

func (c *Cloud) listQuotas(r *request) (any, *apiError) {
	var used, most Quota
	c.locked(func(time.Time) {
		used, most = c.usage(r.project(), r.region()), c.quotaOf(r.project())
	})
	return struct {
		Quotas quotasView `json:"quotas"`
	}{quotasView{
		VCPU:               quotaView{most.VCPUs, used.VCPUs},
		RAM:                quotaView{most.RAM, used.RAM},
		Volumes:            quotaView{most.Volumes, used.Volumes},
		Snapshots:          quotaView{most.Snapshots, used.Snapshots},
		Backups:            quotaView{most.Backups, used.Backups},
		Gigabytes:          quotaView{most.Gigabytes, used.Gigabytes},
		BackupGigabytes:    quotaView{most.BackupGigabytes, used.BackupGigabytes},
		PublicIPs:          quotaView{most.PublicIPs, used.PublicIPs},
		Networks:           quotaView{most.Networks, used.Networks},
		NICs:               quotaView{most.NICs, used.NICs},
		SecurityGroups:     quotaView{most.SecurityGroups, used.SecurityGroups},
		SecurityGroupRules: quotaView{most.SecurityGroupRules, used.SecurityGroupRules},
	}}, nil
}

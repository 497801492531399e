// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

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
		used, most = c.usage(r.project(), r.region()), c.quota
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

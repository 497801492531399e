// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"strings"
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

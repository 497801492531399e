// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// demand is how much machines take of the quota.
type demand struct{ vcpus, ram, volumes, gigabytes, nics int64 }

// checkQuota asks whether Replicas more machines of each class of an account fit into what
// is left of its quota.
func (v *validator) checkQuota(ctx context.Context, in *catalogue, checks []*onlineCheck) {
	session := in.account.Session
	add := func(verdict report.Verdict, field, found, remedy string) {
		v.add(false, report.Finding{
			Verdict: verdict, Subject: fmt.Sprintf("quota of project %s in %s", session.ProjectID, in.account.Region),
			Field: field, Found: found, Remedy: remedy,
		})
	}
	var need demand
	for _, check := range checks {
		one, known := check.demandOfOne()
		if !known {
			add(report.Unknown, "", fmt.Sprintf("what machines of %s take could not be told: its machine type or the size of its disk is not known", check.subject()), "")
			return
		}
		need.vcpus += one.vcpus * v.options.Replicas
		need.ram += one.ram * v.options.Replicas
		need.volumes += one.volumes * v.options.Replicas
		need.gigabytes += one.gigabytes * v.options.Replicas
		need.nics += one.nics * v.options.Replicas
	}
	answer, err := ask(ctx, in, account.Quotas, "")
	if err != nil {
		found, remedy := couldNotTell("the quota", account.Quotas.Permission, err)
		add(report.Unknown, "", found, remedy)
		return
	}
	quotas := answer.GetQuotas()
	for _, row := range []struct {
		name, unit string
		quota      iaas.Quota
		need       int64
	}{
		{"vcpu", "", quotas.Vcpu, need.vcpus},
		{"ram", " MB", quotas.Ram, need.ram},
		{"volumes", "", quotas.Volumes, need.volumes},
		{"gigabytes", " GB", quotas.Gigabytes, need.gigabytes},
		{"nics", "", quotas.Nics, need.nics},
	} {
		left := row.quota.Limit - row.quota.Usage
		needed := fmt.Sprintf("%d%s %s needed", row.need, row.unit, isOrAre(row.need))
		found := fmt.Sprintf("%s, %d of %d %s left", needed, left, row.quota.Limit, isOrAre(left))
		switch {
		case row.quota.Limit < 0:
			// OpenStack, which is below the API, writes "no limit" as -1.
			add(report.Fine, row.name, needed+", and there is no limit", "")
		case row.need > 0 && row.need > left:
			add(report.Wrong, row.name, found, "raise the quota, or ask for fewer or smaller machines")
		default:
			add(report.Fine, row.name, found, "")
		}
	}
}

func isOrAre(count int64) string {
	if count == 1 {
		return "is"
	}
	return "are"
}

// demandOfOne returns what one more machine of the class takes, and whether that is known.
func (k *onlineCheck) demandOfOne() (one demand, known bool) {
	boot := k.spec.BootVolume
	if k.machineType == nil || boot == nil || boot.Source == nil {
		return demand{}, false
	}
	one = demand{vcpus: k.machineType.Vcpus, ram: k.machineType.Ram}
	if boot.Source.Type != apis.SourceVolume {
		if k.newVolume == 0 {
			return demand{}, false
		}
		one.volumes, one.gigabytes = 1, k.newVolume
	}
	if k.spec.Networking != nil && len(k.spec.Networking.NICIDs) == 0 {
		one.nics = 1
	}
	return one, true
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// usage is what GET quotas says is used, zeros left out.
func (m *mock) usage() map[string]int {
	m.t.Helper()
	used := map[string]int{}
	for name, quota := range m.want(200, "GET", inRegion+"/quotas", nil)["quotas"].(object) {
		if value := int(quota.(object)["usage"].(float64)); value != 0 {
			used[name] = value
		}
	}
	return used
}

// change is how usage differs from before.
func (m *mock) change(before map[string]int) map[string]int {
	m.t.Helper()
	changed := map[string]int{}
	now := m.usage()
	for name := range m.want(200, "GET", inRegion+"/quotas", nil)["quotas"].(object) {
		if difference := now[name] - before[name]; difference != 0 {
			changed[name] = difference
		}
	}
	return changed
}

func TestQuotasCount(t *testing.T) {
	m := openMock(t)
	catalogue := map[string]int{
		"networks": 2, "nics": 1, "volumes": 2, "snapshots": 1, "gigabytes": 60, "securityGroups": 2,
	}
	if diff := cmp.Diff(catalogue, m.usage()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	for _, row := range []struct {
		name string
		do   func()
		want map[string]int
	}{
		{"a server with its own disk and NIC", func() { m.create(nil) }, map[string]int{"vcpu": 2, "ram": 4096, "nics": 1, "volumes": 1, "gigabytes": 20}},
		{"a server with what is there", func() {
			m.create(object{
				"machineType": "g2i.4", "networking": object{"nicIds": []string{iaasmock.DefaultNICID}},
				"bootVolume": object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}},
			})
		}, map[string]int{"vcpu": 4, "ram": 16384}},
		{"a volume", func() { m.want(201, "POST", inRegion+"/volumes", object{"availabilityZone": "eu01-1", "size": 7}) }, map[string]int{"volumes": 1, "gigabytes": 7}},
		{"a NIC", func() { m.want(201, "POST", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics", object{}) }, map[string]int{"nics": 1}},
	} {
		before := m.usage()
		row.do()
		if diff := cmp.Diff(row.want, m.change(before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	for _, server := range m.cloud.Servers() {
		m.want(204, "DELETE", inRegion+"/servers/"+server.ID, nil)
	}
	before := m.usage()
	m.clock.Step(remove)
	want := map[string]int{"vcpu": -6, "ram": -20480, "nics": -1, "volumes": -1, "gigabytes": -20}
	if diff := cmp.Diff(want, m.change(before)); diff != "" {
		t.Errorf("once the servers are gone (-want +got):\n%s", diff)
	}
	other := m.want(200, "GET", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu02/quotas", nil)["quotas"].(object)
	if used := other["vcpu"].(object); used["usage"] != float64(0) || used["limit"] != float64(iaasmock.DefaultQuota().VCPUs) {
		t.Errorf("another project's are %v", used)
	}
}

func TestQuotasAreEnforced(t *testing.T) {
	newVolume := object{"availabilityZone": "eu01-1", "size": 20}
	for _, row := range []struct {
		name         string
		limit        func(*iaasmock.Quota)
		method, path string
		body         object
		code         int
		message      string
	}{
		{"cores", func(q *iaasmock.Quota) { q.VCPUs = 1 }, "POST", "/servers", serverBody(nil), 403, "Quota exceeded for cores: Requested 2, but already used 0 of 1 cores"},
		{"cores and memory", func(q *iaasmock.Quota) { q.VCPUs, q.RAM = 1, 5 }, "POST", "/servers", serverBody(nil), 403, "Quota exceeded for cores, ram: Requested 2, 4096, but already used 0, 0 of 1, 5 cores, ram"},
		{"NICs of a server", func(q *iaasmock.Quota) { q.NICs = 1 }, "POST", "/servers", serverBody(nil), 403, "Quota exceeded for ports: Requested 1, but already used 1 of 1 ports"},
		{"disks of a server", func(q *iaasmock.Quota) { q.Volumes = 2 }, "POST", "/servers", serverBody(nil), 403, "Quota exceeded for volumes: Requested 1, but already used 2 of 2 volumes"},
		{"disk size of a server", func(q *iaasmock.Quota) { q.Gigabytes = 79 }, "POST", "/servers", serverBody(nil), 403, "Quota exceeded for gigabytes: Requested 20, but already used 60 of 79 gigabytes"},
		{"volumes", func(q *iaasmock.Quota) { q.Volumes = 2 }, "POST", "/volumes", newVolume, 413, "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded for quota 'volumes'."},
		{"volume size", func(q *iaasmock.Quota) { q.Gigabytes = 79 }, "POST", "/volumes", newVolume, 413, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 20G, quota is 79G and 60G has been consumed."},
		{"NICs", func(q *iaasmock.Quota) { q.NICs = 1 }, "POST", "/networks/" + iaasmock.DefaultNetworkID + "/nics", object{}, 429, "Quota exceeded for resources: ['port']."},
	} {
		t.Run(row.name, func(t *testing.T) {
			quota := iaasmock.DefaultQuota()
			row.limit(&quota)
			m := openMock(t, iaasmock.WithQuota(quota))
			before := m.usage()
			if got := m.want(row.code, row.method, inRegion+row.path, row.body)["msg"]; got != row.message {
				t.Errorf("said %q\nwant %q", got, row.message)
			}
			if changed := m.change(before); len(changed) > 0 || m.cloud.History() != (iaasmock.Totals{}) {
				t.Errorf("all the same there is more: %v", changed)
			}
		})
	}
}

func TestQuotaUpToTheLimit(t *testing.T) {
	quota := iaasmock.DefaultQuota()
	quota.VCPUs = 4
	m := openMock(t, iaasmock.WithQuota(quota))
	first := m.create(nil)
	m.create(nil)
	if got := m.want(403, "POST", inRegion+"/servers", serverBody(nil))["msg"]; got != "Quota exceeded for cores: Requested 2, but already used 4 of 4 cores" {
		t.Errorf("refused with %q", got)
	}
	m.want(201, "POST", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/"+iaasmock.DefaultRegion+"/servers",
		serverBody(object{"networking": object{"networkId": iaasmock.SecondProjectNetworkID}}))
	m.want(204, "DELETE", inRegion+"/servers/"+first, nil)
	m.want(403, "POST", inRegion+"/servers", serverBody(nil))
	m.clock.Step(remove)
	m.create(nil)
}

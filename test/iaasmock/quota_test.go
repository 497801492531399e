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
	if diff := cmp.Diff(map[string]int{"nics": 1, "volumes": 2, "gigabytes": 60}, m.usage()); diff != "" {
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
		{"servers that are being deleted", func() {
			for _, server := range m.cloud.Servers() {
				m.want(204, "DELETE", inRegion+"/servers/"+server.ID, nil)
			}
		}, map[string]int{}},
		{"servers that are gone", func() { m.clock.Step(remove) },
			map[string]int{"vcpu": -6, "ram": -20480, "nics": -1, "volumes": -1, "gigabytes": -20}},
	} {
		before := m.usage()
		row.do()
		if diff := cmp.Diff(row.want, m.change(before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	other := m.want(200, "GET", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu02/quotas", nil)["quotas"].(object)
	if used := other["vcpu"].(object); used["usage"] != float64(0) || used["limit"] != float64(iaasmock.DefaultQuota().VCPUs) {
		t.Errorf("another project's are %v", used)
	}
}

func TestQuotasAreEnforced(t *testing.T) {
	for _, row := range []struct {
		limit   func(*iaasmock.Quota)
		message string // empty if the server is made
	}{
		{func(q *iaasmock.Quota) { q.VCPUs, q.RAM, q.NICs, q.Volumes, q.Gigabytes = 2, 4096, 2, 3, 80 }, ""},
		{func(q *iaasmock.Quota) { q.VCPUs = 1 }, "cores: Requested 2, but already used 0 of 1 cores"},
		{func(q *iaasmock.Quota) { q.VCPUs, q.RAM = 1, 5 }, "cores, ram: Requested 2, 4096, but already used 0, 0 of 1, 5 cores, ram"},
		{func(q *iaasmock.Quota) { q.NICs = 1 }, "ports: Requested 1, but already used 1 of 1 ports"},
		{func(q *iaasmock.Quota) { q.Volumes = 2 }, "volumes: Requested 1, but already used 2 of 2 volumes"},
		{func(q *iaasmock.Quota) { q.Gigabytes = 79 }, "gigabytes: Requested 20, but already used 60 of 79 gigabytes"},
	} {
		quota := iaasmock.DefaultQuota()
		row.limit(&quota)
		m := openMock(t, iaasmock.WithQuota(quota))
		if row.message == "" {
			m.create(nil)
			m.want(403, "POST", inRegion+"/servers", serverBody(nil))
			m.want(201, "POST", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu02/servers", serverBody(nil))
			continue
		}
		before := m.usage()
		if got := m.want(403, "POST", inRegion+"/servers", serverBody(nil))["msg"]; got != "Quota exceeded for "+row.message {
			t.Errorf("said %q\nwant %q", got, row.message)
		}
		if changed := m.change(before); len(changed) > 0 || m.cloud.History() != (iaasmock.Totals{}) {
			t.Errorf("%s: all the same there is more: %v", row.message, changed)
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// series are those of a metric by the values of their labels, in the order of the
// labels' names. Of a histogram it is the number of observations.
func (r *rig) series(name string) map[string]float64 {
	r.t.Helper()
	return seriesOf(r.t, r.registry, name)
}

func seriesOf(t testing.TB, registry prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	series := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			values := make([]string, 0, len(metric.GetLabel()))
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			series[strings.Join(values, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return series
}

// seconds are all that a histogram observed, rounded.
func (r *rig) seconds(name string) (sum float64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return math.Round(sum)
}

func (r *rig) wantSeries(name string, want map[string]float64) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.series(name)); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const (
	metricDuplicates = "stackit_duplicate_servers_total"
	metricOrphans    = "stackit_orphan_servers_total"
	metricServers    = "stackit_servers"
	metricCreation   = "stackit_machine_creation_duration_seconds"
	metricDeletion   = "stackit_machine_deletion_duration_seconds"
	metricExpiry     = "stackit_key_expiry_timestamp_seconds"
)

// Prometheus does not see the first event of a counter that starts at 1: alerts on the manager's counter would be late.
func TestFailuresAreCountedFromZero(t *testing.T) {
	provider.NewProvider(nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.DriverFailedAPIRequests)
	series := seriesOf(t, registry, "mcm_cloud_api_driver_requests_failed_total")
	for _, reason := range provider.Reasons() {
		for _, method := range []string{"CreateMachine", "DeleteMachine", "ListMachines"} {
			code := reason.Code()
			if _, exists := series[code.String()+" "+method+" stackit"]; !exists &&
				code != codes.NotFound && code != codes.Uninitialized {
				t.Errorf("%s of %s has no series", code, method)
			}
		}
	}
}

func TestMetricsOfAMachinesLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		made := m.mustCreate(machine("m1"))
		m.mustCreate(machine("m1")) // as from a cache that lags
		m.list()
		m.wantSeries(metricCreation, map[string]float64{"class-a": 1})
		if got := m.seconds(metricCreation); got < bootDuration.Seconds() || got > 2*bootDuration.Seconds() {
			t.Errorf("the creation took %vs, the server boots in %s", got, bootDuration)
		}
		m.wantSeries(metricServers, map[string]float64{"class-a " + iaasmock.DefaultMachineType + " ACTIVE eu01-m": 1})
		m.wantSeries(metricDeletion, map[string]float64{})

		m.mustDelete(m.deleted(withID(machine("m1"), made.ProviderID)))
		m.list()
		m.wantSeries(metricServers, map[string]float64{})
		m.wantSeries(metricDeletion, map[string]float64{"class-a": 1})
		if got := m.seconds(metricDeletion); got < deleteDuration.Seconds() || got > 3*deleteDuration.Seconds() {
			t.Errorf("the deletion took %vs, the server goes in %s", got, deleteDuration)
		}
		m.wantSeries(metricDuplicates, map[string]float64{"accepted": 0, "failed": 0})
		m.wantSeries(metricOrphans, map[string]float64{"accepted": 0, "refused": 0})
	})
}

func TestTheTimeOfACreationSpansCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t, iaasmock.WithBootDuration(11*time.Minute))
		if _, err := m.create(machine("m1")); err == nil {
			t.Fatal("a server that boots for longer than a call was created at once")
		}
		m.wantSeries(metricCreation, map[string]float64{})
		m.mustCreate(machine("m1"))
		m.wantSeries(metricCreation, map[string]float64{"class-a": 1})
		if got := m.seconds(metricCreation); got < 660 || got > 680 {
			t.Errorf("the creation took %vs, the server boots in 11 minutes", got)
		}
	})
}

func TestMetricsOfSecondServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		m.makeServer("m1", nil)
		m.makeServer("m1", nil)
		m.mustCreate(machine("m1"))
		m.wantSeries(metricDuplicates, map[string]float64{"accepted": 1, "failed": 0})

		m.makeServer("m2", nil)
		m.makeServer("m2", nil)
		m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusConflict, Count: 1})
		m.mustCreate(machine("m2"))
		m.wantSeries(metricDuplicates, map[string]float64{"accepted": 1, "failed": 1})
		m.mustDelete(m.deleted(machine("m2")))
		m.wantSeries(metricDuplicates, map[string]float64{"accepted": 2, "failed": 1})

		// The best of several servers is in ERROR, too: the others are asked to go once, and counted once.
		for range 3 {
			m.setStatus(m.makeServer("m3", nil), iaasmock.StatusError, "broken")
		}
		m.cloud.ResetCalls()
		wantReason(t, m.createErr(machine("m3")), provider.ReasonServerFailed)
		m.wantCalls("DeleteServer", 3)
		m.wantSeries(metricDuplicates, map[string]float64{"accepted": 4, "failed": 1})
	})
}

func TestSeriesOfAClassLiveForAnHourAfterTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		m.secret.Data["serviceAccountKey"] = withExpiry(t, `"2027-01-02T03:04:05Z"`)
		made := m.mustCreate(machine("m1"))
		m.list()
		expect := func(classes int) {
			t.Helper()
			for _, name := range []string{metricCreation, metricServers, metricExpiry} {
				if got := m.series(name); len(got) != classes {
					t.Errorf("%s: %v, want %d", name, got, classes)
				}
			}
		}
		<-time.After(40 * time.Minute)
		if _, err := m.status(withID(machine("m1"), made.ProviderID)); err != nil {
			t.Fatal(err)
		}
		<-time.After(40 * time.Minute)
		m.secret.Data["serviceAccountKey"] = keys().first
		m.class.Name = "class-b"
		m.list()
		expect(1)
		<-time.After(21 * time.Minute)
		m.list()
		expect(0)
	})
}

// withExpiry returns the rig's key with another validUntil, a JSON value.
func withExpiry(t *testing.T, validUntil string) []byte {
	t.Helper()
	var key map[string]json.RawMessage
	if err := json.Unmarshal(keys().first, &key); err != nil {
		t.Fatal(err)
	}
	key["validUntil"] = json.RawMessage(validUntil)
	content, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheExpiryOfAKeyIsThatOfTheSecretInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		expect := func(want map[string]float64) {
			t.Helper()
			m.list()
			m.wantSeries(metricExpiry, want)
		}
		expect(map[string]float64{})
		for validUntil, unix := range map[string]float64{
			"2027-01-02T03:04:05Z": 1798859045, "2027-06-01T00:00:00Z": 1811808000} {
			m.secret.Data["serviceAccountKey"] = withExpiry(t, strconv.Quote(validUntil))
			expect(map[string]float64{m.class.Name: unix})
		}
		m.secret.Data["serviceAccountKey"] = withExpiry(t, "null")
		expect(map[string]float64{})
	})
}

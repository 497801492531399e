// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	metricOrphans    = "stackit_orphan_servers_deleted_total"
	metricServers    = "stackit_servers"
	metricCreation   = "stackit_machine_creation_duration_seconds"
	metricDeletion   = "stackit_machine_deletion_duration_seconds"
)

// A metric that is made elsewhere than by newMeters' functions would not be exported, and one that no test names may
// never be fed.
func TestEveryMetricIsExportedAndTested(t *testing.T) {
	read := func(pattern string, isTest bool) (text string) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") == isTest {
				text += string(content)
			}
		}
		return text
	}
	code, tests := read("*.go", false), read("*_test.go", true)
	if made := regexp.MustCompile(`prometheus\.New\w+`).FindAllString(code, -1); len(made) != 3 {
		t.Errorf("metrics are made by counter, histogram and gauge of newMeters alone: %v", made)
	}
	names := regexp.MustCompile(`"stackit_\w+"`).FindAllString(code, -1)
	if len(names) < 10 {
		t.Fatalf("only %v", names)
	}
	for _, name := range names {
		if !strings.Contains(tests, name) {
			t.Errorf("no test has %s", name)
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
		m.wantSeries(metricOrphans, map[string]float64{"": 0})
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

func TestServersAreCountedByTheLastList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		kind := func(class, state string) string {
			return class + " " + iaasmock.DefaultMachineType + " " + state + " eu01-m"
		}
		m.makeServer("m1", nil)
		failed := m.makeServer("m2", nil)
		m.setStatus(failed, iaasmock.StatusError, "broken")
		m.makeServer("foreign", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		m.makeServer("other", func(labels map[string]any) { labels[provider.StackitMachineClassLabel] = "class-b" })
		<-time.After(bootDuration)
		m.list()
		m.wantSeries(metricServers, map[string]float64{kind("class-a", "ACTIVE"): 1, kind("class-a", "ERROR"): 1})
		m.class.Name = "class-b"
		m.list()
		m.wantSeries(metricServers, map[string]float64{kind("class-a", "ACTIVE"): 1, kind("class-a", "ERROR"): 1,
			kind("class-b", "ACTIVE"): 1})

		// A class that nobody asks for disappears, and so do its other series.
		m.mustCreate(machine("new"))
		m.wantSeries(metricCreation, map[string]float64{"class-b": 1})
		<-time.After(40 * time.Minute)
		m.class.Name = "class-a"
		m.list()
		<-time.After(40 * time.Minute)
		m.wantSeries(metricServers, map[string]float64{kind("class-a", "ACTIVE"): 1, kind("class-a", "ERROR"): 1})
		m.wantSeries(metricCreation, map[string]float64{})
	})
}

// TestMaintenanceWindowsAreCountedByTheLastList: by a list that the manager asks for anyway.
func TestMaintenanceWindowsAreCountedByTheLastList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const metricWindows, metricNext = "stackit_servers_with_maintenance", "stackit_next_maintenance_timestamp_seconds"
		m := newRig(t)
		tomorrow := time.Now().Add(24 * time.Hour)
		announce := func(id, status string, startsAt time.Time) {
			window := iaasmock.MaintenanceWindow{Status: status, StartsAt: startsAt, EndsAt: startsAt.Add(time.Hour)}
			if err := m.cloud.SetMaintenanceWindow(id, &window); err != nil {
				t.Fatal(err)
			}
		}
		first := m.makeServer("m1", nil)
		announce(first, "PLANNED", tomorrow)
		announce(m.makeServer("m2", nil), "PLANNED", tomorrow.Add(time.Hour))
		announce(m.makeServer("m3", nil), "ONGOING", tomorrow.Add(-25*time.Hour))
		announce(m.makeServer("m4", nil), "POSTPONED", tomorrow.Add(-time.Hour))
		m.makeServer("m5", nil)
		announce(m.makeServer("foreign", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" }), "PLANNED",
			time.Now())
		m.wantSeries(metricWindows, map[string]float64{})
		<-time.After(bootDuration)
		calls := m.cloud.CallCounts()
		m.list()
		m.wantSeries(metricWindows, map[string]float64{"class-a PLANNED": 2, "class-a ONGOING": 1, "class-a other": 1})
		m.wantSeries(metricNext, map[string]float64{"class-a": float64(tomorrow.Unix())})
		if now := m.cloud.CallCounts(); now["ListServers"] != calls["ListServers"]+1 ||
			now["GetServer"] != calls["GetServer"] {
			t.Errorf("calls were made for it: %v, then %v", calls, now)
		}

		// It begins, and the next one is the second server's.
		announce(first, "ONGOING", tomorrow)
		m.list()
		m.wantSeries(metricWindows, map[string]float64{"class-a PLANNED": 1, "class-a ONGOING": 2, "class-a other": 1})
		m.wantSeries(metricNext, map[string]float64{"class-a": float64(tomorrow.Add(time.Hour).Unix())})
	})
}

// TestServersOfUnknownClassesAreCounted lets the manager list the servers of its class every half an hour,
// three times at a time: then one of the lists is of the whole cluster.
func TestServersOfUnknownClassesAreCounted(t *testing.T) {
	const metricUnknown = "stackit_servers_of_unknown_classes"
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		runs := func(count int) {
			t.Helper()
			for range count {
				<-time.After(30 * time.Minute)
				second, third := start(m.listErr), start(m.listErr)
				m.list()
				if err := errors.Join(<-second, <-third); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect := func(want float64, when string) {
			t.Helper()
			if got := m.series(metricUnknown); len(got) != 1 || got[""] != want {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		// Without a delay one call ends before the other begins.
		m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Delay: time.Second})
		expect(0, "before the first call")
		m.makeServer("m1", nil)
		inClass := func(class string) func(map[string]any) {
			return func(labels map[string]any) { labels[provider.StackitMachineClassLabel] = class }
		}
		left := []string{m.makeServer("m2", inClass("class-b")), m.makeServer("m3", inClass("class-c"))}
		m.makeServer("m4", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		runs(2)
		expect(0, "half an hour after the first call")
		runs(2)
		expect(2, "more than an hour after it")
		m.list() // of its class alone
		expect(2, "after a list of one class")
		calls := m.cloud.CallCounts()["ListServers"]
		runs(1)
		if made := m.cloud.CallCounts()["ListServers"] - calls; made > 3 {
			t.Errorf("three ListMachines make %d lists, want 3 at most", made)
		}

		m.class.Name = "class-b"
		m.list()
		m.class.Name = "class-a"
		runs(1)
		expect(1, "after a call named one of two classes")
		runs(3)
		expect(2, "more than an hour after the call")

		lift := m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		if m.listErr() == nil {
			t.Fatal("a list without permission succeeded")
		}
		lift()
		runs(1)
		expect(0, "half an hour after an orphan run that ended early")
		runs(2)
		expect(2, "more than an hour after that run")

		if err := m.cloud.RemoveServer(left[0]); err != nil {
			t.Fatal(err)
		}
		runs(1)
		expect(1, "after one of the servers went")
		<-time.After(61 * time.Minute)
		expect(0, "an hour after the last list")
	})
}

// An answer of the API does not choose how many series there are.
func TestStatesOfServersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		for i := range 40 {
			name := fmt.Sprintf("m%d", i)
			m.setStatus(m.makeServer(name, nil), fmt.Sprintf("STATE%d", i), "")
		}
		m.list()
		series := m.series(metricServers)
		if len(series) != 33 || series["class-a other other other"] != 8 {
			t.Errorf("%d series, want 33, the last one of 8 servers: %v", len(series), series)
		}
	})
}

func TestAClassStaysWhileCallsNameIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRig(t)
		made := m.mustCreate(machine("m1"))
		<-time.After(40 * time.Minute)
		if _, err := m.status(withID(machine("m1"), made.ProviderID)); err != nil {
			t.Fatal(err)
		}
		<-time.After(40 * time.Minute)
		m.wantSeries(metricCreation, map[string]float64{"class-a": 1})
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
			m.wantSeries("stackit_key_expiry_timestamp_seconds", want)
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestParse(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"nothing":              {nil, ""},
		"the floor":            {[]string{"--driver", "instant", "--machines", "10"}, ""},
		"no machines":          {[]string{"--machines", "0"}, "--machines is 0"},
		"all are kept":         {[]string{"--machines", "3", "--keep", "3"}, "--keep is 3"},
		"another driver":       {[]string{"--driver", "aws"}, `--driver is "aws"`},
		"more than all fail":   {[]string{"--faults", "1.5"}, "--faults is 1.5"},
		"negative boot":        {[]string{"--boot", "-1s"}, "negative"},
		"no limit":             {[]string{"--limit", "0s"}, "negative"},
		"an argument too much": {[]string{"now"}, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, err := parse(row.args)
			if row.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				if o.driver == driverInstant {
					g.Expect([]any{o.faults, o.allowedAddresses}).To(HaveEach(BeZero()))
				}
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(row.want)))
		})
	}
}

func TestCloudRefusesTheShareAskedFor(t *testing.T) {
	for name, row := range map[string]struct {
		faults    float64
		low, high int
	}{
		"none": {0, 0, 0},
		"some": {0.2, 150, 250},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := iaasmock.New(iaasmock.WithoutAuthentication())
			options{faults: row.faults}.spoil(cloud)
			refused := 0
			for range 1000 {
				answer := httptest.NewRecorder()
				cloud.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v2/keypairs", nil))
				if answer.Code == http.StatusServiceUnavailable {
					refused++
				}
			}
			NewWithT(t).Expect(refused).To(And(BeNumerically(">=", row.low), BeNumerically("<=", row.high)))
		})
	}
}

// sample is a small run.
func sample(driver string, took float64) *result {
	phase := func(name string) phaseResult {
		return phaseResult{
			Name: name, Took: took, Settled: took + 1, ServersCreated: 11, ServersDeleted: 1,
			OverBoot: spread{10, 1.5, 2.5},
			Calls:    callSummary{Total: 44, PerServer: 4, ByOperation: map[string]float64{"ListServers": 2.5}, Peak: 7},
		}
	}
	return &result{
		Conditions: conditions{Driver: driver, Machines: 10, Keep: 2, Boot: 20, Join: 1, Faults: 0.01},
		Computer:   "2 CPUs of a kind", StartedAt: begin,
		Phases: []phaseResult{phase("up"), phase("roll"), phase("down")},
	}
}

func TestResultSurvivesItsFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "new", "result.json")
	g.Expect(sample("stackit", 30).write(path)).To(Succeed())
	g.Expect(readResult(path)).To(Equal(sample("stackit", 30)))
	g.Expect(os.WriteFile(path, []byte("{"), 0o600)).To(Succeed())
	_, err := readResult(path)
	g.Expect(err).To(MatchError(ContainSubstring(path)))
}

func TestTable(t *testing.T) {
	text := strings.Join(strings.Fields(sample("stackit", 30).table(sample("instant", 15))), " ")
	for _, wanted := range []string{
		"driver stackit: 10 machines, 2 kept, boot 20s, join 1s, delete 0s, 1% of calls answered 503 2 CPUs of a kind",
		"up roll down", "time to all (s) 30.0 30.0 30.0", "times the floor 2.00 2.00 2.00",
		"Machine to server, p50 / p99 (s) - - -", "ACTIVE to Running, p50 / p99 (s) 1.5 / 2.5",
		"API calls a server 4.00", "ListServers 2.50",
	} {
		NewWithT(t).Expect(text).To(ContainSubstring(wanted))
	}
	NewWithT(t).Expect(sample("stackit", 30).table(nil)).NotTo(ContainSubstring("floor"))
}

func TestAFloorOfOtherConditionsSaysNothing(t *testing.T) {
	g := NewWithT(t)
	run := sample("stackit", 30)
	g.Expect(run.checkFloor(sample("instant", 15))).To(Succeed())
	run.Conditions.Boot = 5
	g.Expect(run.checkFloor(sample("instant", 15))).To(MatchError(ContainSubstring("it is of 10 machines, 2 kept, boot 20s")))
}

func TestPhasesEndWhenNothingIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	all := phases(nil, 10, 2, true)
	up, down := all[0], all[2]
	for i, p := range phases(nil, 10, 2, false) {
		g.Expect(p.name).To(Equal([]string{"up", "down"}[i]))
	}
	g.Expect(up.done(counts{10, 9})).To(BeFalse())
	g.Expect(up.done(counts{12, 10})).To(BeTrue())
	g.Expect(up.settled(counts{12, 10}, 10)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 11)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 10)).To(BeTrue())
	g.Expect(down.done(counts{3, 3})).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 3)).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 2)).To(BeTrue())
}

func TestSpread(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, row := range map[string]struct {
		values []float64
		want   spread
	}{
		"nothing":           {nil, spread{}},
		"one":               {[]float64{7}, spread{1, 7, 7}},
		"three, not sorted": {[]float64{3, 1, 2}, spread{3, 2, 3}},
		"a hundred":         {hundred, spread{100, 50, 99}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(spreadOf(row.values)).To(Equal(row.want))
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
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
		"an argument too much": {[]string{"now"}, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, err := parse(row.args)
			if row.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				if o.Driver == driverInstant {
					g.Expect([]any{o.Faults, o.AllowedAddresses}).To(HaveEach(BeZero()))
				}
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(row.want)))
		})
	}
}

// sample is a small run.
func sample(driver string, took float64) *result {
	phase := func(name string) phaseResult {
		return phaseResult{
			Name: name, Took: took, Settled: took + 1, ServersCreated: 11, ServersDeleted: 1,
			OverBoot: spread{10, 1.5, 2.5},
			Usage:    map[localenv.Part]usage{localenv.PartSidecar: {Cores: 0.25, PeakMiB: 80}},
			Calls:    callSummary{Total: 44, PerServer: 4, ByOperation: map[string]float64{"ListServers": 2.5}},
		}
	}
	return &result{
		Conditions: options{
			Driver: driver, Machines: 10, Keep: 2, Faults: 0.01,
			Boot: metav1.Duration{Duration: 20 * time.Second}, Join: metav1.Duration{Duration: time.Second},
		},
		CPUs: 2, StartedAt: begin,
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
		"driver stackit: 10 machines, 2 kept, boot 20s, join 1s, delete 0s, 1% of calls answered 503 2 CPUs",
		"up roll down", "time to all (s) 30.0 30.0 30.0", "times the floor 2.00 2.00 2.00",
		"Machine to server, p50 / p99 (s) - - -", "ACTIVE to Running, p50 / p99 (s) 1.5 / 2.5",
		"API calls a server 4.00", "ListServers 2.50",
		"machine-controller CPU (cores) 0.25 0.25 0.25 most memory so far (MiB) 80 80 80",
	} {
		NewWithT(t).Expect(text).To(ContainSubstring(wanted))
	}
	NewWithT(t).Expect(sample("stackit", 30).table(nil)).NotTo(ContainSubstring("floor"))
}

func TestAFloorOfOtherConditionsSaysNothing(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "floor.json")
	_, err := readFloor(path, options{})
	g.Expect(err).To(MatchError(os.ErrNotExist))
	g.Expect(sample("instant", 15).write(path)).To(Succeed())
	conditions := sample("stackit", 30).Conditions
	g.Expect(readFloor(path, conditions)).To(Equal(sample("instant", 15)))
	conditions.Boot.Duration = 5
	_, err = readFloor(path, conditions)
	g.Expect(err).To(MatchError(ContainSubstring("it was measured with 10 machines, 2 kept, boot 20s")))
}

func TestPhasesEndWhenNothingIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	all := phases(10, 2, true)
	up, down := all[0], all[2]
	for i, p := range phases(10, 2, false) {
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

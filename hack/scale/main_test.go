// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
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
		"a number as surge":    {[]string{"--surge", "3"}, ""},
		"no machines":          {[]string{"--machines", "0"}, "--machines is 0"},
		"another driver":       {[]string{"--driver", "aws"}, `--driver is "aws"`},
		"more than all fail":   {[]string{"--faults", "1.5"}, "--faults is 1.5"},
		"latencies reversed":   {[]string{"--latency-min", "1s"}, "--latency-max"},
		"all are kept":         {[]string{"--machines", "3", "--keep", "3"}, "--keep"},
		"no surge":             {[]string{"--surge", "0%"}, "--surge"},
		"surge is a word":      {[]string{"--surge", "all"}, "--surge"},
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
					g.Expect([]any{o.latencyMax, o.faults, o.allowedAddresses}).To(HaveEach(BeZero()))
				}
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(row.want)))
		})
	}
}

func TestFilesAreNamedForWhatTheyHold(t *testing.T) {
	for want, args := range map[string][]string{
		"stackit-500":          nil,
		"stackit-20-no-faults": {"--machines", "20", "--faults", "0"},
		"instant-20":           {"--machines", "20", "--driver", "instant"},
	} {
		o, err := parse(args)
		NewWithT(t).Expect(o.name(), err).To(Equal(want))
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
			options{faults: row.faults, seed: 1}.spoil(cloud)
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

// sample is a small run; the floor is twice as fast.
func sample(driver string, took seconds) *result {
	phase := func(name string) phaseResult {
		return phaseResult{
			Name: name, Took: took, Settled: took + 1, ServersCreated: 11, ServersDeleted: 1,
			OverBoot: spread{10, 1.5, 2.5, 3}, CPU: map[string]seconds{"machine-controller": 0.25},
			Calls:   callSummary{Total: 44, PerServer: 4, ByOperation: map[string]float64{"ListServers": 2.5}, PeakPerSecond: 7, PerSecond: []int{7, 0, 3}},
			History: []moment{{0, counts{}}, {took, counts{10, 10}}},
		}
	}
	return &result{
		Conditions:   conditions{Driver: driver, Machines: 10, Boot: 20, Join: 1, Keep: 2, LatencyMin: 0.03, LatencyMax: 0.08, Faults: 0.01, Surge: "25%"},
		Computer:     computer{OS: "linux", CPUs: 2, Model: "A <fast> CPU"},
		StartedAt:    begin,
		Phases:       []phaseResult{phase("up"), phase("roll"), phase("down")},
		SidecarReady: 0.25, SidecarIdle: 31, SidecarIdleAnonymous: 9, SidecarPeak: 88,
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

func TestReport(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(report(&out, sample("stackit", 30), sample("instant", 15))).To(Succeed())
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, wanted := range []string{
		"10 machines, driver stackit boot 20s, join 1s, delete 0s, 2 kept, surge 25%, API latency 30 to 80 ms, 1% of calls answered 503 2 CPUs",
		"up roll down", "time to all (s) 30.0 30.0 30.0", "times the floor 2.00 2.00 2.00",
		"Machine to server, p50 / p99 (s) - - -", "ACTIVE to Running, p50 / p99 (s) 1.5 / 2.5",
		"API calls a server 4.00", "ListServers 2.50", "ready after 0.25 s, 31 MiB resident when idle (9 of it anonymous), 88 MiB at most",
	} {
		g.Expect(text).To(ContainSubstring(wanted))
	}
}

func TestFloorIsFound(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	quiet := func(string) {}
	run, o := sample("stackit", 30), options{driver: driverStackit, machines: 10}
	floor, err := o.readFloor(run, folder, quiet)
	g.Expect(floor, err).To(BeNil(), "there is none yet")

	g.Expect(sample("instant", 15).write(filepath.Join(folder, "instant-10.json"))).To(Succeed())
	floor, err = o.readFloor(run, folder, quiet)
	g.Expect(floor, err).To(Equal(sample("instant", 15)))

	run.Conditions.Boot = 5
	floor, err = o.readFloor(run, folder, quiet)
	g.Expect(floor, err).To(BeNil(), "it does not fit")
	o.floor = filepath.Join(folder, "instant-10.json")
	_, err = o.readFloor(run, folder, quiet)
	g.Expect(err).To(MatchError(ContainSubstring("it is of 10 machines, 2 kept, boot 20s")))
}

func TestPlotIsSVG(t *testing.T) {
	for name, floor := range map[string]*result{"alone": nil, "with a floor": sample("instant", 15)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			drawn := plot(sample("stackit", 30), floor)
			elements := map[string]int{}
			for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				g.Expect(err).NotTo(HaveOccurred())
				if start, isStart := token.(xml.StartElement); isStart {
					elements[start.Name.Local]++
				}
			}
			lines := 3
			if floor != nil {
				lines = 6
			}
			g.Expect(elements).To(And(HaveKeyWithValue("svg", 1), HaveKeyWithValue("path", lines),
				HaveKeyWithValue("rect", 1+3*2)), "a background, and two bars in each phase")
			g.Expect(drawn).To(ContainSubstring("Scaling up: Running machines"))
		})
	}
}

// TestPlotIsToScale: in the first column 30 of 40 s are 225 of 300, and 10 of 15
// machines are drawn at two thirds of the height.
func TestPlotIsToScale(t *testing.T) {
	g := NewWithT(t)
	p := newPanel(60, 110, 200, 31, 10)
	g.Expect(p.xs).To(Equal([]float64{0, 10, 20, 30, 40}))
	g.Expect(p.x(30)).To(BeNumerically("~", 60+225))
	g.Expect(p.ys).To(Equal([]float64{0, 5, 10}))
	g.Expect([]float64{p.y(0), p.y(10)}).To(Equal([]float64{310, 110}))
}

func TestTicks(t *testing.T) {
	for name, row := range map[string]struct {
		most float64
		want []float64
	}{
		"nothing":  {0, []float64{0, 1}},
		"a few":    {3, []float64{0, 1, 2, 3}},
		"hundreds": {503, []float64{0, 200, 400, 600}},
		"dozens":   {36, []float64{0, 10, 20, 30, 40}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ticks(row.most, 4)).To(Equal(row.want))
		})
	}
}

func TestPhasesEndWhenNothingIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	all := phases(nil, 10, 0, true)
	up, down := all[0], all[2]
	for i, p := range phases(nil, 10, 0, false) {
		g.Expect(p.name).To(Equal([]string{"up", "down"}[i]))
	}
	g.Expect(up.done(counts{Machines: 10, Running: 9})).To(BeFalse())
	g.Expect(up.done(counts{Machines: 12, Running: 10})).To(BeTrue())
	g.Expect(up.settled(counts{Machines: 12, Running: 10}, 10)).To(BeFalse())
	g.Expect(up.settled(counts{Machines: 10, Running: 10}, 11)).To(BeFalse())
	g.Expect(up.settled(counts{Machines: 10, Running: 10}, 10)).To(BeTrue())
	g.Expect(down.done(counts{Machines: 1})).To(BeFalse())
	g.Expect(down.settled(counts{}, 1)).To(BeFalse())
	g.Expect(down.settled(counts{}, 0)).To(BeTrue())
}

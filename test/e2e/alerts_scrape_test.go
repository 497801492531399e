// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// scrapeInterval is real time; for promtool the scrapes are promInterval apart. A second
// of the run so counts as 30 s, and windows and `for` of 15 minutes pass in half a minute.
// A server that does not boot for half a minute therefore counts as slow: the thresholds are
// tested in test/monitoring, and here that real series lead to the right alert. The sidecar
// and the manager keep their own time, and retry after 5 s or 3 minutes. So a window has
// fewer failures than an operator would see.
const (
	scrapeInterval = time.Second
	promInterval   = 30 * time.Second
	// quietScrapes come before a scenario: 90 minutes, the longest window of the alerts, in
	// which the first scrape's values stayed as they are.
	quietScrapes = 180
)

// asSidecar and asManager are what a scrape by the PodMonitor adds to each series of the two
// containers.
var (
	asSidecar = model.LabelSet{
		"namespace": "default", "pod": "machine-controller-manager-0", "container": "machine-controller",
		"job": "default/machine-controller-manager", "endpoint": "mc-metrics", "instance": "10.0.0.1:10259",
	}
	asManager = model.LabelSet{
		"namespace": "default", "pod": "machine-controller-manager-0", "container": "machine-controller-manager",
		"job": "default/machine-controller-manager", "endpoint": "mcm-metrics", "instance": "10.0.0.1:10258",
	}
)

// scrapes are a scenario's scrapes of a container, one each scrapeInterval.
type scrapes struct {
	// url is "" while there is no Pod to scrape.
	url    func() string
	target model.LabelSet
	// began is when promtool's time begins, which counts from 1970.
	began time.Time
	// most is how many of them count.
	most int

	mu sync.Mutex
	// series holds each one's values, as promtool writes them, by the number of the scrape.
	series map[string]map[int]string
	count  int
}

// startScrapes scrapes the sidecar until the spec ends, or the container that target says.
func startScrapes(url func() string, most int, target ...model.LabelSet) *scrapes {
	GinkgoHelper()
	s := &scrapes{url: url, target: append(target, asSidecar)[0], most: most,
		began: time.Now().Add(-quietScrapes * promInterval), series: map[string]map[int]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	// A process' first scrape may show phases without mcm_machine_info, which MCM sets
	// during scrapes. It must not stand for the quiet time.
	_, err := readMetrics(ctx, url())
	Expect(err).NotTo(HaveOccurred())
	Expect(s.scrape(ctx)).To(Succeed())
	go func() {
		defer close(done)
		ticker := time.NewTicker(scrapeInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = s.scrape(ctx) // up tells
			}
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	return s
}

// scrape reads the metrics once. One that fails leaves nothing but up.
func (s *scrapes) scrape(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeInterval)
	defer cancel()
	url := s.url()
	samples, err := readMetrics(ctx, url)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.count++ }()
	if url == "" {
		return nil
	}
	up := "1"
	if err != nil {
		up = "0"
	}
	s.note(model.Metric{model.MetricNameLabel: "up"}, up)
	for _, sample := range samples {
		value := float64(sample.Value)
		if strings.HasSuffix(string(sample.Metric[model.MetricNameLabel]), "_timestamp_seconds") {
			value -= float64(s.began.Unix())
		}
		s.note(sample.Metric, strconv.FormatFloat(value, 'f', -1, 64))
	}
	return err
}

// await returns after so many more scrapes.
func (s *scrapes) await(ctx context.Context, more int) {
	GinkgoHelper()
	Eventually(ctx, s.counted).WithTimeout(alertTimeout).WithPolling(poll).Should(BeNumerically(">=", s.counted()+more))
}

func (s *scrapes) counted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// note adds a value to its series; s.mu is held. A label that the target has, too, is
// renamed, as Prometheus does.
func (s *scrapes) note(metric model.Metric, value string) {
	labelled := metric.Clone()
	for name, own := range s.target {
		if scraped, clashes := labelled[name]; clashes {
			labelled["exported_"+name] = scraped
		}
		labelled[name] = own
	}
	key := labelled.String()
	if s.series[key] == nil {
		s.series[key] = map[int]string{}
	}
	s.series[key][s.count] = value
}

// names are the metrics that were scraped.
func (s *scrapes) names() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for key := range s.series {
		names[metricOf(key)] = true
	}
	return names
}

// metricOf returns the metric of a series such as `up{job="a"}`.
func metricOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return monitoring.Family(name)
}

// expectFired returns an error unless exactly these alerts have fired since the scrapes
// began, as promtool evaluates the rules.
func (s *scrapes) expectFired(ctx context.Context, tool *monitoring.Promtool, want ...string) error {
	alerts, err := monitoring.Alerts()
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for _, alert := range alerts {
		for _, name := range monitoring.MetricNames(alert.Expr) {
			read[name] = true
		}
	}
	series, length := s.forPromtool(read)
	samples := []any{}
	for _, alert := range want {
		samples = append(samples, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", alert), "value": 1})
	}
	content, err := yaml.Marshal(map[string]any{
		"rule_files":          []string{monitoring.RuleFile},
		"evaluation_interval": promInterval.String(),
		"tests": []any{map[string]any{
			"interval":     promInterval.String(),
			"input_series": series,
			"promql_expr_test": []any{map[string]any{
				"expr":        `count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[6h]))`,
				"eval_time":   length.String(),
				"exp_samples": samples,
			}},
		}},
	})
	if err != nil {
		return err
	}
	if err := tool.Write("scenario.yaml", content); err != nil {
		return err
	}
	_, err = tool.Run(ctx, "test", "rules", "scenario.yaml")
	return err
}

// forPromtool returns the series of these metrics, in promtool's notation, and the time of
// the last scrape.
func (s *scrapes) forPromtool(metrics map[string]bool) (series []map[string]string, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := min(s.count, s.most)
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		if metrics[metricOf(key)] {
			series = append(series, map[string]string{"series": key, "values": notation(s.series[key], count)})
		}
	}
	return series, time.Duration(quietScrapes+count-1) * promInterval
}

// notation writes a series' values. What the first scrape showed stands for the quiet time
// before as well; a series that a scrape does not show any more ends with a stale marker.
func notation(values map[int]string, count int) string {
	first, shown := values[0]
	if !shown {
		first = "_"
	}
	// Prometheus' "1x3" is 1 1 1 1, its "_x3" is _ _ _.
	times := quietScrapes
	if shown {
		times--
	}
	text := fmt.Sprintf("%sx%d", first, times)
	for i := range count {
		value, shows := values[i]
		switch {
		case shows:
			text += " " + value
		case shown:
			text += " stale"
		default:
			text += " _"
		}
		shown = shows
	}
	return text
}

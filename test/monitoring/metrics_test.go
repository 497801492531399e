// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

func panels(t *testing.T) []monitoring.Panel {
	t.Helper()
	all, err := monitoring.Panels()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d panels: %v", len(all), err)
	}
	return all
}

// TestTheDashboardsQueriesShowSomething evaluates each query on testdata/dashboard/series.yaml,
// what a namespace in trouble has. A query that selects a label that is not there, or
// that matches series of different labels, shows nothing.
func TestTheDashboardsQueriesShowSomething(t *testing.T) {
	series, err := os.ReadFile(filepath.Join("testdata", "dashboard", "series.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var input []map[string]string
	if err := yaml.UnmarshalStrict(series, &input); err != nil {
		t.Fatal(err)
	}
	var queries []string
	var checks []map[string]any
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			query := monitoring.Query(target.Expr)
			queries = append(queries, panel.Title+": "+query)
			checks = append(checks, map[string]any{"eval_time": "90m", "expr": "count(abs(" + query + ") > 0) > bool 0",
				"exp_samples": []any{map[string]any{"labels": "{}", "value": 1}}})
		}
	}
	if len(queries) < 30 {
		t.Errorf("only %d queries were found", len(queries))
	}
	content, err := yaml.Marshal(map[string]any{"rule_files": []string{monitoring.RuleFile}, "tests": []any{
		map[string]any{"interval": "30s", "input_series": input, "promql_expr_test": checks}}})
	if err != nil {
		t.Fatal(err)
	}
	tool := newPromtool(t)
	if err := tool.Write("dashboard.yaml", content); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Run(t.Context(), "test", "rules", "dashboard.yaml"); err != nil {
		t.Error(err)
	}
}

// TestPanelsSayWhatTheyShow: whose numbers, in which unit, and which line is which.
func TestPanelsSayWhatTheyShow(t *testing.T) {
	for _, panel := range panels(t) {
		if panel.Type == "row" {
			continue
		}
		if panel.Datasource.Type != "prometheus" || panel.Datasource.UID != "$datasource" {
			t.Errorf("%s: its data source is %+v, want the dashboard's variable", panel.Title, panel.Datasource)
		}
		if panel.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s: it has no unit", panel.Title)
		}
		if panel.Type == "timeseries" && !panel.Options.Legend.ShowLegend {
			t.Errorf("%s: it shows no legend", panel.Title)
		}
		for _, target := range panel.Targets {
			if target.LegendFormat == "" && panel.Type != "table" {
				t.Errorf("%s: a query has no legend: %s", panel.Title, target.Expr)
			}
		}
	}
}

func TestPanelsAreOneTidyPage(t *testing.T) {
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, panel := range panels(t) {
		if ids[panel.ID] {
			t.Errorf("%s: its ID %d is taken", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && (panel.Description == "" || len(panel.Targets) == 0) {
			t.Errorf("%s: it has no description or no query", panel.Title)
		}
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s: column %d, line %d is not free: %s", panel.Title, x, y, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

func TestEveryMetricInUseIsDocumented(t *testing.T) {
	documented, err := monitoring.Documented()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(user, query string) {
		t.Helper()
		names := monitoring.MetricNames(monitoring.Query(query))
		if len(names) == 0 {
			t.Errorf("%s: no metric was found in %s", user, query)
		}
		for _, name := range names {
			if !documented[name] {
				t.Errorf("%s uses %s, which kubernetes/monitoring/README.md does not explain", user, name)
			}
		}
	}
	for _, alert := range alerts(t) {
		expect(alert.Alert, alert.Expr)
	}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			expect(panel.Title, target.Expr)
		}
	}
}

func TestMetricNames(t *testing.T) {
	for query, want := range map[string][]string{
		`up`: {"up"},
		`sum by (namespace, code) (rate(a_total{code=~"5..|b_total"}[5m])) / 1e3 > 0.1`:                  {"a_total"},
		`histogram_quantile(0.95, sum by (le) (rate(c_seconds_bucket[5m])))`:                             {"c_seconds"},
		`d unless d offset 15m and on (job) up offset 15m == 1 or increase(d[15m])`:                      {"d", "up"},
		`e > -4 unless on (name) f{id!=""} and on (name) group_left (x) e offset 12m`:                    {"e", "f"},
		`max by (namespace) (changes(g{container=~"a(-b)?"}[1h]) > 2 or h{container="i"} == bool 0)`:     {"g", "h"},
		`sum(j_sum{namespace=~"k"}) / sum(j_count{namespace=~"k"}) and absent(ALERTS{alertname=~"S.+"})`: {"ALERTS", "j"},
	} {
		if got := monitoring.MetricNames(query); !slices.Equal(got, want) {
			t.Errorf("%s reads %q, want %q", query, got, want)
		}
	}
}

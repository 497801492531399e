// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// build renders a folder of kubernetes/.
func build(t *testing.T, folder string) resmap.ResMap {
	t.Helper()
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(root, "kubernetes", folder))
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

// decode finds the one object of the kind and decodes it; an unknown field fails the test.
func decode[Object any](t *testing.T, resources resmap.ResMap, kind string) *Object {
	t.Helper()
	object := new(Object)
	found := 0
	for _, resource := range resources.Resources() {
		if resource.GetKind() != kind {
			continue
		}
		found++
		content, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if found != 1 {
		t.Fatalf("%d objects of kind %s", found, kind)
	}
	return object
}

func TestTheManifestsAreWhatTheOperatorReads(t *testing.T) {
	resources := build(t, "monitoring")
	rule := decode[monitoringv1.PrometheusRule](t, resources, "PrometheusRule")
	if rule.APIVersion != monitoringv1.SchemeGroupVersion.String() || len(rule.Spec.Groups) == 0 {
		t.Errorf("%s with %d groups", rule.APIVersion, len(rule.Spec.Groups))
	}
	monitor := decode[monitoringv1.PodMonitor](t, resources, "PodMonitor")
	deployment := decode[appsv1.Deployment](t, build(t, "control"), "Deployment")
	if monitor.Namespace != deployment.Namespace || rule.Namespace != deployment.Namespace {
		t.Errorf("PodMonitor in %s, PrometheusRule in %s, pod in %s", monitor.Namespace, rule.Namespace, deployment.Namespace)
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s does not select the pod, which has %v", selector, deployment.Spec.Template.Labels)
	}
	var scraped, served []string
	for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
		scraped = append(scraped, *endpoint.Port)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			served = append(served, port.Name)
		}
	}
	slices.Sort(scraped)
	slices.Sort(served)
	if !slices.Equal(scraped, served) {
		t.Errorf("the PodMonitor scrapes %q, the pod has %q", scraped, served)
	}
}

func TestTheDashboardComesAsAConfigMap(t *testing.T) {
	dashboard := decode[corev1.ConfigMap](t, build(t, "monitoring"), "ConfigMap")
	if len(dashboard.Data) != 1 || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("%d files, labels %v", len(dashboard.Data), dashboard.Labels)
	}
	for name, content := range dashboard.Data {
		if !json.Valid([]byte(content)) {
			t.Errorf("%s is not JSON", name)
		}
	}
}

// TestGardenersServiceMonitor is about the one that the README shows: it keeps what our
// alerts read and Gardener drops.
func TestGardenersServiceMonitor(t *testing.T) {
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "kubernetes", "monitoring", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the README has no YAML")
	}
	var monitor monitoringv1.ServiceMonitor
	if err := yaml.UnmarshalStrict(block[1], &monitor); err != nil {
		t.Fatal(err)
	}
	keep := regexp.MustCompile(monitor.Spec.Endpoints[0].MetricRelabelConfigs[0].Regex)
	gardeners := []string{"mcm_machine_current_status_phase", "mcm_machine_info", "mcm_machine_controller_frozen", "up",
		"ALERTS"}
	for _, alert := range alerts(t) {
		for _, name := range monitoring.MetricNames(alert.Expr) {
			if keep.MatchString(name) == slices.Contains(gardeners, name) {
				t.Errorf("%s reads %s: kept by one of the two monitors, want exactly one", alert.Alert, name)
			}
		}
	}
}

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

// TestTheAlertTableHasAlertsOfNoNamespace whatever namespace is chosen, and none of another one.
func TestTheAlertTableHasAlertsOfNoNamespace(t *testing.T) {
	var input, want []map[string]any
	for alert, labels := range map[string]string{
		"StackitAPIFailing": `, namespace="shoot--a--b"`, "StackitCloudOutage": "",
		"StackitKeyExpires": `, namespace="another"`,
	} {
		input = append(input, map[string]any{"values": "1x10",
			"series": `ALERTS{alertname="` + alert + `", alertstate="firing"` + labels + "}"})
		if alert != "StackitKeyExpires" {
			want = append(want, map[string]any{"labels": `{alertname="` + alert + `"}`, "value": 1})
		}
	}
	all := panels(t)
	table := slices.IndexFunc(all, func(panel monitoring.Panel) bool { return panel.Title == "Alerts that fire" })
	content, err := yaml.Marshal(map[string]any{"tests": []any{map[string]any{"interval": "30s", "input_series": input,
		"promql_expr_test": []any{map[string]any{"eval_time": "1m", "exp_samples": want,
			"expr": "count by (alertname) (" + monitoring.Query(all[table].Targets[0].Expr) + ")"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	tool := newPromtool(t)
	if err := tool.Write("table.yaml", content); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Run(t.Context(), "test", "rules", "table.yaml"); err != nil {
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

// A metric that no alert, panel or page reads is one that nobody reads.
func TestEveryMetricOfTheDriverIsInUse(t *testing.T) {
	documented, err := monitoring.Documented()
	if err != nil {
		t.Fatal(err)
	}
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "kubernetes", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	used := ""
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		used += string(text)
	}
	for _, alert := range alerts(t) {
		used += alert.Expr + "\n"
	}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			used += target.Expr + "\n"
		}
	}
	for name := range documented {
		if strings.HasPrefix(name, "stackit_") && !regexp.MustCompile(`\b`+name+`(_bucket|_sum|_count)?\b`).
			MatchString(used) {
			t.Errorf("%s is in no alert, no panel and no page of kubernetes/", name)
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the files of kubernetes/monitoring. Its tests let promtool, Prometheus'
// own tool, evaluate the alerts and the dashboard's queries on series made by hand.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// Alert is an alerting rule of the PrometheusRule in kubernetes/monitoring/rules.yaml.
type Alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// read returns a file of kubernetes/monitoring.
func read(name string) ([]byte, error) {
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, "kubernetes", "monitoring", name))
}

// Rules returns the alerts, and the rule groups as Prometheus reads them: the spec of the PrometheusRule.
func Rules() (alerts []Alert, groups []byte, err error) {
	content, err := read("rules.yaml")
	if err != nil {
		return nil, nil, err
	}
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	var spec struct {
		Groups []struct{ Rules []Alert }
	}
	if err := yaml.Unmarshal(content, &rule); err != nil {
		return nil, nil, fmt.Errorf("rules.yaml: %w", err)
	}
	if groups, err = yaml.Marshal(rule.Spec); err != nil {
		return nil, nil, err
	}
	if err := yaml.Unmarshal(groups, &spec); err != nil {
		return nil, nil, fmt.Errorf("rules.yaml: %w", err)
	}
	for _, group := range spec.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return alerts, groups, nil
}

// grafana replaces Grafana's variables with sample values.
var grafana = strings.NewReplacer("$__rate_interval", "5m", "$namespace", "shoot--a--b")

// Panels returns the queries of the Grafana dashboard in kubernetes/monitoring/dashboard.json, by the
// panel's title and the query's letter.
func Panels() (map[string]string, error) {
	content, err := read("dashboard.json")
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return nil, fmt.Errorf("dashboard.json: %w", err)
	}
	queries := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title+" "+target.RefID] = grafana.Replace(target.Expr)
		}
	}
	return queries, nil
}

// Queries returns the queries of all alerts and panels.
func Queries() (map[string]string, error) {
	queries, err := Panels()
	if err != nil {
		return nil, err
	}
	alerts, _, err := Rules()
	for _, alert := range alerts {
		queries[alert.Alert] = alert.Expr
	}
	return queries, err
}

var metricName = regexp.MustCompile(`\b(?:(?:stackit|mcm|process|leader)_[a-z_]+|up|ALERTS)\b`)

// MetricNames returns the names of the metrics that a query reads, sorted and each once.
func MetricNames(query string) []string {
	names := metricName.FindAllString(query, -1)
	for i, name := range names {
		names[i] = Family(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Family returns the name of the metric to which a series belongs: the series' name without the
// suffixes of histograms.
func Family(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

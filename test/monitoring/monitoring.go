// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the files of kubernetes/monitoring, and lets promtool, Prometheus'
// own tool, check and evaluate them. Its tests need no cluster: each alert must fire on some
// series made by hand and not on others, the dashboard's queries must parse, and the manifests
// decode as in prometheus-operator. The end-to-end tests use the package to evaluate the alerts
// on series of a real sidecar.
package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Rules returns the rule groups as Prometheus reads them: the spec of the PrometheusRule.
func Rules() ([]byte, error) {
	content, err := read("rules.yaml")
	if err != nil {
		return nil, err
	}
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &rule); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	return yaml.Marshal(rule.Spec)
}

// Alerts returns the alerts of the PrometheusRule, in the order of rules.yaml.
func Alerts() ([]Alert, error) {
	content, err := Rules()
	if err != nil {
		return nil, err
	}
	var spec struct {
		Groups []struct{ Rules []Alert }
	}
	if err := yaml.Unmarshal(content, &spec); err != nil {
		return nil, err
	}
	var all []Alert
	for _, group := range spec.Groups {
		all = append(all, group.Rules...)
	}
	return all, nil
}

// row is a metric in a table of the README: its name is the first cell.
var row = regexp.MustCompile("(?m)^\\| `([A-Za-z0-9_]+)` \\|")

// Documented returns the names of the metrics that the tables in kubernetes/monitoring/README.md explain.
func Documented() (map[string]bool, error) {
	page, err := read("README.md")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, match := range row.FindAllSubmatch(page, -1) {
		names[string(match[1])] = true
	}
	return names, nil
}

// Panel is a panel of the Grafana dashboard in kubernetes/monitoring/dashboard.json.
type Panel struct {
	ID          int
	Title, Type string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ Type, UID string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Options     struct{ Legend struct{ ShowLegend bool } }
	Targets     []struct{ Expr, LegendFormat string }
}

// Panels returns the panels of the dashboard. Text after the dashboard's JSON object is an error.
func Panels() ([]Panel, error) {
	content, err := read("dashboard.json")
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&dashboard); err != nil {
		return nil, fmt.Errorf("dashboard.json: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("dashboard.json has text after its JSON object: must be one object and nothing else")
	}
	return dashboard.Panels, nil
}

var (
	// noNames are the parts of a query that may hold words, but no names of metrics, in the
	// order in which they are taken out.
	noNames = []*regexp.Regexp{
		regexp.MustCompile(`"[^"]*"`),
		regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`),
		regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`),
		regexp.MustCompile(`\boffset\s+\S+`),
	}
	word      = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(?)`)
	operators = []string{"and", "or", "unless", "bool", "by", "without", "on", "ignoring", "group_left", "group_right"}
)

// MetricNames returns the names of the metrics that a valid query of Prometheus reads, sorted and
// each once. A histogram's series _bucket, _sum and _count have the name of the histogram.
func MetricNames(query string) []string {
	for _, part := range noNames {
		query = part.ReplaceAllString(query, "")
	}
	var names []string
	for _, match := range word.FindAllStringSubmatch(query, -1) {
		if isFunction := match[2] != ""; isFunction || slices.Contains(operators, match[1]) {
			continue
		}
		names = append(names, Family(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Family returns the name of the metric to which a series belongs: the series' name without the
// suffixes _bucket, _sum and _count of histograms.
func Family(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

// grafana is what Grafana puts in the place of its variables.
var grafana = strings.NewReplacer(
	"$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h", "$namespace", "shoot--a--b")

// Query returns a query of the dashboard with sample values in the place of Grafana's variables.
func Query(expr string) string { return grafana.Replace(expr) }

// RuleFile is the name of the file with the alerts in a Promtool's folder. Tests for promtool name
// it in their rule_files.
const RuleFile = "rules.yaml"

// Promtool runs promtool, Prometheus' tool for rules, in a folder that holds the alerts as RuleFile.
type Promtool struct{ path, folder string }

// NewPromtool writes the alerts to RuleFile in the folder, which must exist. It returns an error if
// promtool is missing, which 'make bin/promtool' builds.
func NewPromtool(folder string) (*Promtool, error) {
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, "bin", "promtool")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("promtool is missing, run 'make bin/promtool': %w", err)
	}
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	return &Promtool{path: path, folder: folder}, os.WriteFile(filepath.Join(folder, RuleFile), rules, 0o600)
}

// Write writes a file into the folder in which promtool runs.
func (p *Promtool) Write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(p.folder, name), content, 0o600)
}

// Run runs promtool in the folder and returns what it prints, which is also in the error.
func (p *Promtool) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = p.folder
	output, err := cmd.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("promtool %q: %w:\n%s", args, err, output)
	}
	return string(output), nil
}

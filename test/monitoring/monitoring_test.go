// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// promtool runs promtool in a folder with rules.yaml and the file.
func promtool(t *testing.T, name string, content []byte, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs promtool, which takes minutes to build: make test-monitoring")
	}
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	_, rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": rules, name: content} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "promtool"), args...)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v, after 'make bin/promtool'?\n%s", err, output)
	}
}

// page returns a file of kubernetes/monitoring.
func page(t *testing.T, name string) string {
	t.Helper()
	content, err := read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEachAlertFiresAndDoesNot runs testdata/<alert>.yaml: unit tests of promtool that look at all alerts
// that fire. Each has a test in which the alert fires, and one in which none does.
func TestEachAlertFiresAndDoesNot(t *testing.T) {
	alerts, rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "rules.yaml", rules, "check", "rules", "--lint-fatal", "rules.yaml")
	for _, alert := range alerts {
		t.Run(alert.Alert, func(t *testing.T) {
			name := alert.Alert + ".yaml"
			content, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			var file struct {
				Tests []struct {
					Checks []struct {
						Samples []struct{ Labels string } `json:"exp_samples"`
					} `json:"promql_expr_test"`
				}
			}
			if err := yaml.Unmarshal(content, &file); err != nil {
				t.Fatal(err)
			}
			firing := 0
			for _, test := range file.Tests {
				for _, check := range test.Checks {
					if len(check.Samples) > 0 && strings.Contains(check.Samples[0].Labels, `"`+alert.Alert+`"`) {
						firing++
						break
					}
				}
			}
			if firing == 0 || firing == len(file.Tests) {
				t.Errorf("the alert fires in %d of %d tests, want some, and not all", firing, len(file.Tests))
			}
			promtool(t, name, content, "test", "rules", name)
		})
	}
}

// TestEachAlertHasASection of at most 120 words in the runbooks, and a row in the README.
func TestEachAlertHasASection(t *testing.T) {
	alerts, _, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	readme := page(t, "README.md")
	for _, alert := range alerts {
		anchor := "runbooks.md#" + strings.ToLower(alert.Alert)
		_, section, found := strings.Cut(kubernetes.Runbooks, "\n## "+alert.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if words := len(strings.Fields(section)); !found || words > 120 {
			t.Errorf("%s has %d words in the runbooks, want 1 to 120", alert.Alert, words)
		}
		if !strings.Contains(readme, "| ["+alert.Alert+"](../"+anchor+") | "+alert.Labels["severity"]+" |") ||
			!strings.HasSuffix(alert.Annotations["runbook_url"], "/blob/main/kubernetes/"+anchor) {
			t.Errorf("%s has no row in README.md, or its runbook_url is %s", alert.Alert, alert.Annotations["runbook_url"])
		}
	}
}

// Of the driver's metrics, all are in use: one that no alert and no panel reads is one that nobody reads.
func TestEveryMetricInUseIsDocumented(t *testing.T) {
	queries, err := Queries()
	if err != nil {
		t.Fatal(err)
	}
	used, documented := map[string]bool{}, map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(page(t, "README.md"), -1) {
		documented[match[1]] = true
	}
	for user, query := range queries {
		for _, name := range MetricNames(query) {
			used[name] = true
			if !documented[name] {
				t.Errorf("%s uses %s, which README.md does not explain", user, name)
			}
		}
	}
	for name := range documented {
		if strings.HasPrefix(name, "stackit_") && !used[name] {
			t.Errorf("%s is in no alert and no panel", name)
		}
	}
}

// TestTheDashboardsQueriesShowSomething of what a namespace in trouble has. A query that selects a label
// that is not there, or that matches series of different labels, shows nothing.
func TestTheDashboardsQueriesShowSomething(t *testing.T) {
	series, err := os.ReadFile(filepath.Join("testdata", "dashboard", "series.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var input []map[string]string
	if err := yaml.UnmarshalStrict(series, &input); err != nil {
		t.Fatal(err)
	}
	queries, err := Panels()
	if err != nil || len(queries) < 20 {
		t.Fatalf("%d queries, %v", len(queries), err)
	}
	var checks []any
	for _, query := range queries {
		checks = append(checks, map[string]any{"eval_time": "90m", "expr": "count(abs(" + query + ") > 0) > bool 0",
			"exp_samples": []any{map[string]any{"labels": "{}", "value": 1}}})
	}
	content, err := yaml.Marshal(map[string]any{"tests": []any{
		map[string]any{"interval": "30s", "input_series": input, "promql_expr_test": checks}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "dashboard.yaml", content, "test", "rules", "dashboard.yaml")
}

// TestGardenersServiceMonitor is about the one that the README shows: it keeps what our alerts read and
// Gardener drops.
func TestGardenersServiceMonitor(t *testing.T) {
	expression := regexp.MustCompile(`(?m)^ +regex: (.+)$`).FindStringSubmatch(page(t, "README.md"))
	if expression == nil {
		t.Fatal("the README has no regex")
	}
	keep := regexp.MustCompile(expression[1])
	alerts, _, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		for _, name := range MetricNames(alert.Expr) {
			if isGardeners := strings.HasPrefix(name, "mcm_machine_") || name == "up"; keep.MatchString(name) == isGardeners {
				t.Errorf("%s reads %s: kept by one of the two monitors, want exactly one", alert.Alert, name)
			}
		}
	}
}

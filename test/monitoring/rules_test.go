// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

func newPromtool(t *testing.T) *monitoring.Promtool {
	t.Helper()
	if testing.Short() {
		t.Skip("needs promtool, which takes minutes to build: make test-monitoring")
	}
	tool, err := monitoring.NewPromtool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func alerts(t *testing.T) []monitoring.Alert {
	t.Helper()
	all, err := monitoring.Alerts()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d alerts: %v", len(all), err)
	}
	return all
}

func TestPrometheusTakesTheRules(t *testing.T) {
	if output, err := newPromtool(t).Run(t.Context(), "check", "rules", "--lint-fatal", monitoring.RuleFile); err != nil {
		t.Fatal(err, output)
	}
}

// TestEachAlertFiresAndDoesNot runs testdata/<alert>.yaml: unit tests of promtool that
// look at all alerts that fire, so that none other may.
func TestEachAlertFiresAndDoesNot(t *testing.T) {
	tool := newPromtool(t)
	for _, alert := range alerts(t) {
		t.Run(alert.Alert, func(t *testing.T) {
			name := alert.Alert + ".yaml"
			content, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			expectBoth(t, alert.Alert, content)
			if err := tool.Write(name, content); err != nil {
				t.Fatal(err)
			}
			if _, err := tool.Run(t.Context(), "test", "rules", name); err != nil {
				t.Error(err)
			}
		})
	}
}

// expectBoth checks that the file has a test in which the alert fires and one in which none
// ever does, and that all of them ask for everything that fires.
func expectBoth(t *testing.T, alert string, content []byte) {
	t.Helper()
	var file struct {
		Tests []struct {
			Name   string
			Checks []struct {
				Expr    string
				Samples []struct{ Labels string } `json:"exp_samples"`
			} `json:"promql_expr_test"`
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	firing, silent := 0, 0
	for _, test := range file.Tests {
		fires := false
		for _, check := range test.Checks {
			if check.Expr != `count by (alertname) (ALERTS{alertstate="firing"})` {
				t.Errorf("%s: it asks for %s", test.Name, check.Expr)
			}
			for _, sample := range check.Samples {
				fires = fires || strings.Contains(sample.Labels, `"`+alert+`"`)
			}
		}
		switch {
		case len(test.Checks) == 0:
			t.Errorf("%s: it checks nothing", test.Name)
		case fires:
			firing++
		default:
			silent++
		}
	}
	if firing == 0 || silent == 0 {
		t.Errorf("%d tests with and %d without the alert, want both", firing, silent)
	}
}

func TestEveryTestFileIsOfAnAlert(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if all := alerts(t); len(files) != len(all) {
		t.Errorf("%d files in testdata, %d alerts", len(files), len(all))
	}
}

// TestAlertsSayWhatAPersonNeeds: a summary, a description that uses labels which the
// expression keeps, and a section of the runbooks.
func TestAlertsSayWhatAPersonNeeds(t *testing.T) {
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	runbooks, err := os.ReadFile(filepath.Join(root, "kubernetes", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "kubernetes", "monitoring", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://github.com/stackitcloud/machine-controller-manager-provider-stackit" +
		"/blob/main/kubernetes/runbooks.md#"
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, alert := range alerts(t) {
		anchor, found := strings.CutPrefix(alert.Annotations["runbook_url"], url)
		if !found || anchor != strings.ToLower(alert.Alert) {
			t.Errorf("%s: its runbook is %s", alert.Alert, alert.Annotations["runbook_url"])
		}
		if !strings.Contains(string(runbooks), "\n## "+alert.Alert+"\n") {
			t.Errorf("%s: it has no heading in the runbooks", alert.Alert)
		}
		if !strings.Contains(string(page), "| ["+alert.Alert+"](../runbooks.md#"+anchor+") |") {
			t.Errorf("%s: it is not in the README's table", alert.Alert)
		}
		for _, annotation := range []string{"summary", "description"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s: it has no %s", alert.Alert, annotation)
			}
		}
		for _, match := range label.FindAllStringSubmatch(alert.Annotations["description"], -1) {
			if match[1] != "namespace" {
				t.Errorf("%s: its description uses the label %s; alerts have namespace alone", alert.Alert, match[1])
			}
		}
		if !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
			t.Errorf("%s: its severity is %q", alert.Alert, alert.Labels["severity"])
		}
		if !strings.HasPrefix(alert.Alert, "Stackit") || alert.For == "" {
			t.Errorf("%s: want a name with Stackit, and a for", alert.Alert)
		}
	}
}

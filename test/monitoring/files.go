// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// Alert is a rule of the PrometheusRule.
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

// Alerts returns the alerts in their order.
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

// Documented returns the names of the metrics that the README's tables explain.
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

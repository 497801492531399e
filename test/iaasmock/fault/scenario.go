// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// ParseScenario reads a scenario: a list of faults in JSON or YAML, each as in an HTTP
// request, usually with "after", the time from Inject until it begins. Errors give the
// number of the invalid fault.
func ParseScenario(text []byte) ([]Fault, error) {
	var items []json.RawMessage
	if err := yaml.UnmarshalStrict(text, &items); err != nil {
		return nil, fmt.Errorf("a scenario is a list of faults in JSON or YAML: %w", err)
	}
	faults := make([]Fault, len(items))
	for i, item := range items {
		if err := faults[i].UnmarshalJSON(item); err != nil {
			return nil, fmt.Errorf("fault %d: %w", i+1, err)
		}
	}
	return faults, nil
}

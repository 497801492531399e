// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// ParseScenario reads a list of faults in JSON or YAML, each as in an HTTP
// request, usually with "after": what goes wrong when, from the time they are
// injected. Errors say which of them is wrong.
func ParseScenario(text []byte) ([]Fault, error) {
	var steps []json.RawMessage
	if err := yaml.UnmarshalStrict(text, &steps); err != nil {
		return nil, fmt.Errorf("a scenario is a list of faults in JSON or YAML: %w", err)
	}
	faults := make([]Fault, len(steps))
	for i, step := range steps {
		if err := faults[i].UnmarshalJSON(step); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return faults, nil
}

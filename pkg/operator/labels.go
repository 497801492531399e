// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// clusterLabels are those of the labels that name a cluster.
func clusterLabels(labels map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range labels {
		if provider.IsClusterLabel(key) {
			found[key] = value
		}
	}
	return found
}

// clusterText shows cluster labels: key=value.
func clusterText(labels map[string]string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}

// carries says whether labels have all of wanted, of which there must be some.
func carries(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return len(wanted) > 0
}

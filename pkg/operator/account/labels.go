// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// ParseClusterLabel reads one cluster label of the form key=value.
func ParseClusterLabel(text string) (key, value string, err error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || value == "" || !provider.IsClusterLabel(key) {
		return "", "", fmt.Errorf("%q is no cluster label: must be key=value with a key that ends in /cluster, such as kubernetes.io/cluster=my-cluster", text)
	}
	if errs := validation.ValidateLabels(map[string]string{key: value}, field.NewPath("label")); len(errs) > 0 {
		return "", "", fmt.Errorf("%q is no label that a server can have: %w", text, errs.ToAggregate())
	}
	return key, value, nil
}

// ClusterLabels are those of the labels that name a cluster.
func ClusterLabels(labels map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range labels {
		if provider.IsClusterLabel(key) {
			found[key] = value
		}
	}
	return found
}

// ClusterText shows cluster labels: key=value.
func ClusterText(labels map[string]string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}

// Carries says whether labels have all of wanted, of which there must be some.
func Carries(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return len(wanted) > 0
}

// IsManaged says whether a server carries both labels of the driver.
func IsManaged(server *provider.Server) bool {
	return server.Labels[provider.StackitMachineLabel] != "" && server.Labels[provider.StackitMachineClassLabel] != ""
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Nodes lists those of the target cluster.
func (o *Access) Nodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := o.Target.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// IsNodeOf says whether a Node is a server: by the ID in its ProviderID, of whatever form, or
// by its name, which is that of the server and of its Machine.
func IsNodeOf(node *corev1.Node, server *provider.Server) bool {
	return slices.Contains(IDsIn(node.Spec.ProviderID), server.ID) ||
		node.Name != "" && (node.Name == server.Name || node.Name == server.Labels[provider.StackitMachineLabel])
}

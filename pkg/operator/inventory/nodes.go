// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

func (s *sight) indexNodes() {
	s.nodesByName, s.nodesByID = map[string]*corev1.Node{}, map[string][]*corev1.Node{}
	for i := range s.nodes {
		node := &s.nodes[i]
		s.nodesByName[node.Name] = node
		id := lastSegment(node.Spec.ProviderID)
		s.nodesByID[id] = append(s.nodesByID[id], node)
	}
}

// node of the server; nil if there is none.
func (s *sight) node(machine *machineView, server *serverView) *corev1.Node {
	if machine != nil {
		if node := s.nodesByName[machine.Labels[v1alpha1.NodeLabelKey]]; node != nil {
			return node
		}
	}
	if server == nil {
		return nil
	}
	for _, node := range s.nodesByID[server.ID] {
		if id, err := providerid.Parse(node.Spec.ProviderID, server.at.project); err == nil && id == server.ID {
			return node
		}
	}
	return nil
}

// readiness returns the name and readiness of a Node, which may be nil.
func (s *sight) readiness(node *corev1.Node) (string, Readiness) {
	switch {
	case s.targetless:
		return "", ""
	case node == nil && !s.knows(PartNodes):
		return "", ReadinessUnknown
	case node == nil:
		return "", NoNode
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return node.Name, Ready
		}
	}
	return node.Name, NotReady
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Query says what an Inventory is about. The zero value is about everything.
type Query struct {
	// ClusterKey and ClusterValue are a cluster label; "" means those of all clusters.
	ClusterKey, ClusterValue string
	// Class and Machine are names; "" means all.
	Class, Machine string
	// MachineLabels and ServerLabels select by the labels of Machines and of servers; nil means
	// all. What belongs to what is selected is, too.
	MachineLabels, ServerLabels labels.Selector
	// AllNamespaces asks for the Machines of all namespaces, and for the projects that the
	// MachineClasses there name.
	AllNamespaces bool
	// Orphans leaves only servers that are orphans. The Totals still count everything.
	Orphans bool
	// Unmanaged adds servers without the manager's labels.
	Unmanaged bool
	// Attachables asks for the NICs and volumes of Machines from OpenStack and of nobody, which
	// takes two calls more for each account.
	Attachables bool
	// Addresses asks for the servers' addresses, which takes a call more for each account.
	Addresses bool
}

// SetCluster sets the cluster label to what a text of the form key=value says.
func (q *Query) SetCluster(text string) error {
	var err error
	q.ClusterKey, q.ClusterValue, err = account.ParseClusterLabel(text)
	return err
}

func (q Query) matchesServer(view *serverView) bool {
	owner := view.owner
	named := q.names(view.Labels[provider.StackitMachineClassLabel], view.Labels[provider.StackitMachineLabel])
	switch {
	case !isSelected(q.ServerLabels, view.Labels):
		return false
	case owner == nil:
		return (q.Unmanaged || account.IsManaged(view.Server)) && q.MachineLabels == nil && q.hasCluster(view.Labels) && named
	default:
		return isSelected(q.MachineLabels, owner.Labels) && (q.hasCluster(view.Labels) || q.hasCluster(owner.clusterLabels())) &&
			(named || q.names(owner.Spec.Class.Name, owner.Name))
	}
}

func (q Query) matchesMachine(view *machineView) bool {
	servers := func(matches func(labels map[string]string) bool) bool {
		return slices.ContainsFunc(view.servers, func(server *serverView) bool { return matches(server.Labels) })
	}
	return q.names(view.Spec.Class.Name, view.Name) && isSelected(q.MachineLabels, view.Labels) &&
		(q.hasCluster(view.clusterLabels()) || servers(q.hasCluster)) &&
		(q.ServerLabels == nil || servers(func(labels map[string]string) bool { return isSelected(q.ServerLabels, labels) }))
}

// matchesAttachable says whether the query is about a NIC or volume, which may be no Machine's.
func (q Query) matchesAttachable(one *account.Attachable, owner *machineView) bool {
	if owner == nil {
		return q.names("", one.Name) && q.hasCluster(one.Labels)
	}
	return q.names(owner.Spec.Class.Name, one.Name) && (q.hasCluster(one.Labels) || q.hasCluster(owner.clusterLabels()))
}

// names says whether the query is about the class and Machine of these names.
func (q Query) names(class, machine string) bool {
	return (q.Class == "" || q.Class == class) && (q.Machine == "" || q.Machine == machine)
}

func isSelected(selector labels.Selector, set map[string]string) bool {
	return selector == nil || selector.Matches(labels.Set(set))
}

func (q Query) hasCluster(labels map[string]string) bool {
	value, ok := labels[q.ClusterKey]
	return q.ClusterKey == "" || ok && value == q.ClusterValue
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

func (s *observation) join() {
	s.indexClasses()
	s.indexNodes()
	s.sortMachines()
	owners := account.NewOwners(s.machines)
	views := map[*v1alpha1.Machine]*machineView{}
	s.serverViews, s.machineViews = nil, nil
	for i := range s.machines {
		machine := &machineView{Machine: &s.machines[i]}
		machine.class = s.classNamed(machine.Namespace, machine.Spec.Class.Name)
		s.machineViews = append(s.machineViews, machine)
		views[machine.Machine] = machine
	}
	for _, at := range s.places {
		for i := range at.servers {
			view := &serverView{Server: &at.servers[i], at: at}
			view.whose = account.WhoseIs(view.Server, s.clustersLike(view.Labels), owners)
			for _, machine := range owners.Of(view.Server) {
				view.named = append(view.named, views[machine])
			}
			view.findOwner()
			s.serverViews = append(s.serverViews, view)
		}
	}
	for _, machine := range s.machineViews {
		slices.SortStableFunc(machine.servers, compareServers)
	}
}

// findOwner sets the owner to that of the Machines that name the server.
func (v *serverView) findOwner() {
	for _, machine := range v.named {
		if id, err := providerid.Parse(machine.Spec.ProviderID, v.at.project); err == nil && id == v.ID {
			v.owner, v.byID = machine, true
			break
		}
	}
	for _, machine := range v.named {
		if v.owner == nil && machine.findsByName(v.Server) {
			v.owner = machine
		}
	}
	if v.owner != nil {
		v.owner.servers = append(v.owner.servers, v)
	}
}

// compareServers sorts a Machine's servers: that of the ProviderID, then as the driver chooses
// among those that it does not know to be going.
func compareServers(a, b *serverView) int {
	last := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(last(!a.byID), last(!b.byID)),
		cmp.Compare(last(a.IsDeleting()), last(b.IsDeleting())),
		provider.CompareServers(a.Server, b.Server))
}

func (s *observation) indexClasses() {
	s.byClassName, s.clusters = map[string][]*account.Class{}, map[string][]map[string]string{}
	known := map[string]bool{}
	for _, class := range s.classes {
		s.byClassName[class.Name] = append(s.byClassName[class.Name], class)
		cluster := class.Inputs.ClusterLabels
		text := account.ClusterText(cluster)
		if known[text] || account.IsForeign(class.MachineClass) || class.Inputs.ClusterUnknown {
			continue
		}
		known[text] = true
		for key, value := range cluster {
			s.clusters[key+"="+value] = append(s.clusters[key+"="+value], cluster)
		}
	}
}

// clustersLike are the clusters of classes that have a cluster label with some labels in
// common: no others need be compared with them.
func (s *observation) clustersLike(labels map[string]string) []map[string]string {
	var all []map[string]string
	for key, value := range labels {
		all = append(all, s.clusters[key+"="+value]...)
	}
	return all
}

// sortMachines puts those of the Namespace first: of two with one name they are the likelier
// owners.
func (s *observation) sortMachines() {
	slices.SortStableFunc(s.machines, func(a, b v1alpha1.Machine) int {
		own := func(m v1alpha1.Machine) string {
			if m.Namespace == s.namespace {
				return ""
			}
			return m.Namespace
		}
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.Name, b.Name))
	})
}

func (s *observation) classNamed(namespace, name string) *account.Class {
	for _, class := range s.byClassName[name] {
		if class.Namespace == namespace {
			return class
		}
	}
	return nil
}

// withoutServer returns the Machines in scope whose server should be there and was
// not seen.
func (s *observation) withoutServer() []*machineView {
	var all []*machineView
	for _, machine := range s.machineViews {
		if s.inScope(machine.Namespace) && machine.DeletionTimestamp == nil && !machine.hasServer() && !machine.mayWaitForServer() {
			all = append(all, machine)
		}
	}
	return all
}

func (s *observation) indexNodes() {
	s.nodesByName, s.nodesByID = map[string]*corev1.Node{}, map[string][]*corev1.Node{}
	for i := range s.nodes {
		node := &s.nodes[i]
		s.nodesByName[node.Name] = node
		id := lastSegment(node.Spec.ProviderID)
		s.nodesByID[id] = append(s.nodesByID[id], node)
	}
}

// node of the server; nil if there is none.
func (s *observation) node(machine *machineView, server *serverView) *corev1.Node {
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
func (s *observation) readiness(node *corev1.Node) (string, Readiness) {
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

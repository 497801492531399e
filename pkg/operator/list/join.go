// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// machineView is a Machine with its class and servers.
type machineView struct {
	*v1alpha1.Machine

	// class is nil if it was not read or does not exist.
	class *account.Class
	// servers are the Machine's servers, the server named by its ProviderID first.
	servers []*serverView
}

// serverView is a server with its place and the Machines that name it.
type serverView struct {
	*provider.Server

	at *place
	// named are the Machines of any cluster that name the server.
	named []*machineView
	// owner is the Machine that the server belongs to; nil if there is none or it is unknown.
	owner *machineView
	// byID means that the owner's ProviderID names the server.
	byID bool

	addresses, consoleLog []string
}

func (s *observation) join() {
	s.clusters = account.Clusters(s.classes)
	// Of two Machines with one name, the Machine in Namespace is the likelier owner.
	slices.SortStableFunc(s.machines, func(a, b v1alpha1.Machine) int {
		return compare(a.Namespace != s.Namespace, b.Namespace != s.Namespace)
	})
	owners := account.NewOwners(s.machines)
	views := map[*v1alpha1.Machine]*machineView{}
	s.serverViews, s.machineViews = nil, nil
	for i := range s.machines {
		machine := &machineView{Machine: &s.machines[i]}
		at := slices.IndexFunc(s.classes, func(class *account.Class) bool {
			return class.Namespace == machine.Namespace && class.Name == machine.Spec.Class.Name
		})
		if at >= 0 {
			machine.class = s.classes[at]
		}
		s.machineViews = append(s.machineViews, machine)
		views[machine.Machine] = machine
	}
	for _, at := range s.places {
		for i := range at.servers {
			isKnown := func(known *serverView) bool { return known.ID == at.servers[i].ID }
			if slices.ContainsFunc(s.serverViews, isKnown) { // by another key of the project
				continue
			}
			server := &serverView{Server: &at.servers[i], at: at}
			for _, machine := range owners.Of(server.Server) {
				server.named = append(server.named, views[machine])
			}
			server.findOwner()
			s.serverViews = append(s.serverViews, server)
		}
	}
	for _, machine := range s.machineViews {
		slices.SortStableFunc(machine.servers, func(a, b *serverView) int {
			return cmp.Or(compare(!a.byID, !b.byID), compare(a.IsDeleting(), b.IsDeleting()),
				provider.CompareServers(a.Server, b.Server))
		})
	}
}

// findOwner sets the owner to one of the Machines that name the server.
func (v *serverView) findOwner() {
	for _, machine := range v.named { // of two, that of the server's label
		id, err := providerid.Parse(machine.Spec.ProviderID, v.at.Session.ProjectID)
		if err == nil && id == v.ID && (v.owner == nil || machine.Name == v.Labels[provider.StackitMachineLabel]) {
			v.owner, v.byID = machine, true
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

// compare sorts true behind false.
func compare(a, b bool) int {
	number := map[bool]int{true: 1}
	return cmp.Compare(number[a], number[b])
}

// isAsked reports whether a Machine is shown. None is for a query about a server.
func (s *observation) isAsked(machine *machineView) bool {
	return s.query.Server == "" && (s.scope == metav1.NamespaceAll || s.scope == machine.Namespace) &&
		(s.query.Machine == "" || s.query.Machine == machine.Name)
}

// isShown reports whether a server is shown: a Machine that is shown names it, or it is a managed server of a checked
// cluster. While the classes are unknown, managed servers of all clusters are shown.
func (s *observation) isShown(server *serverView) bool {
	if s.query.Server != "" {
		return server.ID == strings.ToLower(s.query.Server) || server.Name == s.query.Server
	}
	if slices.ContainsFunc(server.named, s.isAsked) {
		return true
	}
	return account.IsManaged(server.Server) && s.query.Machine == "" &&
		(account.ClusterOf(server.Server, s.clusters) != nil || !s.classesRead)
}

// placeOf returns the place of the Machine's server according to its class; nil if that is unknown or the servers there
// were not read. An account named by the user counts if the Machine's ProviderID has its project, and the class has no
// other region.
func (s *observation) placeOf(machine *machineView) *place {
	for _, at := range s.places {
		if machine.class == nil || !at.isRead {
			continue
		}
		isOf := func(class *account.Class) bool { return class.Subject() == machine.class.Subject() }
		region := machine.class.Inputs.Spec.Region
		if slices.ContainsFunc(at.Classes, isOf) || len(at.Classes) == 0 && (region == "" || region == at.Region) &&
			strings.HasPrefix(machine.Spec.ProviderID, providerid.Format(at.Session.ProjectID, "")) {
			return at
		}
	}
	return nil
}

// server returns the Machine's server; nil if none was found.
func (m *machineView) server() *serverView {
	if len(m.servers) == 0 || m.Spec.ProviderID != "" && !m.servers[0].byID {
		return nil
	}
	return m.servers[0]
}

// specLabels returns the labels of the Machine's class. If they are unknown, it returns the server's own cluster
// labels, which then match by definition.
func (m *machineView) specLabels(server *provider.Server) (labels map[string]string, isKnown bool) {
	if m.class != nil && m.class.Inputs.ClusterLabels != nil {
		return m.class.Inputs.Spec.Labels, true
	}
	return account.ClusterLabels(server.Labels), false
}

// findsByName reports whether the driver would find the server by the Machine's name. If the class is unknown, the
// server must carry the class's name. For a Machine from OpenStack without a ProviderID, the server's name is enough.
func (m *machineView) findsByName(server *provider.Server) bool {
	labels, isKnown := m.specLabels(server)
	if isKnown && provider.CameFromOpenStack(m.Machine) && m.Spec.ProviderID == "" &&
		provider.IsByName(m.Name, labels, server.Name, server.Labels, server.Metadata) {
		return true
	}
	return (isKnown || server.Labels[provider.StackitMachineClassLabel] == m.Spec.Class.Name) &&
		provider.FoundByName(m.Name, m.Spec.Class.Name, labels, server)
}

// lastSegment returns the part of a ProviderID that holds the server's ID.
func lastSegment(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

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
	// whose classifies the server, as far as the Machines and classes were read.
	whose account.Whose
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
	if s.query.Cluster != nil {
		s.clusters = []map[string]string{s.query.Cluster}
	}
	// Of two Machines with one name, the Machine in Namespace is the likelier owner.
	slices.SortStableFunc(s.machines, func(a, b v1alpha1.Machine) int {
		return cmp.Compare(last(a.Namespace != s.Namespace), last(b.Namespace != s.Namespace))
	})
	owners := account.NewOwners(s.machines)
	owners.Incomplete = !s.allMachinesRead
	views := map[*v1alpha1.Machine]*machineView{}
	s.serverViews, s.machineViews = nil, nil
	for i := range s.machines {
		machine := &machineView{Machine: &s.machines[i]}
		machine.class = s.classOf(machine.Machine)
		s.machineViews = append(s.machineViews, machine)
		views[machine.Machine] = machine
	}
	for _, at := range s.places {
		for i := range at.servers {
			server := &serverView{Server: &at.servers[i], at: at}
			server.whose = account.WhoseIs(server.Server, s.clusters, owners)
			for _, machine := range owners.Of(server.Server) {
				server.named = append(server.named, views[machine])
			}
			server.findOwner()
			s.serverViews = append(s.serverViews, server)
		}
	}
	for _, machine := range s.machineViews {
		slices.SortStableFunc(machine.servers, compareServers)
	}
}

// findOwner sets the owner to one of the Machines that name the server.
func (v *serverView) findOwner() {
	for _, machine := range v.named { // of two, that of the server's label
		id, err := providerid.Parse(machine.Spec.ProviderID, v.at.project)
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

// last returns a sort key: true sorts behind false.
func last(isSo bool) int {
	if isSo {
		return 1
	}
	return 0
}

// compareServers sorts a Machine's servers: the server of the ProviderID first, then in the order in which the driver
// chooses, servers not being deleted first.
func compareServers(a, b *serverView) int {
	return cmp.Or(
		cmp.Compare(last(!a.byID), last(!b.byID)),
		cmp.Compare(last(a.IsDeleting()), last(b.IsDeleting())),
		provider.CompareServers(a.Server, b.Server))
}

func (s *observation) classOf(machine *v1alpha1.Machine) *account.Class {
	for _, class := range s.classes {
		if class.Namespace == machine.Namespace && class.Name == machine.Spec.Class.Name {
			return class
		}
	}
	return nil
}

// inScope reports whether the query covers a namespace.
func (s *observation) inScope(namespace string) bool {
	return s.scope == metav1.NamespaceAll || s.scope == namespace
}

// isAsked reports whether a Machine is shown: its class or one of its servers belongs to the query's cluster. No
// Machine is shown for a query about a server.
func (s *observation) isAsked(machine *machineView) bool {
	if s.query.Server != "" {
		return false
	}
	ofCluster := s.query.Cluster == nil || account.Carries(machine.clusterLabels(), s.query.Cluster) ||
		slices.ContainsFunc(machine.servers,
			func(server *serverView) bool { return account.Carries(server.Labels, s.query.Cluster) })
	return s.inScope(machine.Namespace) && ofCluster && (s.query.Machine == "" || s.query.Machine == machine.Name)
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
		(account.ClusterOf(server.Server, s.clusters) != nil || !s.classesRead && s.query.Cluster == nil)
}

// placeOf returns the place of the Machine's server according to its class; nil if that is unknown or the servers there
// were not read.
func (s *observation) placeOf(machine *machineView) *place {
	for _, at := range s.places {
		if at.used != nil &&
			slices.ContainsFunc(at.accounts, func(a *account.Account) bool { return isAccountOf(a, machine) }) {
			return at
		}
	}
	return nil
}

// isAccountOf reports whether an account is that of the Machine's class. An account named by the user counts if the
// Machine's ProviderID has its project, and the class has no other region.
func isAccountOf(a *account.Account, machine *machineView) bool {
	if machine.class == nil {
		return false
	}
	if len(a.Classes) > 0 {
		return slices.ContainsFunc(a.Classes,
			func(class *account.Class) bool { return class.Subject() == machine.class.Subject() })
	}
	region := machine.class.Inputs.Spec.Region
	return strings.HasPrefix(machine.Spec.ProviderID, providerid.Format(a.Session.ProjectID, "")) &&
		(region == "" || region == a.Region)
}

// server returns the Machine's server; nil if none was found.
func (m *machineView) server() *serverView {
	if len(m.servers) == 0 || m.Spec.ProviderID != "" && !m.servers[0].byID {
		return nil
	}
	return m.servers[0]
}

// mayWaitForServer reports whether a Machine may not have a server yet. The manager's orphan collector makes the same
// assumption for these phases (v0.62.1 machine_safety.go:247).
func (m *machineView) mayWaitForServer() bool {
	phase := m.Status.CurrentStatus.Phase
	return m.Spec.ProviderID == "" && (phase == "" || phase == v1alpha1.MachineCrashLoopBackOff)
}

// namesInAnotherForm reports whether the ProviderID has the server's ID in a form that the driver refuses.
func (m *machineView) namesInAnotherForm(server *serverView) bool {
	return !server.byID && slices.Contains(account.IDsIn(m.Spec.ProviderID), server.ID)
}

// clusterLabels are those of the Machine's class; nil if they are not known.
func (m *machineView) clusterLabels() map[string]string {
	if !m.knowsClass() {
		return nil
	}
	return m.class.Inputs.ClusterLabels
}

// knowsClass reports whether the labels of the Machine's class are known.
func (m *machineView) knowsClass() bool { return m.class != nil && m.class.Inputs.ClusterLabels != nil }

// specLabels returns the labels of the Machine's class. If they are unknown, it returns the server's own cluster
// labels, which then match by definition.
func (m *machineView) specLabels(server *provider.Server) map[string]string {
	if m.knowsClass() {
		return m.class.Inputs.Spec.Labels
	}
	return account.ClusterLabels(server.Labels)
}

// findsByName reports whether the driver would find the server by the Machine's name. If the class is unknown, the
// server must carry the class's name. For a Machine from OpenStack without a ProviderID, the server's name is enough.
func (m *machineView) findsByName(server *provider.Server) bool {
	class, labels := m.Spec.Class.Name, m.specLabels(server)
	byNameAlone := provider.CameFromOpenStack(m.Machine) && m.Spec.ProviderID == "" && m.knowsClass() &&
		provider.IsByName(m.Name, labels, server.Name, server.Labels, server.Metadata)
	return byNameAlone || (m.knowsClass() || server.Labels[provider.StackitMachineClassLabel] == class) &&
		provider.FoundByName(m.Name, class, labels, server)
}

// checkOwned applies the driver's ownership check.
func (m *machineView) checkOwned(server *provider.Server, byID bool) error {
	return provider.CheckOwned(m.Name, m.Spec.Class.Name, m.specLabels(server), server, byID)
}

// lastSegment returns the part of a ProviderID that holds the server's ID.
func lastSegment(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

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

// machineView is a Machine with what belongs to it.
type machineView struct {
	*v1alpha1.Machine

	// class is nil if it was not read or does not exist.
	class *account.Class
	// servers are the Machine's, the one that its ProviderID names first.
	servers []*serverView
}

// serverView is a server with what belongs to it.
type serverView struct {
	*provider.Server

	at *place
	// whose is the server, as far as the Machines and classes were read.
	whose account.Whose
	// named are the Machines of any cluster that name it.
	named []*machineView
	// owner is the Machine whose server it is; nil if it is nobody's, or not known.
	owner *machineView
	// byID says that the owner's ProviderID names it.
	byID bool

	addresses []string
	console   *Console
}

func (s *observation) join() {
	s.clusters = account.Clusters(s.classes)
	if s.query.Cluster != nil {
		s.clusters = []map[string]string{s.query.Cluster}
	}
	// Of two Machines with one name, that of the Namespace is the likelier owner.
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

// findOwner sets the owner to that of the Machines that name the server.
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

// last sorts behind the rest what is so.
func last(isSo bool) int {
	if isSo {
		return 1
	}
	return 0
}

// compareServers sorts a Machine's servers: that of the ProviderID, then as the driver chooses
// among those that it does not know to be going.
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

// inScope says whether the query is about a namespace.
func (s *observation) inScope(namespace string) bool {
	return s.scope == metav1.NamespaceAll || s.scope == namespace
}

// isAsked says whether a Machine is shown: it is one of the query's cluster by its class or by
// its server. None is for a query about a server.
func (s *observation) isAsked(machine *machineView) bool {
	if s.query.Server != "" {
		return false
	}
	ofCluster := s.query.Cluster == nil || account.Carries(machine.clusterLabels(), s.query.Cluster) ||
		slices.ContainsFunc(machine.servers, func(server *serverView) bool { return account.Carries(server.Labels, s.query.Cluster) })
	return s.inScope(machine.Namespace) && ofCluster && (s.query.Machine == "" || s.query.Machine == machine.Name)
}

// isShown says whether a server is: it is a Machine's that is, or a managed one of a cluster that
// is checked. Where the classes are not known, it is shown whatever its cluster.
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

// placeOf is where the driver has the Machine's server, if the servers there were read; nil if
// that is not known.
func (s *observation) placeOf(machine *machineView) *place {
	for _, at := range s.places {
		if at.used != nil && slices.ContainsFunc(at.accounts, func(a *account.Account) bool { return isAccountOf(a, machine) }) {
			return at
		}
	}
	return nil
}

// isAccountOf says whether an account is that of the Machine's class. One that the user named is,
// if the Machine's ProviderID names its project, and the class no other region.
func isAccountOf(a *account.Account, machine *machineView) bool {
	if machine.class == nil {
		return false
	}
	if len(a.Classes) > 0 {
		return slices.ContainsFunc(a.Classes, func(class *account.Class) bool { return class.Subject() == machine.class.Subject() })
	}
	region := machine.class.Inputs.Spec.Region
	return strings.HasPrefix(machine.Spec.ProviderID, providerid.Format(a.Session.ProjectID, "")) && (region == "" || region == a.Region)
}

// server is the Machine's server; nil if none was seen.
func (m *machineView) server() *serverView {
	if len(m.servers) == 0 || m.Spec.ProviderID != "" && !m.servers[0].byID {
		return nil
	}
	return m.servers[0]
}

// mayWaitForServer says whether a Machine may be without a server because it does not have
// one yet: the manager's orphan collector thinks so, too, of these phases (v0.62.1
// machine_safety.go:247).
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

// knowsClass says whether the labels of the Machine's class are known.
func (m *machineView) knowsClass() bool { return m.class != nil && m.class.Inputs.ClusterLabels != nil }

// specLabels are those of the Machine's class. Where they are not known, the server's own
// cluster labels must do: they contradict nothing.
func (m *machineView) specLabels(server *provider.Server) map[string]string {
	if m.knowsClass() {
		return m.class.Inputs.Spec.Labels
	}
	return account.ClusterLabels(server.Labels)
}

// findsByName says whether the driver would find the server by the Machine's name. Where the
// class is not known, the server must have its name. A Machine from OpenStack without a
// ProviderID may have a server by its name alone.
func (m *machineView) findsByName(server *provider.Server) bool {
	class, labels := m.Spec.Class.Name, m.specLabels(server)
	byNameAlone := provider.CameFromOpenStack(m.Machine) && m.Spec.ProviderID == "" && m.knowsClass() &&
		provider.IsByName(m.Name, labels, server.Name, server.Labels, server.Metadata)
	return byNameAlone || (m.knowsClass() || server.Labels[provider.StackitMachineClassLabel] == class) &&
		provider.FoundByName(m.Name, class, labels, server)
}

// checkOwned is the driver's rule.
func (m *machineView) checkOwned(server *provider.Server, byID bool) error {
	return provider.CheckOwned(m.Name, m.Spec.Class.Name, m.specLabels(server), server, byID)
}

// lastSegment is where a ProviderID has the server's ID, if it has one.
func lastSegment(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

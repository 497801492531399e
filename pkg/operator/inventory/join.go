// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// sight is what was read for an Inventory, and after join what belongs together.
type sight struct {
	now time.Time
	// namespace is that of the Machines; "" is all.
	namespace string
	// targetless says that there is no target cluster.
	targetless bool
	sites      []*site
	classes    []*account.Class
	machines   []v1alpha1.Machine
	nodes      []corev1.Node

	mu     sync.Mutex
	unread []Unread

	// homes are where the driver works for classes of which a Machine has no server.
	homes map[*account.Class]*site

	serverViews  []*serverView
	machineViews []*machineView
	byClassName  map[string][]*account.Class
	// clusters are the cluster labels of the classes, each once, by each label as key=value.
	clusters    map[string][]map[string]string
	nodesByName map[string]*corev1.Node
	nodesByID   map[string][]*corev1.Node
}

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
	at *site
	// whose is the server, as far as the Machines and classes were read.
	whose account.Whose
	// named are the Machines of any cluster that name it.
	named []*machineView
	// owner is the Machine whose server it is; nil if it is nobody's, or not known.
	owner *machineView
	// byID says that the owner's ProviderID names it.
	byID bool
}

// miss notes a part that could not be read. where is "" if there is one such part only.
func (s *sight) miss(part Part, where string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = append(s.unread, Unread{part, where, finding.OneLine(reason.Error())})
}

// knows says whether all of the parts were read.
func (s *sight) knows(parts ...Part) bool {
	return !slices.ContainsFunc(s.unread, func(unread Unread) bool { return slices.Contains(parts, unread.Part) })
}

// join finds what belongs together.
func (s *sight) join() {
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
	for _, at := range s.sites {
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

// knowsClass says whether the labels of the Machine's class are known.
func (m *machineView) knowsClass() bool { return m.class != nil && !m.class.Inputs.ClusterUnknown }

// specLabels are those of the Machine's class. Where they are not known, the server's own
// cluster labels must do: they contradict nothing.
func (m *machineView) specLabels(server *provider.Server) map[string]string {
	if m.knowsClass() {
		return m.class.Inputs.Spec.Labels
	}
	return account.ClusterLabels(server.Labels)
}

// findsByName says whether the driver would find the server by the Machine's name. Where
// the class is not known, the server must have its name.
func (m *machineView) findsByName(server *provider.Server) bool {
	class := m.Spec.Class.Name
	return (m.knowsClass() || server.Labels[provider.StackitMachineClassLabel] == class) &&
		provider.FoundByName(m.Name, class, m.specLabels(server), server)
}

// checkOwned is the driver's rule.
func (m *machineView) checkOwned(server *provider.Server, byID bool) error {
	return provider.CheckOwned(m.Name, m.Spec.Class.Name, m.specLabels(server), server, byID)
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

func (s *sight) indexClasses() {
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
func (s *sight) clustersLike(labels map[string]string) []map[string]string {
	var all []map[string]string
	for key, value := range labels {
		all = append(all, s.clusters[key+"="+value]...)
	}
	return all
}

// sortMachines puts those of the Namespace first: of two with one name they are the likelier
// owners.
func (s *sight) sortMachines() {
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

func (s *sight) classNamed(namespace, name string) *account.Class {
	for _, class := range s.byClassName[name] {
		if class.Namespace == namespace {
			return class
		}
	}
	return nil
}

// lastSegment is where a ProviderID has the server's ID, if it has one.
func lastSegment(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// inScope says whether the query is about a namespace.
func (s *sight) inScope(namespace string) bool { return s.namespace == "" || namespace == s.namespace }

// withoutServer returns the Machines in scope whose server should be there and was
// not seen.
func (s *sight) withoutServer() []*machineView {
	var all []*machineView
	for _, machine := range s.machineViews {
		if s.inScope(machine.Namespace) && machine.DeletionTimestamp == nil && !machine.hasServer() && !machine.mayWaitForServer() {
			all = append(all, machine)
		}
	}
	return all
}

// server is the Machine's server; nil if none was seen.
func (m *machineView) server() *serverView {
	if len(m.servers) == 0 || m.Spec.ProviderID != "" && !m.servers[0].byID {
		return nil
	}
	return m.servers[0]
}

// hasServer says whether the Machine's server is there, and not being deleted.
func (m *machineView) hasServer() bool {
	server := m.server()
	return server != nil && !server.IsDeleting()
}

// inCreation says whether the manager is still creating the Machine's server, or has done so
// a moment ago.
func (m *machineView) inCreation() bool {
	switch m.Status.CurrentStatus.Phase {
	case "", v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachinePending, v1alpha1.MachineAvailable:
		return true
	default:
		return false
	}
}

// mayWaitForServer says whether a Machine may be without a server because it does not have
// one yet: the manager's orphan collector thinks so, too, of these phases (v0.62.1
// machine_safety.go:247).
func (m *machineView) mayWaitForServer() bool {
	phase := m.Status.CurrentStatus.Phase
	return m.Spec.ProviderID == "" && (phase == "" || phase == v1alpha1.MachineCrashLoopBackOff)
}

// mayShowLater says whether the Machine's server may be too new for a list.
func (s *sight) mayShowLater(machine *machineView) bool {
	return machine.inCreation() && s.now.Sub(machine.lastChange()) < provider.DefaultSettle
}

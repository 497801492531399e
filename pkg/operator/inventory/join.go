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
	now       time.Time
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
	nodesByName  map[string]*corev1.Node
	nodesByID    map[string][]*corev1.Node
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
	if s.homes == nil {
		s.homes = map[*account.Class]*site{}
	}
	s.indexClasses()
	s.indexNodes()
	byName, byID := s.indexMachines()
	s.serverViews = nil
	for _, at := range s.sites {
		for i := range at.servers {
			view := &serverView{Server: &at.servers[i], at: at}
			candidates := slices.Concat(byID[view.ID], byName[view.Labels[provider.StackitMachineLabel]])
			view.findOwner(slices.DeleteFunc(candidates, func(machine *machineView) bool {
				return !account.Names(machine.Machine, view.Server)
			}))
			s.serverViews = append(s.serverViews, view)
		}
	}
	for _, machine := range s.machineViews {
		slices.SortStableFunc(machine.servers, compareServers)
	}
}

// findOwner sets the owner to that of the Machines that name the server.
func (v *serverView) findOwner(named []*machineView) {
	v.named = named
	for _, machine := range named {
		if id, err := providerid.Parse(machine.Spec.ProviderID, v.at.project); err == nil && id == v.ID {
			v.owner, v.byID = machine, true
			break
		}
	}
	for _, machine := range named {
		if v.owner == nil && machine.findsByName(v.Server) {
			v.owner = machine
		}
	}
	if v.owner != nil {
		v.owner.servers = append(v.owner.servers, v)
	}
}

// findsByName says whether the driver would find the server by the Machine's name. Where
// the class is not known, the class's name on the server must do.
func (m *machineView) findsByName(server *provider.Server) bool {
	if m.class == nil || m.class.Inputs.ClusterUnknown {
		return server.Labels[provider.StackitMachineClassLabel] == m.Spec.Class.Name
	}
	return provider.FoundByName(m.Name, m.class.Name, m.class.Inputs.Spec.Labels, server)
}

// compareServers sorts a Machine's servers: that of the ProviderID, then the others as the
// driver chooses among them: those that run, then the oldest.
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
		cmp.Compare(last(!a.IsActive()), last(!b.IsActive())),
		a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func (s *sight) indexClasses() {
	s.byClassName = map[string][]*account.Class{}
	for _, class := range s.classes {
		s.byClassName[class.Name] = append(s.byClassName[class.Name], class)
	}
}

// indexMachines makes the views of the Machines. Those of the Namespace are first: of two
// with one name they are the likelier owners.
func (s *sight) indexMachines() (byName, byID map[string][]*machineView) {
	slices.SortStableFunc(s.machines, func(a, b v1alpha1.Machine) int {
		own := func(m v1alpha1.Machine) string {
			if m.Namespace == s.namespace {
				return ""
			}
			return m.Namespace
		}
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.Name, b.Name))
	})
	byName, byID = map[string][]*machineView{}, map[string][]*machineView{}
	s.machineViews = nil
	for i := range s.machines {
		machine := &machineView{Machine: &s.machines[i]}
		machine.class = s.classNamed(machine.Namespace, machine.Spec.Class.Name)
		s.machineViews = append(s.machineViews, machine)
		byName[machine.Name] = append(byName[machine.Name], machine)
		for _, id := range account.IDsIn(machine.Spec.ProviderID) {
			byID[id] = append(byID[id], machine)
		}
	}
	return byName, byID
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

// withoutServer returns the Machines of the Namespace whose server should be there and was
// not seen.
func (s *sight) withoutServer() []*machineView {
	var all []*machineView
	for _, machine := range s.machineViews {
		if machine.Namespace == s.namespace && machine.DeletionTimestamp == nil && !machine.hasServer() && !machine.mayWaitForServer() {
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

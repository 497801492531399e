// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// observation is what was read for an Inventory, and after join what belongs together.
type observation struct {
	now time.Time
	// namespace is that of the Machines; "" is all.
	namespace string
	// targetless says that there is no target cluster.
	targetless bool
	places     []*place
	classes    []*account.Class
	machines   []v1alpha1.Machine
	nodes      []corev1.Node
	// deployments are read for a query about attachables alone.
	deployments []v1alpha1.MachineDeployment

	mu     sync.Mutex
	unread []Unread

	// classPlaces are where the driver works for classes of which a Machine has no server.
	classPlaces map[*account.Class]*place

	serverViews  []*serverView
	machineViews []*machineView
	byClassName  map[string][]*account.Class
	// clusters are the cluster labels of the classes, each once, by each label as key=value.
	clusters    map[string][]map[string]string
	nodesByName map[string]*corev1.Node
	nodesByID   map[string][]*corev1.Node
}

// place is a project and region, and what was read there.
type place struct {
	project, region string
	// accounts reach it, with different keys; the first that works is used.
	accounts []*account.Account
	// used is the one that worked; nil if the servers were not read.
	used    *account.Account
	servers []provider.Server
	// partial says that servers may be there that were not read.
	partial bool
	// proofs counts the servers that were read one by one.
	proofs int
	// gone are the IDs of servers that the API itself does not find.
	gone []string
	// addresses are by the server's ID; nil if they were not read.
	addresses map[string][]string
	// attachables are its NICs and volumes.
	attachables []account.Attachable
}

func (s *place) String() string { return fmt.Sprintf("project %s in %s", s.project, s.region) }

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
}

// miss notes a part that could not be read. where is "" if there is one such part only.
func (s *observation) miss(part Part, where string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = append(s.unread, Unread{part, where, report.OneLine(reason.Error())})
}

// knows says whether all of the parts were read.
func (s *observation) knows(parts ...Part) bool {
	return !slices.ContainsFunc(s.unread, func(unread Unread) bool { return slices.Contains(parts, unread.Part) })
}

// inScope says whether the query is about a namespace.
func (s *observation) inScope(namespace string) bool {
	return s.namespace == "" || namespace == s.namespace
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
func (s *observation) mayShowLater(machine *machineView) bool {
	return machine.inCreation() && s.now.Sub(machine.lastChange()) < provider.DefaultSettle
}

// lastChange is when the Machine was made, or its phase was last set.
func (m *machineView) lastChange() time.Time {
	changed := m.Status.CurrentStatus.LastUpdateTime.Time
	if changed.Before(m.CreationTimestamp.Time) {
		return m.CreationTimestamp.Time
	}
	return changed
}

// knowsClass says whether the labels of the Machine's class are known.
func (m *machineView) knowsClass() bool { return m.class != nil && !m.class.Inputs.ClusterUnknown }

// clusterLabels are those of the Machine's class; nil if they are not known.
func (m *machineView) clusterLabels() map[string]string {
	if !m.knowsClass() {
		return nil
	}
	return m.class.Inputs.ClusterLabels
}

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
		provider.FoundByName(m.Name, class, m.specLabels(server), server) || m.hasByName(server)
}

// hasByName says whether a Machine from OpenStack has the server by its name alone.
func (m *machineView) hasByName(server *provider.Server) bool {
	return provider.CameFromOpenStack(m.Machine) && m.Spec.ProviderID == "" && m.knowsClass() &&
		provider.IsByName(m.Name, m.specLabels(server), server.Name, server.Labels, server.Metadata)
}

// checkOwned is the driver's rule.
func (m *machineView) checkOwned(server *provider.Server, byID bool) error {
	return provider.CheckOwned(m.Name, m.Spec.Class.Name, m.specLabels(server), server, byID)
}

// lastSegment is where a ProviderID has the server's ID, if it has one.
func lastSegment(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

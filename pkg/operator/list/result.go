// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// result returns what the query selects.
func (s *observation) result() *Result {
	found := &Result{Time: s.now, Read: map[string]int{}, NotChecked: map[string]int{}, Stale: s.staleTexts(),
		MachinesRead: s.machinesRead, ServersRead: s.serversRead(), OrphansRead: s.serversRead() && s.allMachinesRead}
	servers := map[*serverView]*Server{}
	for _, view := range s.serverViews {
		switch {
		case s.isShown(view):
			servers[view] = s.server(view)
			found.Servers = append(found.Servers, servers[view])
		case account.IsManaged(view.Server) && s.query.Cluster == nil && !s.query.isAboutOne():
			found.NotChecked[account.ClusterText(account.ClusterLabels(view.Labels))]++
		}
	}
	for _, view := range s.machineViews {
		if !s.isAsked(view) {
			continue
		}
		machine := s.machine(view)
		for _, server := range s.serversOf(view) {
			machine.Servers = append(machine.Servers, servers[server])
		}
		found.Machines = append(found.Machines, machine)
	}
	for _, at := range s.places {
		if at.used != nil {
			found.Read[at.String()] = len(at.servers)
		}
	}
	slices.SortFunc(found.Machines, func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(found.Servers, func(a, b *Server) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Machine, b.Machine),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if s.isClusterUnused() {
		s.miss("cluster "+account.ClusterText(s.query.Cluster), "no MachineClass here and no server has this label")
	} else {
		found.Clusters = s.count(found)
	}
	s.missServers(found.Machines)
	found.Unknown = s.unknown()
	return found
}

// missServers records Machines whose servers are unknown although every read succeeded: they may be in other projects.
func (s *observation) missServers(machines []*Machine) {
	if len(s.unread) > 0 {
		return
	}
	for _, machine := range machines {
		for _, note := range machine.Notes {
			if note.Kind == NoteUnknown {
				s.miss(fmt.Sprintf("server of Machine %s/%s", machine.Namespace, machine.Name), note.Reason)
			}
		}
	}
}

// isClusterUnused reports whether no class and no server has the query's cluster label, which may
// be misspelt.
func (s *observation) isClusterUnused() bool {
	if s.query.Cluster == nil || len(s.unread) > 0 {
		return false
	}
	ofClass := func(class *account.Class) bool { return account.Carries(class.Inputs.ClusterLabels, s.query.Cluster) }
	ofServer := func(server *serverView) bool { return account.Carries(server.Labels, s.query.Cluster) }
	return !slices.ContainsFunc(s.classes, ofClass) && !slices.ContainsFunc(s.serverViews, ofServer)
}

// serversOf returns the Machine's own servers, followed by servers that it names but does not own.
func (s *observation) serversOf(machine *machineView) []*serverView {
	all := slices.Clone(machine.servers)
	for _, server := range s.serverViews {
		if server.owner != machine && slices.Contains(server.named, machine) {
			all = append(all, server)
		}
	}
	return all
}

func (s *observation) server(view *serverView) *Server {
	cluster := account.ClusterOf(view.Server, s.clusters)
	made := &Server{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "Server"},
		ObjectMeta: metav1.ObjectMeta{Name: view.ID, CreationTimestamp: metav1.NewTime(view.CreatedAt)},
		ServerName: view.Name, ProjectID: view.at.project, Region: view.at.region,
		Class: view.Labels[provider.StackitMachineClassLabel], Machine: view.Labels[provider.StackitMachineLabel],
		State: view.Status, MachineType: view.MachineType, Zone: view.Zone, Notes: s.serverNotes(view),
		Addresses: view.addresses, ConsoleLog: view.consoleLog,
	}
	if owner := view.owner; owner != nil {
		made.Machine, made.MachineNamespace, made.Class = owner.Name, owner.Namespace, owner.Spec.Class.Name
		if labels := owner.clusterLabels(); len(labels) > 0 {
			cluster = labels
		}
	}
	if cluster == nil {
		cluster = account.ClusterLabels(view.Labels)
	}
	made.Cluster = account.ClusterText(cluster)
	return made
}

func (s *observation) machine(view *machineView) *Machine {
	made := &Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: view.Namespace, Name: view.Name, CreationTimestamp: view.CreationTimestamp},
		Class:      view.Spec.Class.Name, Cluster: account.ClusterText(view.clusterLabels()),
		Phase: string(view.Status.CurrentStatus.Phase), PhaseSince: view.Status.CurrentStatus.LastUpdateTime,
		ProviderID: view.Spec.ProviderID, Node: view.Labels[v1alpha1.NodeLabelKey], Ready: s.readiness(view),
		Server: lastSegment(view.Spec.ProviderID), Notes: s.machineNotes(view),
	}
	if owner := metav1.GetControllerOf(view); owner != nil {
		made.Owner = owner.Kind + " " + owner.Name
	}
	if last := &view.Status.LastOperation; last.Type != "" || last.Description != "" {
		made.LastOperation = last
	}
	switch server := view.server(); {
	case server != nil:
		made.Server, made.State = server.ID, server.Status
		if view.class == nil {
			made.Cluster = account.ClusterText(account.ClusterOf(server.Server, s.clusters))
		}
	case hasNote(made.Notes, NoteUnknown), s.placeOf(view) == nil && !s.serversRead():
		made.Server, made.State = cmp.Or(made.Server, Unknown), Unknown
	}
	return made
}

// readiness returns what the manager last reported about the Machine's Node. The manager keeps the conditions of a Node
// that is gone; then only the phase shows that it is gone.
func (s *observation) readiness(machine *machineView) Readiness {
	conditions, phase := machine.Status.Conditions, machine.Status.CurrentStatus.Phase
	isReady := slices.ContainsFunc(conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	old := phase == v1alpha1.MachineTerminating || machine.DeletionTimestamp != nil || s.staleSince(machine.Namespace) != 0
	switch {
	case len(conditions) == 0 && machine.Labels[v1alpha1.NodeLabelKey] == "":
		return NoNode
	case len(conditions) == 0:
		return NeverJoined
	case isReady && old && phase != v1alpha1.MachineUnknown && phase != v1alpha1.MachineFailed:
		return WasReady
	case old:
		return WasNotReady
	case isReady && phase == v1alpha1.MachineRunning:
		return Ready
	default:
		return NotReady
	}
}

// staleSince returns how long ago the lease of a namespace expired; 0 if its readiness is current.
func (s *observation) staleSince(namespace string) time.Duration {
	at := slices.IndexFunc(s.leases, func(lease coordinationv1.Lease) bool { return lease.Namespace == namespace })
	if at < 0 || s.leases[at].Spec.RenewTime == nil {
		return 0
	}
	spec := s.leases[at].Spec
	lasts := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second
	if expired := s.now.Sub(spec.RenewTime.Add(lasts)); expired > lasts {
		return expired
	}
	return 0
}

func (s *observation) staleTexts() []string {
	var texts []string
	for i := range s.leases {
		namespace := s.leases[i].Namespace
		if since := s.staleSince(namespace); since != 0 && s.inScope(namespace) {
			texts = append(texts, fmt.Sprintf("READY is the state of %s ago: lease %s of namespace %s has expired",
				duration.HumanDuration(since), leaseName, namespace))
		}
	}
	return texts
}

// serversRead reports whether all servers of all places were read.
func (s *observation) serversRead() bool {
	unread := func(at *place) bool { return at.used == nil || at.partial || s.looksEmpty(at) }
	return len(s.places) > 0 && !slices.ContainsFunc(s.places, unread)
}

// looksEmpty reports whether a place shows no server at all, although a Machine names one there.
func (s *observation) looksEmpty(at *place) bool {
	return len(at.servers) == 0 && slices.ContainsFunc(s.machineViews, func(machine *machineView) bool {
		return machine.Spec.ProviderID != "" && machine.DeletionTimestamp == nil && s.isAsked(machine) &&
			s.placeOf(machine) == at
	})
}

// count counts the shown objects by cluster.
func (s *observation) count(found *Result) []*Cluster {
	counts := map[string]*Cluster{}
	of := func(label string) *Cluster {
		if counts[label] == nil {
			counts[label] = &Cluster{Label: label}
		}
		return counts[label]
	}
	for _, labels := range s.clusters {
		of(account.ClusterText(labels))
	}
	for _, machine := range found.Machines {
		count := of(machine.Cluster)
		count.Machines++
		if machine.Ready == Ready || machine.Ready == WasReady {
			count.Ready++
		}
		count.Stale = count.Stale || s.staleSince(machine.Namespace) != 0
	}
	for _, server := range found.Servers {
		if server.Cluster != "" && counts[server.Cluster] == nil && s.classesRead {
			continue // a server of another cluster, shown because a Machine names it
		}
		count := of(server.Cluster)
		count.Servers++
		if server.IsOrphan() {
			count.Orphans++
		}
	}
	if len(counts) == 0 {
		of("")
	}
	var all []*Cluster
	for _, label := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, counts[label])
	}
	return all
}

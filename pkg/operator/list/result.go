// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/check"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// result returns what the query selects.
func (s *observation) result() *Result {
	found := &Result{Time: s.now}
	servers, others := map[*serverView]*Server{}, 0
	for _, view := range s.serverViews {
		if s.isShown(view) {
			servers[view] = s.server(view)
			found.Servers = append(found.Servers, servers[view])
		} else if account.IsManaged(view.Server) {
			others++
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
	slices.SortFunc(found.Machines, func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(found.Servers, func(a, b *Server) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Machine, b.Machine),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	found.Facts = append(s.findings(), s.facts...)
	for _, at := range s.places {
		fact := fmt.Sprintf("%s read in %v", report.Count(len(at.servers), "server"), at)
		if at.isRead && !slices.Contains(found.Facts, fact) { // two keys of one project
			found.Facts = append(found.Facts, fact)
		}
	}
	if others > 0 && s.query.Machine+s.query.Server == "" {
		found.Facts = append(found.Facts, fmt.Sprintf("%s of other clusters: not classified", report.Count(others, "server")))
	}
	s.missServers(found.Machines)
	found.Unknown = s.unknown()
	return found
}

// findings returns the findings about the Machines of the query and their classes.
func (s *observation) findings() (lines []string) {
	for _, machine := range s.machineViews {
		if !s.isAsked(machine) {
			continue
		}
		found := check.Machine(machine.Machine)
		if machine.class != nil && !machine.class.IsForeign() {
			found = append(found, check.Class(machine.class, s.Sessions, s.Clock)...)
		}
		for _, each := range found {
			if line := each.String(); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
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
	made := &Server{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "Server"},
		ObjectMeta: metav1.ObjectMeta{Name: view.ID, CreationTimestamp: metav1.NewTime(view.CreatedAt),
			Labels: view.Labels},
		ServerName: view.Name, ProjectID: view.at.Session.ProjectID, Region: view.at.Region,
		Cluster: account.ClusterText(account.ClusterLabels(view.Labels)),
		Class:   view.Labels[provider.StackitMachineClassLabel], Machine: view.Labels[provider.StackitMachineLabel],
		State: view.Status, MachineType: view.MachineType, Zone: view.Zone, Notes: s.serverNotes(view),
		Addresses: view.addresses, ConsoleLog: view.consoleLog,
	}
	if owner := view.owner; owner != nil {
		made.Machine, made.MachineNamespace, made.Class = owner.Name, owner.Namespace, owner.Spec.Class.Name
	}
	return made
}

func (s *observation) machine(view *machineView) *Machine {
	made := &Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: view.Namespace, Name: view.Name, CreationTimestamp: view.CreationTimestamp},
		Class:      view.Spec.Class.Name,
		Phase:      string(view.Status.CurrentStatus.Phase),
		ProviderID: view.Spec.ProviderID, Node: view.Labels[v1alpha1.NodeLabelKey], Ready: s.readiness(view),
		Server: lastSegment(view.Spec.ProviderID), Notes: s.machineNotes(view),
	}
	if view.class != nil {
		made.Cluster = account.ClusterText(view.class.Inputs.ClusterLabels)
	}
	if last := &view.Status.LastOperation; last.Type != "" || last.Description != "" {
		made.LastOperation = last
	}
	switch server := view.server(); {
	case server != nil:
		made.Server, made.State = server.ID, server.Status
	case hasNote(made.Notes, NoteUnknown), s.placeOf(view) == nil && !s.serversRead():
		made.Server, made.State = cmp.Or(made.Server, Unknown), Unknown
	}
	return made
}

// creationTimeout is the manager's default of a Machine's creation timeout (v0.62.1 options.go:72).
const creationTimeout = 20 * time.Minute

// readiness returns what the manager last reported about the Machine's Node. The manager keeps the conditions of a Node
// that is gone; then only the phase shows that it is gone.
func (s *observation) readiness(machine *machineView) Readiness {
	conditions, phase := machine.Status.Conditions, machine.Status.CurrentStatus.Phase
	isReady := slices.ContainsFunc(conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	timeout := creationTimeout
	if own := machine.Spec.MachineConfiguration; own != nil && own.MachineCreationTimeout != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	switch {
	case len(conditions) > 0 && isReady && phase != v1alpha1.MachineUnknown && phase != v1alpha1.MachineFailed:
		return Ready
	case len(conditions) > 0:
		return NotReady
	case machine.Labels[v1alpha1.NodeLabelKey] == "" || machine.DeletionTimestamp != nil:
		return NoNode
	case s.now.Sub(machine.CreationTimestamp.Time) < timeout:
		return Booting
	default:
		return NeverJoined
	}
}

// serversRead reports whether all servers of all places were read.
func (s *observation) serversRead() bool {
	return len(s.places) > 0 && !slices.ContainsFunc(s.places, func(at *place) bool { return !at.isRead })
}

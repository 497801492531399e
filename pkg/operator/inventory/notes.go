// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// Remedies of notes that come from no call of the driver.
const (
	remedyLostClass    = "create the class again: the manager and the driver cannot work without it"
	remedyOrphanNoOne  = "nobody else deletes it: mcm-stackit clean does"
	remedyNoServer     = "delete the Machine: its MachineSet makes another one"
	remedyLabel        = "restore the label if the server belongs to the Machine"
	remedyClusterLabel = "set a label whose key ends in /cluster in providerSpec.labels, and on the server if it is this cluster's"
)

// serverNotes returns what is worth knowing of a server.
func (s *sight) serverNotes(v *serverView) []Note {
	var notes []Note
	lost := s.classDeleted(v)
	if v.owner == nil {
		notes = append(notes, s.strangerNotes(v, lost)...)
	} else {
		notes = append(notes, duplicateNotes(v)...)
		notes = append(notes, contradictionNotes(v)...)
	}
	if lost {
		remedy := remedyLostClass
		if v.owner == nil {
			remedy = remedyOrphanNoOne
		}
		notes = append(notes, Note{Kind: NoteClassDeleted, Remedy: remedy,
			Reason: fmt.Sprintf("MachineClass %s does not exist", s.className(v))})
	}
	if v.ErrorMessage != "" {
		notes = append(notes, Note{Kind: NoteFault, Reason: finding.OneLine(v.ErrorMessage)})
	}
	if v.owner != nil {
		notes = append(notes, s.stuckNotes(v.owner)...)
	}
	return notes
}

// strangerNotes says whose a server is that belongs to no Machine.
func (s *sight) strangerNotes(v *serverView, classDeleted bool) []Note {
	switch {
	case !account.IsManaged(v.Server):
		return []Note{{Kind: NoteUnmanaged, Reason: fmt.Sprintf("it lacks one of the labels %s and %s", provider.StackitMachineLabel, provider.StackitMachineClassLabel)}}
	case v.IsDeleting():
		return nil
	case !s.isOwnCluster(v.Server):
		return s.otherClusterNotes(v)
	case len(v.named) > 0:
		machine := v.named[0]
		reason := fmt.Sprintf("Machine %s/%s has its name, and is of another cluster or class", machine.Namespace, machine.Name)
		return []Note{{Kind: NoteContradiction, About: contradictingLabel(machine, v.Server), Reason: reason, Remedy: remedyLabel}}
	case !s.knows(PartMachines, PartOtherMachines):
		return []Note{{Kind: NoteUnknown, Reason: "not all Machines could be read"}}
	default:
		remedy := account.RemedyOrphan
		if classDeleted {
			remedy = remedyOrphanNoOne
		}
		return []Note{{Kind: NoteOrphan, Remedy: remedy,
			Reason: fmt.Sprintf("no Machine is named %s, and none has its ID", v.Labels[provider.StackitMachineLabel])}}
	}
}

// otherClusterNotes is about a managed server that carries none of the known cluster labels.
func (s *sight) otherClusterNotes(v *serverView) []Note {
	if !s.knows(PartClasses, PartOtherClasses) {
		return []Note{{Kind: NoteUnknown, Reason: "not all MachineClasses could be read"}}
	}
	unlabelled := len(account.ClusterLabels(v.Labels)) == 0
	for _, class := range s.byClassName[v.Labels[provider.StackitMachineClassLabel]] {
		switch {
		case class.Inputs.ClusterUnknown:
			return []Note{{Kind: NoteClusterUnknown, Reason: fmt.Sprintf("the cluster label of MachineClass %s/%s cannot be used", class.Namespace, class.Name),
				Remedy: "repair providerSpec.labels"}}
		case unlabelled:
			return []Note{{Kind: NoteClusterUnknown, Reason: "it has no cluster label: another cluster may have a class of this name", Remedy: remedyClusterLabel}}
		}
	}
	return []Note{{Kind: NoteOtherCluster, Reason: "no MachineClass here has its cluster label"}}
}

// isOwnCluster says whether a server carries the cluster label of a class of the control
// cluster.
func (s *sight) isOwnCluster(server *provider.Server) bool {
	return slices.ContainsFunc(s.classes, func(class *account.Class) bool {
		return !account.IsForeign(class.MachineClass) && !class.Inputs.ClusterUnknown && account.Carries(server.Labels, class.Inputs.ClusterLabels)
	})
}

// className is the class of a server: its Machine's, or what its label says.
func (s *sight) className(v *serverView) string {
	if v.owner != nil {
		return v.owner.Namespace + "/" + v.owner.Spec.Class.Name
	}
	return v.Labels[provider.StackitMachineClassLabel]
}

// classDeleted says whether the class of a server does not exist.
func (s *sight) classDeleted(v *serverView) bool {
	switch {
	case v.owner != nil:
		return s.lacksClass(v.owner)
	case !s.knows(PartClasses) || !account.IsManaged(v.Server) || !s.isOwnCluster(v.Server):
		return false
	}
	return !slices.ContainsFunc(s.byClassName[v.Labels[provider.StackitMachineClassLabel]], func(class *account.Class) bool {
		return class.Inputs.ClusterUnknown || account.Carries(v.Labels, class.Inputs.ClusterLabels)
	})
}

// lacksClass says whether the class of a Machine does not exist.
func (s *sight) lacksClass(machine *machineView) bool {
	return machine.class == nil && s.knows(PartClasses) && (machine.Namespace == s.namespace || s.knows(PartOtherClasses))
}

// duplicateNotes says whether a server is one too many of its Machine.
func duplicateNotes(v *serverView) []Note {
	machine := v.owner
	first := machine.servers[0]
	reason := ""
	switch {
	case v.byID, v.IsDeleting():
	case machine.Spec.ProviderID != "":
		reason = fmt.Sprintf("the server of Machine %s/%s is %s", machine.Namespace, machine.Name, lastSegment(machine.Spec.ProviderID))
	case first != v:
		reason = fmt.Sprintf("Machine %s/%s has another server, %s, and needs one", machine.Namespace, machine.Name, first.ID)
	}
	if reason == "" {
		return nil
	}
	return []Note{{Kind: NoteDuplicate, Reason: reason, Remedy: account.RemedyOrphan}}
}

// contradictionNotes says whether the server that a ProviderID names is not its Machine's by
// the driver's rule.
func contradictionNotes(v *serverView) []Note {
	if !v.byID {
		return nil
	}
	err := v.owner.checkOwned(v.Server, true)
	var refused *provider.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return []Note{{Kind: NoteContradiction, About: refused.Label, Reason: finding.OneLine(refused.Text), Remedy: remedyLabel}}
}

// checkOwned is the driver's rule. Where the class's cluster label is not known, it cannot
// contradict.
func (m *machineView) checkOwned(server *provider.Server, byID bool) error {
	labels := account.ClusterLabels(server.Labels)
	if m.class != nil && !m.class.Inputs.ClusterUnknown {
		labels = m.class.Inputs.Spec.Labels
	}
	return provider.CheckOwned(m.Name, m.Spec.Class.Name, labels, server, byID)
}

// contradictingLabel is the label by which a server is not that of the Machine of its name.
func contradictingLabel(machine *machineView, server *provider.Server) string {
	var refused *provider.Error
	if errors.As(machine.checkOwned(server, false), &refused) {
		return refused.Label
	}
	return provider.StackitMachineClassLabel
}

// machineNotes returns what is worth knowing of a Machine.
func (s *sight) machineNotes(machine *machineView) []Note {
	stuck := s.stuckNotes(machine)
	notes := slices.Clone(stuck)
	if missing := s.missingServer(machine); missing != nil && (missing.Kind != NoteBeingCreated || len(stuck) == 0) {
		notes = append(notes, *missing)
	}
	if s.lacksClass(machine) {
		notes = append(notes, Note{Kind: NoteClassDeleted, Remedy: remedyLostClass,
			Reason: fmt.Sprintf("MachineClass %s/%s does not exist", machine.Namespace, machine.Spec.Class.Name)})
	}
	for _, server := range machine.servers {
		for _, note := range slices.Concat(duplicateNotes(server), contradictionNotes(server)) {
			note.Reason = fmt.Sprintf("server %s: %s", server.ID, note.Reason)
			notes = append(notes, note)
		}
	}
	return notes
}

// missingServer says why a Machine has no server; nil if it has one, or needs none.
func (s *sight) missingServer(machine *machineView) *Note {
	if machine.DeletionTimestamp != nil || machine.hasServer() {
		return nil
	}
	if server := machine.server(); server != nil {
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is %s", server.ID, server.Status), Remedy: remedyNoServer}
	}
	if machine.mayWaitForServer() {
		return &Note{Kind: NoteBeingCreated}
	}
	home := s.homes[machine.class]
	if home == nil || home.partial {
		return &Note{Kind: NoteUnknown, Reason: "not all servers of its project and region were read"}
	}
	if s.mayShowLater(machine) {
		return &Note{Kind: NoteBeingCreated, Reason: fmt.Sprintf("a list may show its server %s later", provider.DefaultSettle)}
	}
	id, err := providerid.Parse(machine.Spec.ProviderID, home.project)
	node, readiness := s.readiness(s.node(machine, nil))
	switch {
	case machine.Spec.ProviderID != "" && err != nil:
		return &Note{Kind: NoteNoServer, Reason: finding.OneLine(err.Error()), Remedy: "restore the project in the Secret: servers do not move"}
	case readiness == Ready:
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("its server is not in %v, but Node %s is Ready", home, node)}
	case machine.Spec.ProviderID == "":
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("it has no ProviderID, and no server in %v has its name", home), Remedy: remedyNoServer}
	case !slices.Contains(home.gone, id):
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("the list of %v lacks server %s, and no more than %d servers are read by their IDs", home, id, mostProofs)}
	default:
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is not in %v", id, home), Remedy: remedyNoServer}
	}
}

// noteOf returns the first note of a kind; nil if there is none.
func noteOf(notes []Note, kinds ...NoteKind) *Note {
	at := slices.IndexFunc(notes, func(note Note) bool { return slices.Contains(kinds, note.Kind) })
	if at < 0 {
		return nil
	}
	return &notes[at]
}

// compareStrings compares lists of texts of one length.
func compareStrings(a, b []string) int {
	return slices.CompareFunc(a, b, cmp.Compare[string])
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// Remedies of notes that come from no call of the driver.
const (
	remedyLostClass    = "create the class again: the manager and the driver cannot work without it"
	remedyOrphanNoOne  = "nobody else deletes it: mcm-stackit clean does"
	remedyNoServer     = "delete the Machine: its MachineSet makes another one"
	remedyLabel        = "restore the label if the server belongs to the Machine"
	remedyDeleting     = "nothing: its deletion has begun; if it stays, ask STACKIT with its ID"
	remedyByName       = "once its Machine has its ProviderID: mcm-stackit label"
	remedySeveral      = "write the ProviderID of the right one into the Machine's spec.providerID: the driver takes none of several"
	remedyClusterLabel = "set a label whose key ends in /cluster in providerSpec.labels, and on the server if it is this cluster's"
)

// serverNotes returns what is worth knowing of a server.
func (s *observation) serverNotes(v *serverView) []Note {
	var notes []Note
	lost := s.classDeleted(v)
	if v.owner == nil {
		notes = append(notes, s.strangerNotes(v, lost)...)
	} else {
		notes = append(notes, ownedNotes(v)...)
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
		notes = append(notes, Note{Kind: NoteFault, Reason: report.OneLine(v.ErrorMessage)})
	}
	if v.owner != nil {
		notes = append(notes, s.stuckNotes(v.owner)...)
	}
	return notes
}

// strangerNotes says whose a server is that belongs to no Machine.
func (s *observation) strangerNotes(v *serverView, classDeleted bool) []Note {
	switch {
	case v.whose == account.OfMachine:
		machine := v.named[0]
		return []Note{{Kind: NoteContradiction, About: contradictingLabel(machine, v.Server), Remedy: remedyLabel,
			Reason: fmt.Sprintf("Machine %s/%s names it, and is of another cluster, class or project", machine.Namespace, machine.Name)}}
	case v.whose == account.Unmanaged:
		return []Note{{Kind: NoteUnmanaged, Reason: fmt.Sprintf("it lacks one of the labels %s and %s", provider.StackitMachineLabel, provider.StackitMachineClassLabel)}}
	case v.whose == account.OtherCluster:
		return s.otherClusterNotes(v)
	case !s.knows(PartMachines, PartOtherMachines):
		return []Note{{Kind: NoteUnknown, Reason: "not all Machines could be read"}}
	}
	note := Note{Kind: NoteOrphan, Remedy: account.RemedyOrphan,
		Reason: fmt.Sprintf("no Machine is named %s, and none has its ID", v.Labels[provider.StackitMachineLabel])}
	switch {
	case v.IsDeleting():
		note.About, note.Remedy = "being deleted", remedyDeleting
	case classDeleted:
		note.Remedy = remedyOrphanNoOne
	}
	return []Note{note}
}

// otherClusterNotes is about a managed server that is of none of the known clusters.
func (s *observation) otherClusterNotes(v *serverView) []Note {
	labels := account.ClusterLabels(v.Labels)
	if slices.ContainsFunc(s.clustersLike(v.Labels), func(cluster map[string]string) bool { return account.Carries(labels, cluster) }) {
		return []Note{{Kind: NoteOtherCluster, Reason: "it carries the label of another cluster, too: " + account.ClusterText(labels)}}
	}
	if !s.knows(PartClasses, PartOtherClasses) {
		return []Note{{Kind: NoteUnknown, Reason: "not all MachineClasses could be read"}}
	}
	for _, class := range s.byClassName[v.Labels[provider.StackitMachineClassLabel]] {
		switch {
		case class.Inputs.ClusterUnknown:
			return []Note{{Kind: NoteClusterUnknown, Reason: fmt.Sprintf("the cluster label of MachineClass %s/%s cannot be used", class.Namespace, class.Name),
				Remedy: "repair providerSpec.labels"}}
		case len(labels) == 0:
			return []Note{{Kind: NoteClusterUnknown, Reason: "it has no cluster label: another cluster may have a class of this name", Remedy: remedyClusterLabel}}
		}
	}
	return []Note{{Kind: NoteOtherCluster, Reason: "no MachineClass here has its cluster label"}}
}

// className is the class of a server: its Machine's, or what its label says.
func (s *observation) className(v *serverView) string {
	if v.owner != nil {
		return v.owner.Namespace + "/" + v.owner.Spec.Class.Name
	}
	return v.Labels[provider.StackitMachineClassLabel]
}

func (s *observation) classDeleted(v *serverView) bool {
	switch {
	case v.owner != nil:
		return s.lacksClass(v.owner)
	case !s.knows(PartClasses) || v.whose != account.Orphan:
		return false
	}
	return !slices.ContainsFunc(s.byClassName[v.Labels[provider.StackitMachineClassLabel]], func(class *account.Class) bool {
		return class.Inputs.ClusterUnknown || account.Carries(v.Labels, class.Inputs.ClusterLabels)
	})
}

// lacksClass says whether the class of a Machine does not exist.
func (s *observation) lacksClass(machine *machineView) bool {
	return machine.class == nil && s.knows(PartClasses) && (machine.Namespace == s.namespace || s.knows(PartOtherClasses))
}

// ownedNotes returns what is worth knowing of a server beside its Machine.
func ownedNotes(v *serverView) []Note {
	return slices.Concat(duplicateNotes(v), contradictionNotes(v), listedNotes(v), byNameNotes(v))
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
	remedy := account.RemedyOrphan
	if !account.IsManaged(v.Server) {
		remedy = remedySeveral // nobody lists it
	}
	return []Note{{Kind: NoteDuplicate, Reason: reason, Remedy: remedy}}
}

// byNameNotes says whether a server is that of a Machine from OpenStack by its name alone.
func byNameNotes(v *serverView) []Note {
	if account.IsManaged(v.Server) || !v.owner.hasByName(v.Server) {
		return nil
	}
	return []Note{{Kind: NoteByName, Remedy: remedyByName,
		Reason: fmt.Sprintf("it has the name of Machine %s/%s, which came from OpenStack, and lacks labels of the manager's", v.owner.Namespace, v.owner.Name)}}
}

// openStackNotes says whether a Machine came from OpenStack.
func openStackNotes(machine *machineView) []Note {
	if !provider.CameFromOpenStack(machine.Machine) {
		return nil
	}
	return []Note{{Kind: NoteFromOpenStack, Reason: "its annotation or its ProviderID says so: its server, NIC and boot volume may have its name and no labels"}}
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
	return []Note{{Kind: NoteContradiction, About: refused.Label, Reason: report.OneLine(refused.Text), Remedy: remedyLabel}}
}

// contradictingLabel is the label by which a server is not that of a Machine that names it.
func contradictingLabel(machine *machineView, server *provider.Server) string {
	var refused *provider.Error
	if errors.As(machine.checkOwned(server, false), &refused) {
		return refused.Label
	}
	wanted := account.ClusterLabels(machine.specLabels(server))
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if server.Labels[key] != wanted[key] {
			return key
		}
	}
	return provider.StackitMachineClassLabel
}

// listedNotes says whether the manager takes a Machine's server for an orphan.
func listedNotes(v *serverView) []Note {
	if !v.byID || v.IsDeleting() || !account.IsListedOtherwise(v.owner.Machine, v.Server, v.at.project) {
		return nil
	}
	return []Note{{Kind: NoteListedOtherwise, Remedy: account.RemedyListedOtherwise,
		Reason: fmt.Sprintf("the ProviderID is %s, the driver lists %s", report.OneLine(v.owner.Spec.ProviderID), providerid.Format(v.at.project, v.ID)),
		Cause:  "the manager compares ProviderIDs as texts: it deletes this running server as an orphan"}}
}

// machineNotes returns what is worth knowing of a Machine.
func (s *observation) machineNotes(machine *machineView) []Note {
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
		for _, note := range ownedNotes(server) {
			note.Reason = fmt.Sprintf("server %s: %s", server.ID, note.Reason)
			notes = append(notes, note)
		}
	}
	return slices.Concat(notes, openStackNotes(machine), s.preservedNotes(machine))
}

// preservedNotes says whether the manager keeps a Machine, also if it fails. It does while an
// expiry time is set. The annotation asks for it; a Node's, also a removed one, comes before
// the Machine's (v0.62.1 machine.go:881).
func (s *observation) preservedNotes(machine *machineView) []Note {
	const key = machineutils.PreserveMachineAnnotationKey
	value, of := machine.Annotations[key], "Machine"
	applied := machine.Annotations[machineutils.LastAppliedNodePreserveValueAnnotationKey]
	if applied != "" {
		value, of = applied, "Node"
	}
	if node := s.nodesByName[machine.Labels[v1alpha1.NodeLabelKey]]; node != nil && (applied != "" || node.Annotations[key] != "") {
		value, of = node.Annotations[key], "Node"
	}
	var about string
	until := machine.Status.CurrentStatus.PreserveExpiryTime
	switch {
	case until != nil:
		about = "until " + until.UTC().Format(time.RFC3339)
	case value == machineutils.PreserveMachineAnnotationValueWhenFailed:
		about = "if it fails"
	case value == machineutils.PreserveMachineAnnotationValueNow, value == machineutils.PreserveMachineAnnotationValueAutoPreserved:
		about = "soon"
	default:
		return nil
	}
	return []Note{{Kind: NotePreserved, About: about, Reason: fmt.Sprintf("annotation %s of the %s is %s", key, of, report.Quoted(value)),
		Remedy: fmt.Sprintf("the annotation's value %q ends it", machineutils.PreserveMachineAnnotationValueFalse)}}
}

// missingServer says why a Machine has no server; nil if it has one, or needs none.
func (s *observation) missingServer(machine *machineView) *Note {
	if machine.DeletionTimestamp != nil || machine.hasServer() {
		return nil
	}
	if server := machine.server(); server != nil {
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is %s", server.ID, server.Status), Remedy: remedyNoServer}
	}
	if machine.mayWaitForServer() {
		return &Note{Kind: NoteBeingCreated}
	}
	where := s.classPlaces[machine.class]
	if where == nil || where.partial {
		return &Note{Kind: NoteUnknown, Reason: "not all servers of its project and region were read"}
	}
	if s.mayShowLater(machine) {
		return &Note{Kind: NoteBeingCreated, Reason: fmt.Sprintf("a list may show its server %s later", provider.DefaultSettle)}
	}
	id, err := providerid.Parse(machine.Spec.ProviderID, where.project)
	node, readiness := s.readiness(s.node(machine, nil))
	switch {
	case machine.Spec.ProviderID != "" && err != nil:
		return &Note{Kind: NoteNoServer, Reason: report.OneLine(err.Error()), Remedy: "restore the project in the Secret: servers do not move"}
	case readiness == Ready:
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("its server is not in %v, but Node %s is Ready", where, node)}
	case machine.Spec.ProviderID == "":
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("it has no ProviderID, and no server in %v has its name", where), Remedy: remedyNoServer}
	case !slices.Contains(where.gone, id):
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("the list of %v lacks server %s, and no more than %d servers are read by their IDs", where, id, mostProofs)}
	default:
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is not in %v", id, where), Remedy: remedyNoServer}
	}
}

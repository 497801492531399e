// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// maxSilence is the longest time without a report of the manager about a Machine that does not count as stuck: a driver
// call ends within 10 minutes, and the manager records its end.
const maxSilence = 10 * time.Minute

// Sections of the runbook, as the remedies of notes: which remedy is safe depends on what no list shows (a migration, a
// restore).
const (
	seeOrphans    = "see kubernetes/runbooks.md#stackitorphanservers"
	seeDuplicates = "see kubernetes/runbooks.md#stackitduplicateservers"
	seeStop       = "the manager deletes this running server as an orphan; " +
		"see kubernetes/runbooks.md#stop-the-manager-and-the-sidecar"
)

// serverNotes returns the notes about a server.
func (s *observation) serverNotes(v *serverView) (notes []Note) {
	var refused *provider.Error
	owner := v.owner
	switch {
	case slices.ContainsFunc(v.named, v.isListedOtherwise):
		at := slices.IndexFunc(v.named, v.isListedOtherwise)
		notes = []Note{{Kind: NoteListedOtherwise, Remedy: seeStop, Reason: fmt.Sprintf(
			"the ProviderID of Machine %s/%s is %s, but the driver lists %s", v.named[at].Namespace, v.named[at].Name,
			report.OneLine(v.named[at].Spec.ProviderID), providerid.Format(v.at.Session.ProjectID, v.ID))}}
	case owner == nil:
		notes = s.strangerNotes(v)
	case v.byID:
		labels, _ := owner.specLabels(v.Server)
		if errors.As(provider.CheckOwned(owner.Name, owner.Spec.Class.Name, labels, v.Server, true), &refused) {
			notes = []Note{{Kind: NoteAnothers, About: refused.Label, Reason: report.OneLine(refused.Text)}}
		}
	case v.IsDeleting():
	case owner.Spec.ProviderID != "" || owner.servers[0] != v:
		notes = []Note{{Kind: NoteDuplicate, Remedy: seeDuplicates, Reason: fmt.Sprintf("the server of Machine %s/%s is %s",
			owner.Namespace, owner.Name, cmp.Or(report.OneLine(lastSegment(owner.Spec.ProviderID)), owner.servers[0].ID))}}
	}
	if v.ErrorMessage != "" {
		notes = append(notes, Note{Kind: NoteFault, Reason: report.OneLine(v.ErrorMessage)})
	}
	return notes
}

// isListedOtherwise reports whether a Machine's ProviderID has the server's ID in another form than the driver lists:
// the manager compares them as texts. A server from OpenStack is listed once it has the driver's labels.
func (v *serverView) isListedOtherwise(machine *machineView) bool {
	return account.IsManaged(v.Server) && !v.IsDeleting() && (v.owner == nil || v.owner == machine) &&
		slices.Contains(account.IDsIn(lastSegment(machine.Spec.ProviderID)), v.ID) &&
		machine.Spec.ProviderID != providerid.Format(v.at.Session.ProjectID, v.ID)
}

// strangerNotes returns notes about a server that no Machine owns. An orphan carries both labels of the driver and the
// cluster labels of one of the clusters, and no Machine of any namespace names it.
func (s *observation) strangerNotes(v *serverView) []Note {
	isOurs := account.IsManaged(v.Server) && account.ClusterOf(v.Server, s.clusters) != nil
	note := Note{Kind: NoteUnknown, Reason: "whether a Machine names it is unknown"}
	switch {
	case len(v.named) > 0:
		note = Note{Kind: NoteAnothers, Reason: fmt.Sprintf(
			"Machine %s/%s names it, but belongs to another cluster, class or project", v.named[0].Namespace,
			v.named[0].Name)}
	case isOurs && s.allMachinesRead && v.IsDeleting():
		note = Note{Kind: NoteOrphan, About: "being deleted", Reason: "no Machine of any namespace names it"}
	case isOurs && s.allMachinesRead:
		note = Note{Kind: NoteOrphan, Remedy: seeOrphans, Reason: "no Machine of any namespace names it"}
	case !isOurs && s.classesRead:
		note = Note{Kind: NoteStranger, Reason: "it lacks one of the driver's labels, or belongs to another cluster"}
	}
	return []Note{note}
}

// machineNotes returns the notes about a Machine and about the servers that it names.
func (s *observation) machineNotes(machine *machineView) []Note {
	notes := append(s.stuckNotes(machine), s.missingServer(machine)...)
	if machine.class == nil && s.classesRead {
		notes = append(notes, Note{Kind: NoteMissing,
			Reason: fmt.Sprintf("MachineClass %s/%s does not exist", machine.Namespace, machine.Spec.Class.Name)})
	}
	for _, server := range s.serversOf(machine) {
		for _, note := range s.serverNotes(server) {
			note.Reason = fmt.Sprintf("server %s: %s", server.ID, note.Reason)
			notes = append(notes, note)
		}
	}
	return notes
}

// stuckNotes returns a note if a Machine is stuck: its last operation failed, or the manager reports nothing about it.
func (s *observation) stuckNotes(machine *machineView) []Note {
	last, phase := machine.Status.LastOperation, machine.Status.CurrentStatus.Phase
	kind := NoteStuck
	if machine.DeletionTimestamp != nil {
		kind = NoteStuckDeletion
	}
	if phase == "" && last.Description == "" {
		if kind == NoteStuckDeletion || len(machine.servers) > 0 ||
			s.now.Sub(machine.CreationTimestamp.Time) < maxSilence {
			return nil
		}
		row := report.RowOf(report.Silence)
		return []Note{{Kind: kind, About: "nothing at all", Cause: row.Cause, Remedy: row.Remedy,
			Reason: "the manager has not reported anything since the Machine was created"}}
	}
	if last.State != v1alpha1.MachineStateFailed || phase == v1alpha1.MachineRunning ||
		phase == v1alpha1.MachineAvailable {
		return nil
	}
	// The manager writes code and text in brackets (v0.62.1 machinecodes/status/status.go).
	about, text := cmp.Or(last.ErrorCode, codes.Unknown.String()), last.Description
	if failure, decoded := status.FromError(errors.New(last.Description)); decoded {
		about, text = failure.Code().String(), failure.Message()
	}
	reason := string(provider.ReasonIn(text))
	row := report.RowOf(reason)
	return []Note{{Kind: kind, About: cmp.Or(reason, about), Reason: report.OneLine(text), Cause: row.Cause,
		Remedy: row.Remedy}}
}

// missingServer returns a note if a Machine that should have a server has none. The manager's orphan collector makes
// the same assumption about the phases in which it may have none yet (v0.62.1 machine_safety.go:247).
func (s *observation) missingServer(machine *machineView) []Note {
	id, phase := machine.Spec.ProviderID, machine.Status.CurrentStatus.Phase
	mayWait := id == "" && (phase == "" || phase == v1alpha1.MachineCrashLoopBackOff)
	isListed := func(v *serverView) bool { return slices.Contains(v.named, machine) && v.isListedOtherwise(machine) }
	if machine.DeletionTimestamp != nil || machine.server() != nil || mayWait ||
		slices.ContainsFunc(s.serverViews, isListed) {
		return nil
	}
	note := Note{Kind: NoteUnknown, Reason: "its server was not read"}
	switch at := s.placeOf(machine); {
	case at == nil:
	case len(at.servers) == 0: // the API may return an empty list for a while
		note.Reason = fmt.Sprintf("the API shows no server at all in %v", at)
	case id == "":
		note = Note{Kind: NoteNoServer, Reason: fmt.Sprintf("it has no ProviderID, and no server in %v has its name", at)}
	case s.ownerOf(lastSegment(id)) != nil:
		owner := s.ownerOf(lastSegment(id))
		note = Note{Kind: NoteAnothers, Reason: fmt.Sprintf("server %s is that of Machine %s/%s", lastSegment(id),
			owner.Namespace, owner.Name)}
	case !slices.Contains(at.gone, lastSegment(id)):
		if _, err := providerid.Parse(id, at.Session.ProjectID); err != nil {
			note.Reason = err.Error()
		}
	case s.readiness(machine) == Ready: // in a migration, the Secret may name another project
		note.Reason = fmt.Sprintf("server %s: not found by GET in %v, but its Node was last seen Ready", lastSegment(id), at)
	default:
		note = Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s: not found by GET in %v", lastSegment(id), at)}
	}
	return []Note{note}
}

// ownerOf returns the Machine that owns the server with the ID; nil if there is none.
func (s *observation) ownerOf(id string) *machineView {
	for _, server := range s.serverViews {
		if server.ID == id {
			return server.owner
		}
	}
	return nil
}

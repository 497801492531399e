// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// maxSilence is the longest time without a report of the manager about a Machine that does not
	// count as stuck: a driver call ends within 10 minutes, and the
	// manager records its end.
	maxSilence = 10 * time.Minute
	// joinTimeout is the age at which a server's Node should exist: servers boot and join within
	// minutes.
	joinTimeout = 5 * time.Minute
)

// Remedies of notes that do not come from a driver call.
const (
	remedyLostClass  = "create the class again: the manager and the driver cannot work without it"
	remedyNoServer   = "delete the Machine: its MachineSet, if it has one, creates another"
	remedyProviderID = "correct spec.providerID or, if its project is right, restore that project in the Secret: " +
		"a server cannot move to another project"
	remedyElsewhere = "restore the server's project and region in class and Secret: a server cannot move to others"
	remedyNoSecret  = "create the Secret in the namespace of the class: the driver is not called without it"
	remedyRestore   = "were Machines lost? Restore them first: a manager that runs without them deletes the servers"
	remedyLost      = "was its Machine lost, as in a restore? Then keep manager and sidecar stopped, and restore it " +
		"first: they delete the server. If not, "
	remedyLabel     = "restore the labels if the server belongs to the Machine"
	remedyDeleting  = "nothing: its deletion has begun; if it does not end, give the server's ID to STACKIT"
	remedyOtherwise = "stop the manager and its sidecar now (kubernetes/runbooks.md#stop-the-manager-and-the-sidecar): " +
		"its orphan collector deletes the server; " +
		"then write stackit://<projectId>/<serverId> into the Machine's spec.providerID"
	remedySeveral = "write the ProviderID of the right server into the Machine's spec.providerID: " +
		"the driver does not choose between several"
)

// serverNotes returns the notes about a server.
func (s *observation) serverNotes(v *serverView) []Note {
	notes := s.strangerNotes(v)
	if v.owner != nil {
		notes = slices.Concat(duplicateNotes(v), anothersNotes(v), listedNotes(v))
	}
	if v.ErrorMessage != "" {
		notes = append(notes, Note{Kind: NoteFault, Reason: report.OneLine(v.ErrorMessage)})
	}
	return notes
}

// strangerNotes returns notes about a server that no Machine owns.
func (s *observation) strangerNotes(v *serverView) []Note {
	switch {
	case v.whose == account.OfMachine:
		machine := v.named[0]
		return []Note{{Kind: NoteAnothers, About: anothersLabel(machine, v.Server), Remedy: remedyLabel,
			Reason: fmt.Sprintf("Machine %s/%s names it, but belongs to another cluster, class or project",
				machine.Namespace, machine.Name)}}
	case v.whose == account.Orphan && v.IsDeleting():
		return []Note{{Kind: NoteOrphan, About: "being deleted", Reason: "no Machine of any namespace names it",
			Remedy: remedyDeleting}}
	case v.whose == account.Orphan:
		return []Note{{Kind: NoteOrphan, Reason: "no Machine of any namespace names it", Remedy: s.remedyOrphan(v)}}
	case s.query.Server != "" && (v.whose == account.Unmanaged || v.whose == account.OtherCluster && s.classesRead):
		return []Note{{Kind: NoteStranger, Reason: string(v.whose)}}
	default: // shown because not all classes or Machines are known
		return []Note{{Kind: NoteUnknown, Reason: "whether a Machine names it is unknown"}}
	}
}

// remedyOrphan returns the remedy for an orphan. The user must first look for its Machine: after a restore that lacks
// some Machines, the servers of running Nodes look like orphans.
func (s *observation) remedyOrphan(v *serverView) string {
	cluster := account.ClusterOf(v.Server, s.clusters)
	hasMachine := func(other *serverView) bool { return other.owner != nil && account.Carries(other.Labels, cluster) }
	if !slices.ContainsFunc(s.serverViews, hasMachine) {
		return remedyRestore
	}
	remedy, collected := account.RemedyOrphan(v.Server)
	if !collected {
		return remedy
	}
	// The manager searches the servers of each class that it has.
	namespace, class := s.Namespace, v.Labels[provider.StackitMachineClassLabel]
	hasClass := !s.classesRead
	for _, known := range s.classes {
		if account.Carries(v.Labels, known.Inputs.ClusterLabels) && !known.IsForeign() {
			namespace = known.Namespace
			if known.Name == class {
				hasClass = true
				break
			}
		}
	}
	deletion := s.Program + s.KubectlFlags + " -n " + namespace + " delete server ID --target-kubeconfig FILE"
	if !hasClass {
		return fmt.Sprintf("the manager does not look for it without MachineClass %s "+
			"(kubernetes/runbooks.md#stackitorphanservers); or: %s", class, deletion)
	}
	return remedyLost + remedy + " If it is scaled to 0: " + deletion
}

// duplicateNotes returns a note if a server is a surplus server of its Machine.
func duplicateNotes(v *serverView) []Note {
	machine := v.owner
	first := machine.servers[0]
	reason := ""
	switch {
	case v.byID, v.IsDeleting():
	case machine.namesInAnotherForm(v):
		return []Note{listedOtherwise(v)}
	case machine.Spec.ProviderID != "":
		reason = fmt.Sprintf("the server of Machine %s/%s is %s", machine.Namespace, machine.Name,
			lastSegment(machine.Spec.ProviderID))
	case first != v:
		reason = fmt.Sprintf("Machine %s/%s has another server, %s, and needs only one", machine.Namespace, machine.Name,
			first.ID)
	}
	if reason == "" {
		return nil
	}
	remedy, _ := account.RemedyOrphan(v.Server)
	if !account.IsManaged(v.Server) {
		remedy = remedySeveral // the driver does not list it
	}
	return []Note{{Kind: NoteDuplicate, Reason: reason, Remedy: remedy}}
}

// anothersNotes returns a note if the driver's ownership check refuses the server that a ProviderID names.
func anothersNotes(v *serverView) []Note {
	var refused *provider.Error
	if !v.byID || !errors.As(v.owner.checkOwned(v.Server, true), &refused) {
		return nil
	}
	return []Note{{Kind: NoteAnothers, About: refused.Label, Reason: report.OneLine(refused.Text), Remedy: remedyLabel}}
}

// anothersLabel returns the label that shows that a server does not belong to a Machine that names it.
func anothersLabel(machine *machineView, server *provider.Server) string {
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

// listedNotes returns a note if the manager takes a Machine's server for an orphan: it compares the ProviderIDs of the
// Machine and of the driver's list as strings.
func listedNotes(v *serverView) []Note {
	if !v.byID || v.IsDeleting() || !account.IsManaged(v.Server) ||
		v.owner.Spec.ProviderID == providerid.Format(v.at.project, v.ID) {
		return nil
	}
	return []Note{listedOtherwise(v)}
}

func listedOtherwise(v *serverView) Note {
	return Note{Kind: NoteListedOtherwise, Remedy: remedyOtherwise,
		Reason: fmt.Sprintf("the Machine's ProviderID is %s, but for this server the driver lists %s",
			report.OneLine(v.owner.Spec.ProviderID), providerid.Format(v.at.project, v.ID)),
		Cause: "the manager compares ProviderIDs as texts: it deletes this running server as an orphan"}
}

// machineNotes returns the notes about a Machine and about the servers that it names.
func (s *observation) machineNotes(machine *machineView) []Note {
	notes := slices.Concat(s.stuckNotes(machine), s.neverJoinedNotes(machine))
	if missing := s.missingServer(machine); missing != nil {
		notes = append(notes, *missing)
	}
	if machine.class == nil && s.classesRead {
		notes = append(notes, Note{Kind: NoteClassDeleted, Remedy: remedyLostClass,
			Reason: fmt.Sprintf("MachineClass %s/%s does not exist", machine.Namespace, machine.Spec.Class.Name)})
	}
	if machine.class != nil && machine.class.IsForeign() {
		notes = append(notes, Note{Kind: NoteClassForeign,
			Reason: fmt.Sprintf("MachineClass %s belongs to provider %q: STACKIT's sidecar ignores it",
				machine.class.Name, machine.class.Provider)})
	}
	if server, at := machine.server(), s.placeOf(machine); server != nil && at != nil && at != server.at {
		notes = append(notes, Note{Kind: NoteElsewhere, Remedy: remedyElsewhere,
			Reason: fmt.Sprintf("server %s is in %v, but class or Secret now name %v", server.ID, server.at, at)})
	}
	if machine.class != nil && s.secretless[machine.class.Subject()] != "" {
		notes = append(notes,
			Note{Kind: NoteSecretMissing, Reason: s.secretless[machine.class.Subject()], Remedy: remedyNoSecret})
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
	if phase == "" && last.Description == "" {
		if len(machine.servers) > 0 || machine.DeletionTimestamp != nil ||
			s.now.Sub(machine.CreationTimestamp.Time) < maxSilence {
			return nil
		}
		return []Note{stuckNote("nothing at all",
			"the manager has not reported anything since the Machine was created", silent)}
	}
	if last.State != v1alpha1.MachineStateFailed || phase == v1alpha1.MachineRunning ||
		phase == v1alpha1.MachineAvailable {
		return nil
	}
	// The manager writes code and text in brackets (v0.62.1 machinecodes/status/status.go).
	failure, decoded := status.FromError(errors.New(last.Description))
	if !decoded {
		return []Note{stuckNote(cmp.Or(last.ErrorCode, codes.Unknown.String()), last.Description, "")}
	}
	text := failure.Message()
	reason := string(provider.ReasonIn(text))
	return []Note{stuckNote(cmp.Or(reason, failure.Code().String()), text, reason)}
}

// stuckNote fills in cause and remedy from the runbooks' row. Texts of the manager itself, and of driver versions
// without reasons, have no row.
func stuckNote(about, text, row string) Note {
	found := remedies()[row]
	return Note{Kind: NoteStuck, About: about, Reason: report.OneLine(text), Cause: found.cause, Remedy: found.remedy}
}

// neverJoinedNotes returns a note if the Machine's server has run for so long that its Node should exist.
func (s *observation) neverJoinedNotes(machine *machineView) []Note {
	server := machine.server()
	if server == nil || !server.IsActive() || server.CreatedAt.IsZero() || machine.DeletionTimestamp != nil ||
		s.readiness(machine) != NeverJoined || s.now.Sub(server.CreatedAt) < joinTimeout {
		return nil
	}
	if !validation.IsUUID(server.ID) {
		return nil // its ID must not go into a printed command
	}
	return []Note{{
		Kind: NoteNeverJoined,
		Reason: fmt.Sprintf("server ACTIVE, %s old, no Node",
			duration.HumanDuration(s.now.Sub(server.CreatedAt).Truncate(time.Minute))),
		Remedy: fmt.Sprintf("its console log shows whether user data ran, the network reaches the API server, "+
			"the bootstrap token is valid and the kubelet runs: stackit server log %s --project-id %s --region %s",
			server.ID, server.at.project, server.at.region),
	}}
}

// missingServer returns why a Machine has no server; nil if it has one or does not need one yet.
func (s *observation) missingServer(machine *machineView) *Note {
	server, at := machine.server(), s.placeOf(machine)
	id, err := "", error(nil)
	if at != nil {
		id, err = providerid.Parse(machine.Spec.ProviderID, at.project)
	}
	switch {
	case machine.DeletionTimestamp != nil, server != nil && !server.IsDeleting(), machine.mayWaitForServer():
		return nil
	case server != nil:
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is %s", server.ID, server.Status),
			Remedy: remedyNoServer}
	case at == nil || at.partial:
		return &Note{Kind: NoteUnknown, Reason: "not all servers of its project and region were read"}
	case len(at.servers) == 0: // the API may return an empty list for a while
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("the API shows no server at all in %v", at)}
	case machine.Spec.ProviderID == "":
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("it has no ProviderID, and no server in %v has its name", at),
			Remedy: remedyNoServer}
	case err != nil && slices.ContainsFunc(machine.servers, machine.namesInAnotherForm): // the server's note says it
		return nil
	case err != nil:
		return &Note{Kind: NoteNoServer, Reason: report.OneLine(err.Error()), Remedy: remedyProviderID}
	case s.ownerOf(id) != nil:
		return &Note{Kind: NoteAnothersServer, Remedy: "correct the Machine's spec.providerID",
			Reason: fmt.Sprintf("server %s belongs to Machine %s/%s", id, s.ownerOf(id).Namespace, s.ownerOf(id).Name)}
	case !slices.Contains(at.gone, id):
		return &Note{Kind: NoteUnknown,
			Reason: fmt.Sprintf("the list of %v lacks server %s, and it could not be read by its ID", at, id)}
	case slices.Contains([]Readiness{Ready, WasReady}, s.readiness(machine)): // in a migration, the Secret is new
		return &Note{Kind: NoteUnknown, Reason: fmt.Sprintf("server %s is not in %v, "+
			"but the manager last saw its Node Ready: is the Secret's project the right one?", id, at)}
	default:
		return &Note{Kind: NoteNoServer, Reason: fmt.Sprintf("server %s is not in %v", id, at), Remedy: remedyNoServer}
	}
}

// ownerOf returns the Machine whose server has the ID; nil if none was seen.
func (s *observation) ownerOf(id string) *machineView {
	for _, server := range s.serverViews {
		if server.ID == id {
			return server.owner
		}
	}
	return nil
}

// remedy is a row of the table of kubernetes/runbooks.md, "When a Machine does not come up".
type remedy struct{ cause, remedy string }

// silent is the row for a Machine about which the manager reports nothing.
const silent = "nothing at all, phase empty"

// pageLink matches a link of the page, relative to its folder.
var pageLink = regexp.MustCompile(`\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)`)

// remedies returns the rows of the table as plain text, by the driver's reason.
var remedies = sync.OnceValue(func() map[string]remedy {
	_, table, _ := strings.Cut(kubernetes.Runbooks, "| Reason | Code | Cause | Remedy |\n|---|---|---|---|\n")
	rows := map[string]remedy{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(pageLink.ReplaceAllString(line, "$1 ($2)"), "`", ""), "|")
		if len(cells) != 6 {
			break
		}
		rows[strings.TrimSpace(cells[1])] = remedy{strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])}
	}
	return rows
})

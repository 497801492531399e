// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package list joins servers with the Machines they belong to, and says what is wrong with
// them.
package list

import (
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// APIVersion is that of the kinds Machine and Server in JSON and YAML.
const APIVersion = "mcm-stackit/v1"

// Unknown stands for a value that was not read, such as the state of a server.
const Unknown = "unknown"

// Machine is a Machine with its servers. Its metadata are the Machine's name, namespace and
// creation time.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Class string `json:"class"`
	// Cluster is the cluster label of its class as key=value; "" if it has none, or it is not
	// known.
	Cluster string `json:"cluster,omitempty"`
	// Owner is what made it: MachineSet worker-74cdf; "" if nothing did.
	Owner string `json:"owner,omitempty"`
	// Phase is "" before the manager has set one. PhaseSince is when it last wrote it.
	Phase      string      `json:"phase"`
	PhaseSince metav1.Time `json:"phaseSince,omitzero"`
	ProviderID string      `json:"providerID,omitempty"`
	Node       string      `json:"node,omitempty"`
	Ready      Readiness   `json:"ready"`
	// Server is the ID of its server, or of the one that its ProviderID names. State is the
	// server's; "" if there is none, Unknown if that was not read.
	Server string `json:"server,omitempty"`
	State  string `json:"state,omitempty"`
	// LastOperation is nil before the manager has said anything.
	LastOperation *v1alpha1.LastOperation `json:"lastOperation,omitempty"`
	Notes         []Note                  `json:"notes,omitempty"`
	// Servers are the Machine's, the one that the driver uses first, and then those that it
	// names and that are not its own.
	Servers []*Server `json:"servers,omitempty"`
}

// Server is a server of a cluster that is checked, or of a Machine. Its metadata are its ID as
// the name, and its creation time.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	ServerName string `json:"name"`
	ProjectID  string `json:"projectId"`
	Region     string `json:"region"`
	// Cluster is the cluster label by which it is checked, as key=value, or else its own; "" if it has
	// none.
	Cluster string `json:"cluster,omitempty"`
	Class   string `json:"class,omitempty"`
	// Machine and MachineNamespace are of the Machine whose server it is. Without one,
	// MachineNamespace is "", and Machine is what the server's label says.
	Machine          string `json:"machine,omitempty"`
	MachineNamespace string `json:"machineNamespace,omitempty"`
	State            string `json:"state"`
	MachineType      string `json:"machineType"`
	Zone             string `json:"zone,omitempty"`
	Notes            []Note `json:"notes,omitempty"`
	// Addresses are those of its NICs, Unknown alone if they could not be read. They are read for a query about one
	// Machine or server, Console for one about a server.
	Addresses []string `json:"addresses,omitempty"`
	Console   *Console `json:"console,omitempty"`
}

// Console is what a server's console log explains, in the words of kubernetes/runbooks.md, and the lines that show it. Cause
// is "" if no pattern matches, Unknown if it could not be read.
type Console struct {
	Cause string   `json:"cause"`
	Lines []string `json:"lines,omitempty"`
}

// DeepCopyObject makes a Machine an object for the printers, which copy none.
func (m *Machine) DeepCopyObject() runtime.Object {
	same := *m
	return &same
}

// DeepCopyObject makes a Server an object for the printers, which copy none.
func (s *Server) DeepCopyObject() runtime.Object {
	same := *s
	return &same
}

// Result is what there is, and what is unknown.
type Result struct {
	// Time is when it was read.
	Time time.Time
	// Machines are those of the namespace or of all, sorted by namespace and name.
	Machines []*Machine
	// Servers are sorted by cluster, Machine and age.
	Servers []*Server
	// Clusters count what is shown, sorted by their label.
	Clusters []*Cluster
	// MachinesRead says that the clusters' numbers of Machines and ready ones are known, ServersRead that
	// those of servers are, OrphansRead that those of orphans are.
	MachinesRead, ServersRead, OrphansRead bool
	// Read says how many servers were read, by place: "project x in eu01".
	Read map[string]int
	// NotChecked counts the managed servers of clusters that nothing here names, by their label.
	NotChecked map[string]int
	// Stale says which readiness is old, and since when.
	Stale []string
	// Unknown says what could not be read, and why, each cause once.
	Unknown []string
}

// Cluster counts what belongs to a cluster label.
type Cluster struct {
	// Label is key=value; "" is of classes without one.
	Label string
	// Stale says that Ready is old.
	Stale                             bool
	Machines, Ready, Servers, Orphans int
}

// Readiness is what the manager last said of a Machine's Node.
type Readiness string

// The readinesses.
const (
	Ready       Readiness = "yes"
	NotReady    Readiness = "no"
	NeverJoined Readiness = "never joined"
	// NoNode is of a Machine that needs no Node, or does not have one yet.
	NoNode Readiness = ""
	// WasReady and WasNotReady are of Terminating Machines, and of those of a manager that
	// does not run.
	WasReady    Readiness = "was yes"
	WasNotReady Readiness = "was no"
)

// NoteKind is what a Note says.
type NoteKind string

// The notes.
const (
	// NoteStuck is a Machine whose last operation failed; About is the driver's reason, or the
	// manager's code where the text has no reason.
	NoteStuck NoteKind = "stuck"
	// NoteListedOtherwise is a Machine whose server the manager deletes as an orphan, because
	// the driver lists it by another ProviderID than the Machine's.
	NoteListedOtherwise NoteKind = "ProviderID in another form"
	// NoteOrphan is a server that account.WhoseIs calls an orphan.
	NoteOrphan NoteKind = "orphan"
	// NoteDuplicate is a second server of a Machine.
	NoteDuplicate NoteKind = "duplicate"
	// NoteAnothers is a server that a Machine names, and that is not its own by its labels.
	NoteAnothers NoteKind = "labels of another"
	// NoteAnothersServer is a Machine whose ProviderID names another Machine's server.
	NoteAnothersServer NoteKind = "server of another Machine"
	// NoteClassDeleted is a Machine whose class does not exist.
	NoteClassDeleted NoteKind = "class deleted"
	// NoteClassForeign is a Machine whose class is another provider's.
	NoteClassForeign NoteKind = "class of another provider"
	// NoteElsewhere is a Machine whose server is not where its class and Secret say.
	NoteElsewhere NoteKind = "in another project or region"
	// NoteSecretMissing is a Machine whose class's Secret does not exist.
	NoteSecretMissing NoteKind = "Secret missing"
	// NoteNoServer is a Machine whose server does not exist.
	NoteNoServer NoteKind = "no server"
	// NoteNeverJoined is a Machine whose server runs, and has not joined the target cluster in
	// time.
	NoteNeverJoined NoteKind = "no Node"
	// NoteStranger is a server that is none of the clusters' here.
	NoteStranger NoteKind = "not managed here"
	// NoteFault is a server in state ERROR.
	NoteFault NoteKind = "fault"
	// NoteUnknown is a server that may be an orphan, or a Machine of
	// which nobody knows whether it has a server.
	NoteUnknown NoteKind = Unknown
)

// Note is something worth knowing of a server or Machine.
type Note struct {
	Kind NoteKind `json:"kind"`
	// About is a part of some kinds, such as the reason why a Machine is stuck.
	About string `json:"about,omitempty"`
	// Reason is what was found, in one line.
	Reason string `json:"reason,omitempty"`
	// Cause is why it is so, if that is known.
	Cause string `json:"cause,omitempty"`
	// Remedy is what to do about it; "" if nothing is known.
	Remedy string `json:"remedy,omitempty"`
}

// String is the note in a few words.
func (n *Note) String() string {
	switch {
	case n.About == "":
		return string(n.Kind)
	case n.Kind == NoteStuck:
		return string(n.Kind) + ": " + n.About
	default:
		return string(n.Kind) + " " + n.About
	}
}

// IsHealthy says whether there is nothing to say of a Machine but that its Node is ready.
func (m *Machine) IsHealthy() bool {
	server, last := provider.Server{Status: m.State}, m.LastOperation
	return m.Ready == Ready && server.IsActive() && len(m.Notes) == 0 && (last == nil || last.State != v1alpha1.MachineStateFailed)
}

// IsOrphan says whether the server is an orphan.
func (s *Server) IsOrphan() bool { return hasNote(s.Notes, NoteOrphan) }

func hasNote(notes []Note, kind NoteKind) bool {
	return slices.ContainsFunc(notes, func(note Note) bool { return note.Kind == kind })
}

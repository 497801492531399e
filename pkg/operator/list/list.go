// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package list joins servers with the Machines they belong to, and reports what is wrong with them.
package list

import (
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// APIVersion is the API version of the kinds Machine and Server in JSON and YAML.
const APIVersion = "mcm-stackit/v1"

// Unknown stands for a value that was not read, such as the state of a server.
const Unknown = "unknown"

// Machine is a Machine with its servers. Its metadata hold the Machine's name, namespace and creation time.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Class string `json:"class"`
	// Cluster is the cluster label of its class as key=value; "" if there is none or it is unknown.
	Cluster string `json:"cluster,omitempty"`
	// Owner is the controller that created it, such as MachineSet worker-74cdf; "" if there is none.
	Owner string `json:"owner,omitempty"`
	// Phase is "" until the manager sets it. PhaseSince is when the manager last wrote it.
	Phase      string      `json:"phase"`
	PhaseSince metav1.Time `json:"phaseSince,omitzero"`
	ProviderID string      `json:"providerID,omitempty"`
	Node       string      `json:"node,omitempty"`
	Ready      Readiness   `json:"ready"`
	// Server is the ID of its server, or else the ID in its ProviderID. State is the server's state; "" without a server,
	// Unknown if the server was not read.
	Server string `json:"server,omitempty"`
	State  string `json:"state,omitempty"`
	// LastOperation is nil until the manager reports one.
	LastOperation *v1alpha1.LastOperation `json:"lastOperation,omitempty"`
	Notes         []Note                  `json:"notes,omitempty"`
	// Servers are the Machine's own servers, the server that the driver uses first, followed by servers that it names but
	// does not own.
	Servers []*Server `json:"servers,omitempty"`
}

// Server is a server of a checked cluster, or of a Machine. Its metadata hold its ID as the name, and its creation
// time.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	ServerName string `json:"name"`
	ProjectID  string `json:"projectId"`
	Region     string `json:"region"`
	// Cluster is the checked cluster label that it matches, as key=value, or else its own cluster label; "" if it has
	// none.
	Cluster string `json:"cluster,omitempty"`
	Class   string `json:"class,omitempty"`
	// Machine and MachineNamespace name the Machine that owns the server. Without an owner, MachineNamespace is "" and
	// Machine is the value of the server's label.
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

// Console is what a server's console log explains, in the words of kubernetes/runbooks.md, and the lines that show it.
// Cause is "" if no pattern matches, Unknown if it could not be read.
type Console struct {
	Cause string   `json:"cause"`
	Lines []string `json:"lines,omitempty"`
}

// DeepCopyObject makes a Machine a runtime.Object for the printers. The copy is shallow: printers make no copies.
func (m *Machine) DeepCopyObject() runtime.Object {
	same := *m
	return &same
}

// DeepCopyObject makes a Server a runtime.Object for the printers. The copy is shallow: printers make no copies.
func (s *Server) DeepCopyObject() runtime.Object {
	same := *s
	return &same
}

// Result is the result of Read.
type Result struct {
	// Time is when the data was read.
	Time time.Time
	// Machines are the Machines of the namespace or of all namespaces, sorted by namespace and name.
	Machines []*Machine
	// Servers are sorted by cluster, Machine and age.
	Servers []*Server
	// Clusters are counts of the shown objects, sorted by label.
	Clusters []*Cluster
	// MachinesRead, ServersRead and OrphansRead mean that the clusters' counts of Machines (also ready ones), servers and
	// orphans are complete.
	MachinesRead, ServersRead, OrphansRead bool
	// Read is the number of servers read, by place: "project x in eu01".
	Read map[string]int
	// NotChecked counts the managed servers of clusters that no class here names, by cluster label.
	NotChecked map[string]int
	// Stale lists which readiness is out of date, and for how long.
	Stale []string
	// Unknown lists what could not be read, and why, each cause once.
	Unknown []string
}

// Cluster counts the objects of one cluster label.
type Cluster struct {
	// Label is key=value; "" stands for classes without a cluster label.
	Label string
	// Stale means that Ready is out of date.
	Stale                             bool
	Machines, Ready, Servers, Orphans int
}

// Readiness is what the manager last reported about a Machine's Node.
type Readiness string

// The values of Readiness.
const (
	Ready       Readiness = "yes"
	NotReady    Readiness = "no"
	NeverJoined Readiness = "never joined"
	// NoNode is for a Machine that needs no Node, or does not have one yet.
	NoNode Readiness = ""
	// WasReady and WasNotReady are for Terminating Machines, and for Machines whose manager is not running.
	WasReady    Readiness = "was yes"
	WasNotReady Readiness = "was no"
)

// NoteKind is the kind of a Note.
type NoteKind string

// The kinds of notes.
const (
	// NoteStuck is a Machine whose last operation failed. About is the driver's reason, or the manager's code if the text
	// has no reason.
	NoteStuck NoteKind = "stuck"
	// NoteListedOtherwise is a Machine whose server the manager will delete as an orphan, because the driver lists it with
	// a ProviderID that differs from the Machine's.
	NoteListedOtherwise NoteKind = "ProviderID in another form"
	// NoteOrphan is a server that account.WhoseIs calls an orphan.
	NoteOrphan NoteKind = "orphan"
	// NoteDuplicate is a second server of a Machine.
	NoteDuplicate NoteKind = "duplicate"
	// NoteAnothers is a server that a Machine names but, by its labels, does not own.
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
	// NoteNeverJoined is a Machine whose server runs, but did not join the target cluster in time.
	NoteNeverJoined NoteKind = "no Node"
	// NoteStranger is a server that belongs to none of the clusters here.
	NoteStranger NoteKind = "not managed here"
	// NoteFault is a server in state ERROR.
	NoteFault NoteKind = "fault"
	// NoteUnknown is a server that may be an orphan, or a Machine that may or may not have a server.
	NoteUnknown NoteKind = Unknown
)

// Note is a remark about a server or Machine.
type Note struct {
	Kind NoteKind `json:"kind"`
	// About is a detail of some kinds, such as the reason why a Machine is stuck.
	About string `json:"about,omitempty"`
	// Reason is what was found, in one line.
	Reason string `json:"reason,omitempty"`
	// Cause is the cause; "" if unknown.
	Cause string `json:"cause,omitempty"`
	// Remedy is what to do about it; "" if unknown.
	Remedy string `json:"remedy,omitempty"`
}

// String returns the note in a few words.
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

// IsHealthy reports whether a Machine has a running server, a ready Node and no notes.
func (m *Machine) IsHealthy() bool {
	server, last := provider.Server{Status: m.State}, m.LastOperation
	return m.Ready == Ready && server.IsActive() && len(m.Notes) == 0 &&
		(last == nil || last.State != v1alpha1.MachineStateFailed)
}

// IsOrphan reports whether the server is an orphan.
func (s *Server) IsOrphan() bool { return hasNote(s.Notes, NoteOrphan) }

func hasNote(notes []Note, kind NoteKind) bool {
	return slices.ContainsFunc(notes, func(note Note) bool { return note.Kind == kind })
}

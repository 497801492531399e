// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package list joins servers with the Machines they belong to, and reports the problems of both.
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

// Unknown replaces a value that could not be read, such as the state of a server.
const Unknown = "unknown"

// Machine is a Machine with its servers. Its metadata holds the Machine's name, namespace and
// creation time.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Class string `json:"class"`
	// Cluster is the cluster label of the Machine's class as key=value; "" if there is none or it
	// is unknown.
	Cluster string `json:"cluster,omitempty"`
	// Owner is the controller that created the Machine, such as MachineSet worker-74cdf; "" if
	// there is none.
	Owner string `json:"owner,omitempty"`
	// Phase is the Machine's phase; "" until the manager sets it. PhaseSince is when the manager
	// last wrote the phase.
	Phase      string      `json:"phase"`
	PhaseSince metav1.Time `json:"phaseSince,omitzero"`
	ProviderID string      `json:"providerID,omitempty"`
	Node       string      `json:"node,omitempty"`
	Ready      Readiness   `json:"ready"`
	// Server is the ID of the Machine's server or, if none was found, the ID in the ProviderID.
	// State is the server's state; "" without a server, Unknown if the server was not read.
	Server string `json:"server,omitempty"`
	State  string `json:"state,omitempty"`
	// LastOperation is the last operation that the manager reported; nil if there is none.
	LastOperation *v1alpha1.LastOperation `json:"lastOperation,omitempty"`
	Notes         []Note                  `json:"notes,omitempty"`
	// Servers are the Machine's own servers, with the server that the driver uses at the start,
	// followed by servers that the Machine names but does not own.
	Servers []*Server `json:"servers,omitempty"`
}

// Server is a server of a checked cluster, or of a Machine. Its metadata holds its ID as the name,
// and its creation time.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	ServerName string `json:"name"`
	ProjectID  string `json:"projectId"`
	Region     string `json:"region"`
	// Cluster is the cluster label of the owner's class, else the checked cluster label that the
	// server matches, else the server's own, as key=value; "" if there is none.
	Cluster string `json:"cluster,omitempty"`
	Class   string `json:"class,omitempty"`
	// Machine and MachineNamespace name the Machine that owns the server. Without an owner, MachineNamespace is "" and
	// Machine is the value of the server's machine label.
	Machine          string `json:"machine,omitempty"`
	MachineNamespace string `json:"machineNamespace,omitempty"`
	State            string `json:"state"`
	MachineType      string `json:"machineType"`
	Zone             string `json:"zone,omitempty"`
	Notes            []Note `json:"notes,omitempty"`
	// Addresses are the IP addresses of the server's NICs, or the single element Unknown if they could
	// not be read; nil unless the query is about one Machine or server.
	Addresses []string `json:"addresses,omitempty"`
	// ConsoleLog has the last 50 lines of the server's console log, or the single element Unknown if they
	// could not be read; nil unless the query is about one server.
	ConsoleLog []string `json:"consoleLog,omitempty"`
}

// DeepCopyObject implements runtime.Object, which the printers require of a Machine. The copy is
// shallow: printers do not copy.
func (m *Machine) DeepCopyObject() runtime.Object {
	same := *m
	return &same
}

// DeepCopyObject implements runtime.Object, which the printers require of a Server. The copy is
// shallow: printers do not copy.
func (s *Server) DeepCopyObject() runtime.Object {
	same := *s
	return &same
}

// Result holds the Machines and servers that a Query selects, and what could not be read.
type Result struct {
	// Time is when Read began.
	Time time.Time
	// Machines are the Machines of the query, sorted by namespace and name.
	Machines []*Machine
	// Servers are the servers of the query, sorted by cluster, Machine and time of
	// creation, oldest first.
	Servers []*Server
	// Clusters counts the shown objects by cluster, sorted by label.
	Clusters []*Cluster
	// MachinesRead, ServersRead and OrphansRead mean that the clusters' counts of Machines and
	// ready Machines, of servers and of orphans are complete.
	MachinesRead, ServersRead, OrphansRead bool
	// Read is the number of servers read, by project and region: "project x in eu01".
	Read map[string]int
	// NotChecked counts, by cluster label, the managed servers of clusters that no MachineClass of the
	// query's namespaces names; empty if the query selects a cluster, a Machine or a server.
	NotChecked map[string]int
	// Stale has a sentence for each namespace whose readiness is out of date, which says for how long.
	Stale []string
	// Unknown has a line for each cause why data could not be read, with the data: "servers unknown: …".
	Unknown []string
}

// Cluster counts the Machines, servers and orphans of one cluster label.
type Cluster struct {
	// Label is the cluster label as key=value; "" stands for classes without a cluster label.
	Label string
	// Stale means that Ready is out of date.
	Stale                             bool
	Machines, Ready, Servers, Orphans int
}

// Readiness is the state of a Machine's Node that the manager last reported.
type Readiness string

// The values of Readiness.
const (
	Ready       Readiness = "yes"
	NotReady    Readiness = "no"
	NeverJoined Readiness = "never joined"
	// NoNode means that the Machine needs no Node, or does not have one yet.
	NoNode Readiness = ""
	// WasReady and WasNotReady mean that the state may be out of date: the Machine is Terminating,
	// or its manager is not running.
	WasReady    Readiness = "was yes"
	WasNotReady Readiness = "was no"
)

// NoteKind is the kind of a Note.
type NoteKind string

// The kinds of notes.
const (
	// NoteStuck marks a Machine whose last operation failed, or about which the manager has reported
	// nothing for 10 minutes after its creation. About is the driver's reason, else the manager's code.
	NoteStuck NoteKind = "stuck"
	// NoteListedOtherwise marks a Machine whose server the manager will delete as an orphan: the
	// driver lists the server with a ProviderID that differs from the Machine's.
	NoteListedOtherwise NoteKind = "ProviderID in another form"
	// NoteOrphan marks a server that is an orphan according to account.WhoseIs.
	NoteOrphan NoteKind = "orphan"
	// NoteDuplicate marks a surplus server of a Machine, which needs only one.
	NoteDuplicate NoteKind = "duplicate"
	// NoteAnothers marks a server that a Machine names but, by the server's labels, does not own.
	NoteAnothers NoteKind = "labels of another"
	// NoteAnothersServer marks a Machine whose ProviderID names another Machine's server.
	NoteAnothersServer NoteKind = "server of another Machine"
	// NoteClassDeleted marks a Machine whose class does not exist.
	NoteClassDeleted NoteKind = "class deleted"
	// NoteClassForeign marks a Machine whose class belongs to another provider.
	NoteClassForeign NoteKind = "class of another provider"
	// NoteElsewhere marks a Machine whose server is not in the project and region of its class and
	// Secret.
	NoteElsewhere NoteKind = "in another project or region"
	// NoteSecretMissing marks a Machine whose class refers to a Secret that does not exist.
	NoteSecretMissing NoteKind = "Secret missing"
	// NoteNoServer marks a Machine whose server does not exist or is being deleted.
	NoteNoServer NoteKind = "no server"
	// NoteNeverJoined marks a Machine whose server is ACTIVE and at least 5 minutes old, but whose Node
	// never joined the target cluster.
	NoteNeverJoined NoteKind = "no Node"
	// NoteStranger marks a server that lacks one of the driver's labels or belongs to none of the
	// checked clusters. Only a query about one server shows it.
	NoteStranger NoteKind = "not managed here"
	// NoteFault marks a server in state ERROR.
	NoteFault NoteKind = "fault"
	// NoteUnknown marks a server that may be an orphan, or a Machine for which it is unknown
	// whether it has a server.
	NoteUnknown NoteKind = Unknown
)

// Note is a remark about a server or Machine.
type Note struct {
	Kind NoteKind `json:"kind"`
	// About is a detail that some kinds have, such as the reason why a Machine is stuck.
	About string `json:"about,omitempty"`
	// Reason describes in one line what was found.
	Reason string `json:"reason,omitempty"`
	// Cause is the probable cause; "" if unknown.
	Cause string `json:"cause,omitempty"`
	// Remedy describes how to fix the cause; "" if unknown.
	Remedy string `json:"remedy,omitempty"`
}

// String returns the note in a few words, for a table cell.
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

// IsHealthy reports whether a Machine has a running server, a ready Node and no notes, and its last
// operation did not fail.
func (m *Machine) IsHealthy() bool {
	server, last := provider.Server{Status: m.State}, m.LastOperation
	return m.Ready == Ready && server.IsActive() && len(m.Notes) == 0 &&
		(last == nil || last.State != v1alpha1.MachineStateFailed)
}

// IsOrphan reports whether the server has a note of the kind NoteOrphan.
func (s *Server) IsOrphan() bool { return hasNote(s.Notes, NoteOrphan) }

func hasNote(notes []Note, kind NoteKind) bool {
	return slices.ContainsFunc(notes, func(note Note) bool { return note.Kind == kind })
}

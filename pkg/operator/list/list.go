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

// Machine is a Machine with its servers. Its metadata holds name, namespace and creation time.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Class string `json:"class"`
	// Cluster is the cluster label of the Machine's class as key=value; "" if there is none or it is unknown.
	Cluster    string    `json:"cluster,omitempty"`
	Phase      string    `json:"phase"`
	ProviderID string    `json:"providerID,omitempty"`
	Node       string    `json:"node,omitempty"`
	Ready      Readiness `json:"ready"`
	// Server is the ID of the Machine's server or, if none was found, the ID in the ProviderID.
	// State is the server's state; "" without a server, Unknown if the server was not read.
	Server        string                  `json:"server,omitempty"`
	State         string                  `json:"state,omitempty"`
	LastOperation *v1alpha1.LastOperation `json:"lastOperation,omitempty"`
	Notes         []Note                  `json:"notes,omitempty"`
	// Servers are the servers that the Machine names, with the server that the driver uses at the start.
	Servers []*Server `json:"servers,omitempty"`
}

// Server is a server. Its metadata holds its ID as the name, its creation time and its labels.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	ServerName string `json:"name"`
	ProjectID  string `json:"projectId"`
	Region     string `json:"region"`
	// Cluster is the server's cluster label as key=value, several separated by commas; "" if there is none.
	Cluster string `json:"cluster,omitempty"`
	Class   string `json:"class,omitempty"`
	// Machine and MachineNamespace name the server's owner; without one, Machine is the value of the machine label.
	Machine          string `json:"machine,omitempty"`
	MachineNamespace string `json:"machineNamespace,omitempty"`
	State            string `json:"state"`
	MachineType      string `json:"machineType"`
	Zone             string `json:"zone,omitempty"`
	Notes            []Note `json:"notes,omitempty"`
	// Addresses are the IP addresses of the server's NICs, or Unknown; only of a query about one Machine or server.
	Addresses []string `json:"addresses,omitempty"`
	// ConsoleLog has the last 50 lines of the console log, or Unknown; only of a query about one server.
	ConsoleLog []string `json:"consoleLog,omitempty"`
}

// DeepCopyObject implements runtime.Object for the printers. The copy is shallow: printers do not copy.
func (m *Machine) DeepCopyObject() runtime.Object {
	same := *m
	return &same
}

// DeepCopyObject implements runtime.Object for the printers. The copy is shallow: printers do not copy.
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
	// Servers are the servers of the query, sorted by cluster, Machine and time of creation.
	Servers []*Server
	// Facts are sentences about what the tables do not show, such as the servers of other clusters.
	Facts []string
	// Unknown has a line for each cause why data could not be read, with the data: "servers unknown: …".
	Unknown []string
}

// Readiness is the state of a Machine's Node that the manager last reported.
type Readiness string

// The values of Readiness.
const (
	Ready    Readiness = "yes"
	NotReady Readiness = "no"
	// Booting means that no Node has joined, and that the Machine is younger than its creation timeout.
	Booting     Readiness = "booting"
	NeverJoined Readiness = "never joined"
	// NoNode means that the Machine needs no Node, or does not have one yet.
	NoNode Readiness = ""
)

// NoteKind is the kind of a Note.
type NoteKind string

// The kinds of notes.
const (
	// NoteStuck marks a Machine whose last operation failed, or about which the manager reports nothing. About is the
	// driver's reason, else the manager's code.
	NoteStuck NoteKind = "stuck"
	// NoteStuckDeletion is NoteStuck about a Machine that is being deleted.
	NoteStuckDeletion NoteKind = "stuck deletion"
	// NoteListedOtherwise marks a Machine whose server the manager will delete as an orphan: the
	// driver lists the server with a ProviderID that differs from the Machine's.
	NoteListedOtherwise NoteKind = "ProviderID in another form"
	// NoteOrphan marks a server with the labels of the driver and of a cluster, and without a Machine.
	NoteOrphan NoteKind = "orphan"
	// NoteDuplicate marks a surplus server of a Machine, which needs only one.
	NoteDuplicate NoteKind = "duplicate"
	// NoteAnothers marks a server that a Machine names but, by the server's labels, does not own.
	NoteAnothers NoteKind = "labels of another"
	// NoteMissing marks a Machine whose class does not exist.
	NoteMissing NoteKind = "class missing"
	// NoteNoServer marks a Machine whose server does not exist.
	NoteNoServer NoteKind = "no server"
	// NoteStranger marks a server of a query that lacks one of the driver's labels or belongs to no checked cluster.
	NoteStranger NoteKind = "not managed here"
	// NoteFault marks a server in state ERROR.
	NoteFault NoteKind = "fault"
	// NoteUnknown marks a server that may be an orphan, or a Machine that may have a server.
	NoteUnknown NoteKind = Unknown
)

// Note is a fact about a server or Machine that needs somebody.
type Note struct {
	Kind NoteKind `json:"kind"`
	// About is a detail that some kinds have, such as the reason why a Machine is stuck.
	About string `json:"about,omitempty"`
	// Reason describes in one line what was found.
	Reason string `json:"reason,omitempty"`
	// Cause and Remedy are those of the runbook's row for the driver's reason, or Remedy names the runbook's section.
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// String returns the note in a few words, for a table cell.
func (n *Note) String() string {
	if n.About == "" {
		return string(n.Kind)
	}
	return string(n.Kind) + ": " + n.About
}

// IsHealthy reports whether a Machine has a running server, a ready Node, no notes, and no failed operation.
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

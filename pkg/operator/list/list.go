// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package list joins the servers of accounts with the Machines and Nodes that they
// belong to, and says what is wrong with them.
package list

import (
	"slices"
	"time"
)

// Inventory is what exists at one moment: the servers of the accounts, and the Machines and
// Nodes that belong to them. Its JSON has stable names.
type Inventory struct {
	// Time is when it was read.
	Time time.Time `json:"time"`
	// Servers are sorted by cluster, class and machine.
	Servers []ServerEntry `json:"servers,omitzero"`
	// Machines are those of the Namespace or of all, and those of others that have one of the
	// servers, sorted by namespace and name.
	Machines []MachineEntry `json:"machines,omitzero"`
	// Attachables are the NICs and volumes of Machines that came from OpenStack, and those of a
	// cluster here that no server or Machine has, sorted by name and kind.
	Attachables []AttachableEntry `json:"attachables,omitzero"`
	// Clusters are sorted by their label.
	Clusters []ClusterEntry `json:"clusters,omitzero"`
	// Totals count what was read of what the query is about.
	Totals Totals `json:"totals"`
	// Unread are the parts that could not be read: what depends on them is unknown.
	Unread []Unread `json:"unread,omitempty"`
}

// ServerEntry is a server of an Inventory.
type ServerEntry struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"projectId"`
	Region  string `json:"region"`
	// Cluster is the server's cluster label as key=value; "" if it has none.
	Cluster string `json:"cluster,omitempty"`
	// Class and Machine are what the server's labels say.
	Class   string `json:"class,omitempty"`
	Machine string `json:"machine,omitempty"`
	// Namespace is that of the Machine whose server it is; "" if there is none.
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	// Fault is the API's errorMessage.
	Fault       string    `json:"fault,omitempty"`
	CreatedAt   time.Time `json:"createdAt,omitzero"`
	MachineType string    `json:"machineType"`
	Zone        string    `json:"zone,omitempty"`
	// Addresses are IPv4 and IPv6; null if they are not known or were not asked for.
	Addresses []string `json:"addresses"`
	// Node is the name of its Node; "" if there is none, or it is not known.
	Node      string    `json:"node,omitempty"`
	Readiness Readiness `json:"readiness,omitempty"`
	Notes     []Note    `json:"notes,omitempty"`
}

// MachineEntry is a Machine of an Inventory.
type MachineEntry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Project and Region are its server's; "" if they are not known.
	Project string `json:"projectId,omitempty"`
	Region  string `json:"region,omitempty"`
	// Cluster is the cluster label of its class as key=value; "" if it has none, or it is
	// not known.
	Cluster string `json:"cluster,omitempty"`
	Class   string `json:"class"`
	// Phase is the Machine's; "" before the manager has set one.
	Phase      string `json:"phase"`
	ProviderID string `json:"providerID,omitempty"`
	// Server is the ID of its server, or of the one that its ProviderID names. State is the
	// server's; "" if there is none, "unknown" if it was not read.
	Server    string    `json:"server,omitempty"`
	State     string    `json:"state,omitempty"`
	Node      string    `json:"node,omitempty"`
	Readiness Readiness `json:"readiness,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Drift is where the server is not what the class asks for now, or cannot be compared.
	Drift []Drift `json:"drift,omitempty"`
	Notes []Note  `json:"notes,omitempty"`
}

// AttachableEntry is a NIC or volume of an Inventory.
type AttachableEntry struct {
	// Kind is "NIC" or "volume".
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"projectId"`
	Region  string `json:"region"`
	// Network is a NIC's.
	Network string `json:"networkId,omitempty"`
	// Server is the ID of the server that has it; "" for none.
	Server string `json:"server,omitempty"`
	// Namespace is that of the Machine with which the driver deletes it; "" if there is none.
	Namespace string `json:"namespace,omitempty"`
	Notes     []Note `json:"notes,omitempty"`
}

// Drift is a field of the providerSpec in which a server differs from its class. What is not
// known is StateUnknown: as a rule the API shows no image of a server with a boot volume.
type Drift struct {
	Field  string `json:"field"`
	Server string `json:"server"`
	Class  string `json:"class"`
}

// String says what the server has, and what the class asks for.
func (d Drift) String() string {
	if d.Server == StateUnknown || d.Class == StateUnknown {
		return d.Field + " " + StateUnknown
	}
	return d.Field + " " + d.Server + ", not " + d.Class
}

// ClusterEntry counts what belongs to a cluster label. A number that is not known is
// missing.
type ClusterEntry struct {
	// Cluster is the label as key=value; "" is of servers and classes without one.
	Cluster string `json:"cluster"`
	// Projects are those of its servers, sorted.
	Projects []string `json:"projectIds,omitempty"`
	Classes  *int     `json:"classes,omitempty"`
	Totals
}

// Totals are counts. A number that is not known is missing.
type Totals struct {
	Servers *int `json:"servers,omitempty"`
	// Active counts servers in state ACTIVE.
	Active   *int `json:"active,omitempty"`
	Machines *int `json:"machines,omitempty"`
	// Ready counts Machines whose Node is Ready.
	Ready   *int `json:"ready,omitempty"`
	Orphans *int `json:"orphans,omitempty"`
}

// Readiness is what a Node says of itself; "" if there is no target cluster.
type Readiness string

// The readinesses.
const (
	Ready    Readiness = "Ready"
	NotReady Readiness = "NotReady"
	// NoNode means that there is no Node.
	NoNode Readiness = "none"
	// ReadinessUnknown means that the Nodes were not read.
	ReadinessUnknown Readiness = StateUnknown
)

// StateUnknown stands for a value that was not read, such as the state of a server.
const StateUnknown = "unknown"

// NoteKind is what a Note says.
type NoteKind string

// The notes.
const (
	// NoteOrphan is a server of this control cluster that no Machine names. About says that
	// its deletion has begun.
	NoteOrphan NoteKind = "orphan"
	// NoteOtherCluster is a server of a cluster that is not in this control cluster.
	NoteOtherCluster NoteKind = "of another cluster"
	// NoteClusterUnknown is a server that no Machine names, and of which cannot be told
	// whether it is of this control cluster.
	NoteClusterUnknown NoteKind = "cluster unknown"
	// NoteUnknown is a server of which cannot be told whether a Machine names it, or a
	// Machine of which cannot be told whether it has a server.
	NoteUnknown NoteKind = "unknown"
	// NoteUnmanaged is a server without the manager's labels.
	NoteUnmanaged NoteKind = "unmanaged"
	// NoteFromOpenStack is a Machine that came from OpenStack: its annotation says so, or its
	// ProviderID.
	NoteFromOpenStack NoteKind = "from OpenStack"
	// NoteByName is a server that a Machine from OpenStack has by its name alone: it lacks our
	// machine label.
	NoteByName NoteKind = "by name"
	// NoteLeftOver is a NIC or volume of a cluster here that no server or Machine has.
	NoteLeftOver NoteKind = "left over"
	// NoteFault is a server in state ERROR.
	NoteFault NoteKind = "fault"
	// NoteDuplicate is a second server of a Machine.
	NoteDuplicate NoteKind = "duplicate"
	// NoteClassDeleted is a server or Machine whose class does not exist.
	NoteClassDeleted NoteKind = "class deleted"
	// NoteContradiction is a server with a label by which it is not its Machine's; About is
	// the label's key.
	NoteContradiction NoteKind = "contradicting label"
	// NoteNoServer is a Machine whose server is not there.
	NoteNoServer NoteKind = "no server"
	// NoteBeingCreated is a Machine that does not have a server yet.
	NoteBeingCreated NoteKind = "being created"
	// NoteListedOtherwise is a Machine whose server the manager deletes as an orphan, because
	// the driver lists it by another ProviderID than the Machine's.
	NoteListedOtherwise NoteKind = "ProviderID in another form"
	// NotePreserved is a Machine that the manager keeps, also if it fails; About says until
	// when.
	NotePreserved NoteKind = "preserved"
	// NoteStuck is a Machine whose last operation failed; About is the driver's reason, or the
	// manager's code where the text has no reason.
	NoteStuck NoteKind = "stuck"
)

// Note is something worth knowing of a server or Machine.
type Note struct {
	Kind NoteKind `json:"kind"`
	// About is a part of some kinds: a label's key, a reason.
	About string `json:"about,omitempty"`
	// Reason is what was found, in one line.
	Reason string `json:"reason,omitempty"`
	// Cause is why it is so, if that is known.
	Cause string `json:"cause,omitempty"`
	// Remedy is what to do about it; "" if nothing is known.
	Remedy string `json:"remedy,omitempty"`
}

// String is the note in a few words.
func (n Note) String() string {
	switch {
	case n.About == "":
		return string(n.Kind)
	case n.Kind == NoteStuck:
		return string(n.Kind) + ": " + n.About
	default:
		return string(n.Kind) + " " + n.About
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

// Part is a part of an Inventory that is read by itself.
type Part string

// The parts.
const (
	PartServers   Part = "servers"
	PartAddresses Part = "addresses"
	// PartMachines and PartClasses are all of them, PartOtherMachines and PartOtherClasses
	// those of other namespaces than the Access's.
	PartMachines      Part = "Machines"
	PartOtherMachines Part = "Machines of other namespaces"
	PartClasses       Part = "MachineClasses"
	PartOtherClasses  Part = "MachineClasses of other namespaces"
	PartNodes         Part = "Nodes"
	// PartAttachables and PartDeployments are for a Query about Attachables.
	PartAttachables Part = "NICs and volumes"
	PartDeployments Part = "MachineDeployments"
	// PartOrphans is of servers that may be orphans. It is for a Query about orphans.
	PartOrphans Part = "orphans"
	// PartCluster is the cluster label of a Query that nothing carries.
	PartCluster Part = "cluster"
)

// Unread is a part that could not be read.
type Unread struct {
	Part Part `json:"part"`
	// Where is the project and region; "" for parts that are not in one.
	Where  string `json:"where,omitempty"`
	Reason string `json:"reason"`
}

// String says what is unknown, and why.
func (u Unread) String() string {
	text := string(u.Part) + " unknown: "
	if u.Where != "" {
		text += u.Where + ": "
	}
	return text + u.Reason
}

// Knows says whether all of the parts were read.
func (i *Inventory) Knows(parts ...Part) bool {
	return !slices.ContainsFunc(i.Unread, func(unread Unread) bool { return slices.Contains(parts, unread.Part) })
}

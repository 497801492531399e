// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// joining is how old a server is until its Node should be there: it boots and joins within
// some minutes.
const joining = 5 * time.Minute

// NoteNoNode is a Machine whose server runs, and has not joined the target cluster in time.
const NoteNoNode NoteKind = "no Node"

// The parts that a Description has beside those of an Inventory.
const (
	// PartOwners are the MachineSet and MachineDeployment of a Machine.
	PartOwners Part = "owners"
	// PartNICs are the NICs of a server.
	PartNICs Part = "NICs"
)

// Description is all that belongs to one Machine at one moment. Its JSON has stable names.
type Description struct {
	// Time is when it was read.
	Time time.Time `json:"time"`
	// Deployment and Set are the Machine's owners; nil if it has none, or they are not known.
	Deployment *OwnerDescription  `json:"machineDeployment,omitempty"`
	Set        *OwnerDescription  `json:"machineSet,omitempty"`
	Machine    MachineDescription `json:"machine"`
	// Servers are the Machine's, the one that the driver uses first, and then those that it
	// names and that are not its own.
	Servers []ServerDescription `json:"servers"`
	// Node is nil if there is none, or it is not known: the Machine's readiness tells.
	Node *NodeDescription `json:"node,omitempty"`
	// Unread are the parts that could not be read: what depends on them is unknown.
	Unread []Unread `json:"unread,omitempty"`
}

// OwnerDescription is a MachineSet or MachineDeployment.
type OwnerDescription struct {
	Name string `json:"name"`
	// Desired and Ready count its Machines; nil if it could not be read.
	Desired   *int32    `json:"desired,omitempty"`
	Ready     *int32    `json:"ready,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// MachineDescription is the Machine of a Description.
type MachineDescription struct {
	MachineEntry
	// PhaseSince is when the manager last wrote the phase.
	PhaseSince time.Time `json:"phaseSince,omitzero"`
	// LastOperation is nil before the manager has said anything.
	LastOperation *Operation `json:"lastOperation,omitempty"`
}

// Operation is what the manager last did for a Machine.
type Operation struct {
	Type        string    `json:"type"`
	State       string    `json:"state"`
	Description string    `json:"description"`
	Time        time.Time `json:"time,omitzero"`
}

// ServerDescription is a server of a Description.
type ServerDescription struct {
	ServerEntry
	// NICs are sorted by ID; null if they are not known.
	NICs []NICDescription `json:"nics"`
}

// NICDescription is a network interface of a server.
type NICDescription struct {
	ID               string   `json:"id"`
	Network          string   `json:"networkId"`
	Addresses        []string `json:"addresses"`
	AllowedAddresses []string `json:"allowedAddresses"`
}

// NodeDescription is the Node of a Machine.
type NodeDescription struct {
	Name      string    `json:"name"`
	Readiness Readiness `json:"readiness"`
	// ReadinessSince is when its readiness changed, Message what its kubelet says of it.
	ReadinessSince time.Time `json:"readinessSince,omitzero"`
	Message        string    `json:"message,omitempty"`
	CreatedAt      time.Time `json:"createdAt,omitzero"`
}

// Describe reads all that belongs to one Machine of the Access's Namespace: its servers by one
// list of its cluster, and the NICs of each. It fails only if the Machine cannot be read; what
// else cannot be read is among the Description's Unread.
func Describe(ctx context.Context, o *account.Access, name string) (*Description, error) {
	if o.Control == nil {
		return nil, cmp.Or(o.ControlError, errors.New("no cluster with Machines was asked"))
	}
	query, err := queryOf(ctx, o, name)
	if err != nil {
		return nil, err
	}
	seen := look(ctx, o, query)
	at := slices.IndexFunc(seen.machineViews, func(view *machineView) bool {
		return view.Namespace == o.Namespace && view.Name == name
	})
	if at < 0 {
		return nil, seen.notListed(o.Namespace, name)
	}
	view := seen.machineViews[at]
	described := &Description{Time: seen.now, Servers: []ServerDescription{}, Node: seen.describeNode(view)}
	described.readOwners(ctx, o, view.Machine, seen)
	described.Machine = seen.describeMachine(view)
	servers := slices.Clone(view.servers)
	for _, server := range seen.serverViews {
		if server.owner == nil && slices.Contains(server.named, view) {
			servers = append(servers, server)
		}
	}
	for _, server := range servers {
		entry := ServerDescription{seen.serverEntry(server), seen.readNICs(ctx, server)}
		for _, nic := range entry.NICs {
			entry.Addresses = append(entry.Addresses, nic.Addresses...)
		}
		described.Servers = append(described.Servers, entry)
	}
	described.Unread = seen.unread
	return described, nil
}

// queryOf returns the query for a Machine, with the cluster label of its class: a list of one
// cluster is shorter than one of the project.
func queryOf(ctx context.Context, o *account.Access, name string) (Query, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	query := Query{Machine: name}
	machine, class := &v1alpha1.Machine{}, &v1alpha1.MachineClass{}
	err := o.Control.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, machine)
	if apierrors.IsNotFound(err) {
		return query, notThere(o.Namespace, name)
	}
	if err != nil {
		return query, fmt.Errorf("reading Machine %s/%s: %w", o.Namespace, name, err)
	}
	// Without the class, the servers of all clusters are listed.
	if o.Control.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: machine.Spec.Class.Name}, class) != nil {
		return query, nil
	}
	inputs := provider.Inspect(class, nil)
	keys := slices.Sorted(maps.Keys(inputs.ClusterLabels))
	if !inputs.ClusterUnknown && len(keys) > 0 {
		query.ClusterKey, query.ClusterValue = keys[0], inputs.ClusterLabels[keys[0]]
	}
	return query, nil
}

func notThere(namespace, name string) error {
	return fmt.Errorf("there is no Machine %s/%s: is the namespace right (-n)? mcm-stackit list servers --machine %s shows servers with its name",
		namespace, name, name)
}

// notListed says why a Machine that was read is in no list.
func (s *observation) notListed(namespace, name string) error {
	for _, unread := range s.unread {
		if unread.Part == PartMachines {
			return errors.New(unread.String())
		}
	}
	return notThere(namespace, name)
}

func (d *Description) readOwners(parent context.Context, o *account.Access, machine *v1alpha1.Machine, seen *observation) {
	ctx, cancel := context.WithTimeout(parent, clusterTimeout)
	defer cancel()
	var set v1alpha1.MachineSet
	if d.Set = readOwner(ctx, o, machine, "MachineSet", &set, seen); d.Set == nil || set.Name == "" {
		return
	}
	d.Set.Desired, d.Set.Ready = &set.Spec.Replicas, &set.Status.ReadyReplicas
	var deployment v1alpha1.MachineDeployment
	if d.Deployment = readOwner(ctx, o, &set, "MachineDeployment", &deployment, seen); d.Deployment != nil && deployment.Name != "" {
		d.Deployment.Desired, d.Deployment.Ready = &deployment.Spec.Replicas, &deployment.Status.ReadyReplicas
	}
}

// readOwner reads the owner of a kind; nil if there is none. If it cannot be read, only its
// name is known.
func readOwner(ctx context.Context, o *account.Access, of metav1.Object, kind string, owner client.Object, seen *observation) *OwnerDescription {
	ref := metav1.GetControllerOf(of)
	if ref == nil || ref.Kind != kind {
		return nil
	}
	if err := o.Control.Get(ctx, client.ObjectKey{Namespace: of.GetNamespace(), Name: ref.Name}, owner); err != nil {
		seen.miss(PartOwners, "", fmt.Errorf("reading %s %s: %w", kind, ref.Name, err))
	}
	return &OwnerDescription{Name: ref.Name, CreatedAt: owner.GetCreationTimestamp().Time}
}

func (s *observation) describeMachine(view *machineView) MachineDescription {
	state := &view.Status
	described := MachineDescription{MachineEntry: s.machineEntry(view), PhaseSince: state.CurrentStatus.LastUpdateTime.Time}
	described.Notes = append(described.Notes, s.noNodeNotes(view)...)
	if last := state.LastOperation; last.Type != "" || last.Description != "" {
		described.LastOperation = &Operation{
			Type: string(last.Type), State: string(last.State), Description: report.OneLine(last.Description), Time: last.LastUpdateTime.Time,
		}
	}
	return described
}

// noNodeNotes says whether the Machine's server runs for so long that its Node should be there.
func (s *observation) noNodeNotes(view *machineView) []Note {
	server := view.server()
	if server == nil || !server.IsActive() || server.CreatedAt.IsZero() || view.DeletionTimestamp != nil {
		return nil
	}
	old := s.now.Sub(server.CreatedAt)
	if _, readiness := s.readiness(s.node(view, server)); readiness != NoNode || old < joining {
		return nil
	}
	return []Note{{
		Kind:   NoteNoNode,
		Reason: fmt.Sprintf("server ACTIVE, %s old, no Node", duration.HumanDuration(old.Truncate(time.Minute))),
		Remedy: fmt.Sprintf("its console log tells whether user data ran, the network reaches the API server, the bootstrap token is valid and the kubelet runs: "+
			"stackit server log %s --project-id %s --region %s", server.ID, server.at.project, server.at.region),
	}}
}

// describeNode is about the Node of a Machine; nil if there is none, or it is not known.
func (s *observation) describeNode(view *machineView) *NodeDescription {
	node := s.node(view, view.server())
	if node == nil {
		return nil
	}
	described := &NodeDescription{CreatedAt: node.CreationTimestamp.Time}
	described.Name, described.Readiness = s.readiness(node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			described.ReadinessSince, described.Message = condition.LastTransitionTime.Time, report.OneLine(condition.Message)
		}
	}
	return described
}

// readNICs reads the NICs of a server; nil if they cannot be read.
func (s *observation) readNICs(ctx context.Context, server *serverView) []NICDescription {
	nics, err := account.ServerNICs.Of(ctx, server.at.used, server.ID)
	if err != nil {
		s.miss(PartNICs, "server "+server.ID, server.at.used.Failure(err))
		return nil
	}
	described := make([]NICDescription, 0, len(nics))
	for i := range nics {
		nic := &nics[i]
		described = append(described, NICDescription{nic.ID, nic.NetworkID,
			append([]string{}, nic.Addresses()...), append([]string{}, nic.AllowedAddresses...)})
	}
	return described
}

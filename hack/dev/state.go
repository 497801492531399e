// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// state is a snapshot of the cluster and the cloud.
type state struct {
	at       time.Time
	machines []machinev1alpha1.Machine
	servers  []iaasmock.Server
	nics     []iaasmock.NIC
	volumes  []iaasmock.Volume
	nodes    map[string]corev1.Node
}

// look reads the state of an environment.
func look(ctx context.Context, env *localenv.Env) (state, error) {
	var machines machinev1alpha1.MachineList
	if err := env.Client().List(ctx, &machines, client.InNamespace(env.Namespace())); err != nil {
		return state{}, err
	}
	var nodes corev1.NodeList
	if err := env.Client().List(ctx, &nodes); err != nil {
		return state{}, err
	}
	cloud := env.Cloud()
	s := state{
		at: time.Now(), machines: machines.Items, nodes: map[string]corev1.Node{},
		servers: cloud.Servers(), nics: cloud.NICs(), volumes: cloud.Volumes(),
	}
	for _, node := range nodes.Items {
		s.nodes[node.Name] = node
	}
	return s, nil
}

// rows returns the lines of the table: all machines, oldest first, then servers without a machine.
func (s state) rows() []row {
	machines := slices.Clone(s.machines)
	slices.SortFunc(machines, func(a, b machinev1alpha1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	accounted := map[string]bool{}
	var rows []row
	for i := range machines {
		rows = append(rows, s.machineRow(&machines[i], accounted))
	}
	for _, server := range s.servers {
		if !accounted[server.ID] {
			rows = append(rows, row{
				machine: "(none) " + server.Name, class: none, phase: none,
				server: server.Status, node: s.nodeState(server.Name), age: s.at.Sub(server.CreatedAt),
			})
		}
	}
	return rows
}

func (s state) machineRow(machine *machinev1alpha1.Machine, accounted map[string]bool) row {
	r := row{
		machine: machine.Name,
		class:   machine.Spec.Class.Name,
		phase:   cmp.Or(string(machine.Status.CurrentStatus.Phase), none),
		server:  none,
		node:    s.nodeState(machine.Name),
		age:     s.at.Sub(machine.CreationTimestamp.Time),
	}
	if server := s.serverOf(machine); server != nil {
		accounted[server.ID] = true
		r.server = server.Status
	}
	if machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineRunning {
		r.message = strings.Join(strings.Fields(machine.Status.LastOperation.Description), " ")
		r.failed = machine.Status.LastOperation.State == machinev1alpha1.MachineStateFailed
	}
	return r
}

// serverOf returns a machine's server; before the machine has a providerID, the server with its name.
func (s state) serverOf(machine *machinev1alpha1.Machine) *iaasmock.Server {
	id := machine.Spec.ProviderID[strings.LastIndex(machine.Spec.ProviderID, "/")+1:]
	for i, server := range s.servers {
		if server.ID == id || id == "" && server.Name == machine.Name {
			return &s.servers[i]
		}
	}
	return nil
}

func (s state) nodeState(name string) string {
	node, found := s.nodes[name]
	if !found {
		return none
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return ready
		}
	}
	return "NotReady"
}

// inventory describes all resources.
func (s state) inventory() sets.Set[string] {
	all := sets.New[string]()
	for i := range s.machines {
		all.Insert("machine " + s.machines[i].Name)
	}
	for name := range s.nodes {
		all.Insert("node " + name)
	}
	for _, server := range s.servers {
		all.Insert(fmt.Sprintf("server %s (%s, %s)", server.ID, server.Name, server.Status))
	}
	for _, nic := range s.nics {
		all.Insert(fmt.Sprintf("NIC %s (%s, server %s)", nic.ID, nic.IPv4, cmp.Or(nic.ServerID, none)))
	}
	for _, volume := range s.volumes {
		all.Insert(fmt.Sprintf("volume %s (%d GB, server %s)", volume.ID, volume.Size, cmp.Or(volume.ServerID, none)))
	}
	return all
}

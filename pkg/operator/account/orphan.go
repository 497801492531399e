// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Clusters returns the distinct cluster labels of the classes. Classes of other providers and classes with labels that
// no server can carry are skipped.
func Clusters(classes []*Class) []map[string]string {
	var clusters []map[string]string
	for _, class := range classes {
		labels := class.Inputs.ClusterLabels
		known := slices.ContainsFunc(clusters, func(cluster map[string]string) bool { return maps.Equal(cluster, labels) })
		if len(labels) > 0 && !known && !class.IsForeign() {
			clusters = append(clusters, labels)
		}
	}
	return clusters
}

// ClusterOf returns the labels of the cluster that a server belongs to: the server carries all of them, and no cluster
// label with another value. nil means none of the clusters.
func ClusterOf(server *provider.Server, clusters []map[string]string) map[string]string {
	own := ClusterLabels(server.Labels)
	for _, cluster := range clusters {
		values := slices.Collect(maps.Values(cluster))
		contradicts := func(value string) bool { return !slices.Contains(values, value) }
		if Carries(own, cluster) && !slices.ContainsFunc(slices.Collect(maps.Values(own)), contradicts) {
			return cluster
		}
	}
	return nil
}

// Owners finds the Machines that name a server: by a ProviderID in any form, by the server's machine label, or by the
// server's own name.
type Owners struct {
	byID, byName map[string][]*v1alpha1.Machine
}

// NewOwners returns an index of the Machines, which must not be changed afterwards.
func NewOwners(machines []v1alpha1.Machine) *Owners {
	owners := &Owners{byID: map[string][]*v1alpha1.Machine{}, byName: map[string][]*v1alpha1.Machine{}}
	for i := range machines {
		machine := &machines[i]
		owners.byName[machine.Name] = append(owners.byName[machine.Name], machine)
		for _, id := range IDsIn(machine.Spec.ProviderID) {
			owners.byID[id] = append(owners.byID[id], machine)
		}
	}
	return owners
}

// Of returns the Machines that name the server, each only once, matches by ID first.
func (o *Owners) Of(server *provider.Server) []*v1alpha1.Machine {
	var all []*v1alpha1.Machine
	for _, some := range [][]*v1alpha1.Machine{o.byID[server.ID], o.byName[server.Labels[provider.StackitMachineLabel]],
		o.byName[server.Name]} {
		for _, machine := range some {
			if !slices.Contains(all, machine) {
				all = append(all, machine)
			}
		}
	}
	return all
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}`)

// IDsIn returns all UUIDs in a ProviderID, one of which is the server's. It also accepts forms that
// the driver refuses: a search for orphans must not miss a reference.
func IDsIn(providerID string) (ids []string) {
	for _, text := range uuids.FindAllString(strings.ToLower(providerID), -1) {
		if id, err := uuid.Parse(text); err == nil {
			ids = append(ids, id.String())
		}
	}
	return ids
}

// NodeIDs returns the IDs that may be the ID of a Node's server: the UUIDs in its ProviderID, its system UUID, and the
// machine ID, which systemd makes of that.
func NodeIDs(node *corev1.Node) []string {
	return IDsIn(node.Spec.ProviderID + " " + node.Status.NodeInfo.SystemUUID + " " + node.Status.NodeInfo.MachineID)
}

// IsNodeOf reports whether a Node names a server: the server's ID, one of its addresses, or one of its names up to the
// first dot, where a host's name ends, matches. A Node normally has the name of its server and its Machine.
func IsNodeOf(node *corev1.Node, server *provider.Server, addresses []netip.Addr) bool {
	if slices.Contains(NodeIDs(node), server.ID) {
		return true
	}
	names := []string{node.Name, node.Labels[corev1.LabelHostname]}
	for _, own := range node.Status.Addresses {
		if address, err := netip.ParseAddr(own.Address); err == nil &&
			slices.Contains(addresses, address.Unmap().WithZone("")) {
			return true
		}
		names = append(names, own.Address)
	}
	host := func(name string) string {
		first, _, _ := strings.Cut(strings.ToLower(name), ".")
		return first
	}
	return slices.ContainsFunc([]string{server.Name, server.Labels[provider.StackitMachineLabel]}, func(own string) bool {
		return own != "" && slices.ContainsFunc(names, func(name string) bool { return host(name) == host(own) })
	})
}

// ClusterLabels returns the labels that name a cluster: their keys end in /cluster.
func ClusterLabels(labels map[string]string) map[string]string {
	found := maps.Clone(labels)
	maps.DeleteFunc(found, func(key, _ string) bool { return !provider.IsClusterLabel(key) })
	return found
}

// ClusterValues returns the different values of a server's cluster labels.
func ClusterValues(labels map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(ClusterLabels(labels))))
}

// ClusterText formats cluster labels as key=value, sorted by key and separated by commas.
func ClusterText(labels map[string]string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}

// Carries reports whether labels contain all of wanted. It returns false if wanted is empty.
func Carries(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return len(wanted) > 0
}

// IsManaged reports whether a server carries the driver's labels of a Machine and of a MachineClass,
// neither of them empty.
func IsManaged(server *provider.Server) bool {
	return server.Labels[provider.StackitMachineLabel] != "" && server.Labels[provider.StackitMachineClassLabel] != ""
}

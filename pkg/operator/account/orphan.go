// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// Whose says whose a server is.
type Whose string

// The answers of WhoseIs, in the order in which they are looked for.
const (
	// OfMachine is a server that a Machine names.
	OfMachine Whose = "a Machine names it"
	// Unmanaged is one that lacks a label of the manager's.
	Unmanaged Whose = "it lacks a label of the manager's"
	// OtherCluster is one that carries none of the clusters' labels, or a cluster label of
	// another value, too: Gardener writes one value under two keys.
	OtherCluster Whose = "it is of another cluster"
	// Untold is one that may be an orphan, but not the Machines of all namespaces were read.
	Untold Whose = "the Machines of all namespaces could not be read"
	// Orphan is none of these. Whether it is being deleted, and how old it is, is not asked.
	Orphan Whose = "it is an orphan"
)

// WhoseIs is the definition of an orphan: a server with both labels of the manager's and the
// cluster labels of one of the clusters, without a cluster label of another value, that no
// Machine of any namespace names.
func WhoseIs(server *provider.Server, clusters []map[string]string, owners *Owners) Whose {
	switch {
	case len(owners.Of(server)) > 0:
		return OfMachine
	case !IsManaged(server):
		return Unmanaged
	case ClusterOf(server, clusters) == nil:
		return OtherCluster
	case owners.Incomplete:
		return Untold
	default:
		return Orphan
	}
}

// Clusters are the cluster labels of the classes: servers of these clusters are checked. Classes
// of another provider and those with labels that no server can carry name none.
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

// ClusterOf returns the labels of the one of the clusters that a server is of: it carries all of
// them, and no cluster label of another value. nil means that it is of none.
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

// Owners finds the Machines that name a server: by a ProviderID, of whatever form, by the
// machine label on the server, or by the server's own name.
type Owners struct {
	// Incomplete says that Machines of other namespaces may be missing: nobody is an orphan then.
	Incomplete bool

	byID, byName map[string][]*v1alpha1.Machine
}

// NewOwners indexes the Machines, which must not change. They are those of all namespaces, or the
// result is to be marked as Incomplete.
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

// Of returns the Machines that name the server, each once, those of ByID first.
func (o *Owners) Of(server *provider.Server) []*v1alpha1.Machine {
	var all []*v1alpha1.Machine
	for _, some := range [][]*v1alpha1.Machine{o.byID[server.ID], o.byName[server.Labels[provider.StackitMachineLabel]], o.byName[server.Name]} {
		for _, machine := range some {
			if !slices.Contains(all, machine) {
				all = append(all, machine)
			}
		}
	}
	return all
}

// RemedyOrphan is for a server that no Machine names, or a second one of a Machine.
const RemedyOrphan = "the manager deletes it itself, as a rule within 15 minutes " +
	"(--machine-safety-orphan-vms-period); is the manager running?"

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// IDsIn returns the IDs in a ProviderID, among them the server's, also where the driver would
// refuse the form: who looks for servers that nobody needs must not overlook one.
func IDsIn(providerID string) []string {
	return uuid.FindAllString(strings.ToLower(providerID), -1)
}

// NodeIDs returns the IDs of servers by which a Node names itself: those in its ProviderID, and what its machine
// says of itself.
func NodeIDs(node *corev1.Node) []string {
	return append(IDsIn(node.Spec.ProviderID), strings.ToLower(node.Status.NodeInfo.SystemUUID))
}

// IsNodeOf reports whether a Node is a server: by its ID, by one of the server's names, with or without a
// domain, or by one of its addresses. A Node has the name of its server and its Machine.
func IsNodeOf(node *corev1.Node, server *provider.Server, addresses []netip.Addr) bool {
	if slices.Contains(NodeIDs(node), server.ID) {
		return true
	}
	names := []string{node.Name, node.Labels[corev1.LabelHostname]}
	for _, own := range node.Status.Addresses {
		if address, err := netip.ParseAddr(own.Address); err == nil && slices.Contains(addresses, address.Unmap().WithZone("")) {
			return true
		}
		names = append(names, own.Address)
	}
	return slices.ContainsFunc([]string{server.Name, server.Labels[provider.StackitMachineLabel]}, func(own string) bool {
		return own != "" && slices.ContainsFunc(names, func(name string) bool {
			rest, found := strings.CutPrefix(strings.ToLower(name), strings.ToLower(own))
			return found && (rest == "" || rest[0] == '.')
		})
	})
}

// ParseClusterLabel reads one cluster label of the form key=value.
func ParseClusterLabel(text string) (map[string]string, error) {
	key, value, _ := strings.Cut(text, "=")
	if value == "" || !provider.IsClusterLabel(key) {
		return nil, fmt.Errorf("%q is no cluster label: must be key=value with a key that ends in /cluster, "+
			"such as kubernetes.io/cluster=my-cluster", text)
	}
	labels := map[string]string{key: value}
	if errs := validation.ValidateLabels(labels, field.NewPath("label")); len(errs) > 0 {
		return nil, fmt.Errorf("%q is no label that a server can have: %w", text, errs.ToAggregate())
	}
	return labels, nil
}

// ClusterLabels are those of the labels that name a cluster.
func ClusterLabels(labels map[string]string) map[string]string {
	found := maps.Clone(labels)
	maps.DeleteFunc(found, func(key, _ string) bool { return !provider.IsClusterLabel(key) })
	return found
}

// ClusterText shows cluster labels: key=value.
func ClusterText(labels map[string]string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}

// Carries says whether labels have all of wanted, of which there must be some.
func Carries(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return len(wanted) > 0
}

// IsManaged says whether a server carries both labels of the driver.
func IsManaged(server *provider.Server) bool {
	return server.Labels[provider.StackitMachineLabel] != "" && server.Labels[provider.StackitMachineClassLabel] != ""
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// minAge is the minimum age of a server to delete: a younger one may still be in creation.
const minAge = time.Hour

// Evidence is what decides whether a server may be deleted.
type Evidence struct {
	// Server and Addresses are the server, and the IP addresses of its NICs. Date is the API's clock, from the Date header
	// of the answer; zero if there was none.
	Server    *provider.Server
	Addresses []netip.Addr
	Date      time.Time
	// Siblings are the IDs of the servers that carry the server's cluster labels, in all projects and regions of the
	// namespace's classes: Nodes may be servers of another region.
	Siblings []string
	// Classes and Machines are those of all namespaces of the control cluster; Nodes are the target cluster's.
	Classes  []*account.Class
	Machines []v1alpha1.Machine
	Nodes    []corev1.Node
}

// Refusal returns why the server must not be deleted, in one line; "" if it may be. There are three rules: no Machine
// names it, and a MachineClass of the control cluster has its cluster label; no Node of the target cluster names it,
// Ready or not, and one of them names another server of its cluster, so that the target is the right cluster; it is
// older than minAge by the API's clock, the only clock that counts.
func (e *Evidence) Refusal() string {
	server, owners := e.Server, account.NewOwners(e.Machines).Of(e.Server)
	cluster := account.ClusterOf(server, account.Clusters(e.Classes))
	own := account.ClusterText(account.ClusterLabels(server.Labels))
	switch age := e.Date.Sub(server.CreatedAt); {
	case len(owners) > 0:
		return fmt.Sprintf("Machine %s/%s names it, by its ProviderID, the server's machine label or its name",
			owners[0].Namespace, owners[0].Name)
	case !account.IsManaged(server):
		return fmt.Sprintf("it lacks the label %s or %s, so its owner is unknown", provider.StackitMachineLabel,
			provider.StackitMachineClassLabel)
	case server.Name != server.Labels[provider.StackitMachineLabel]: // the driver refuses it, too
		return fmt.Sprintf("its name is not %s, the value of its label %s", server.Labels[provider.StackitMachineLabel],
			provider.StackitMachineLabel)
	case provider.OpenStackTag(server) != "":
		return "its Machine may still have OpenStack's ID: it has OpenStack's tag " + provider.OpenStackTag(server)
	case own == "":
		return "it has no cluster label, so its owner is unknown"
	case len(account.ClusterValues(server.Labels)) > 1:
		return "it has cluster labels of different values: " + own
	case cluster == nil:
		return "no MachineClass of the control cluster has its cluster label " + own
	case server.CreatedAt.IsZero() || e.Date.IsZero():
		return "its age is unknown: the API's answer lacks the creation time or the Date header"
	case age < minAge:
		return fmt.Sprintf("it is only %s old, and must be older than %s: it may still be in creation",
			age.Round(time.Second), minAge)
	case len(e.Addresses) == 0 || slices.Contains(e.Addresses, netip.Addr{}): // a list may be empty for a while
		return "the API returned no addresses of it, or of one of its NICs: without them, no Node can be ruled out"
	}
	return e.nodeRefusal(own)
}

// nodeRefusal applies the rule about the target cluster's Nodes.
func (e *Evidence) nodeRefusal(cluster string) string {
	isTarget := false
	for i := range e.Nodes {
		node := &e.Nodes[i]
		if account.IsNodeOf(node, e.Server, e.Addresses) {
			return fmt.Sprintf("Node %s of the target cluster names it, by its ID, a name or an address", node.Name)
		}
		isTarget = isTarget || slices.ContainsFunc(account.NodeIDs(node), func(id string) bool {
			return slices.Contains(e.Siblings, id)
		})
	}
	if !isTarget {
		return fmt.Sprintf("none of the %d Nodes of the target cluster runs on a server of %s: it may be another cluster",
			len(e.Nodes), cluster)
	}
	return ""
}

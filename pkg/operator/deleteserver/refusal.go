// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// refusal says why a server must not be deleted, and what to do; "" if it may be. now is the API's
// time when it showed the server: nobody else's clock counts.
func (p *Plan) refusal(server *provider.Server, now time.Time, known *facts) string {
	label, age := server.Labels[provider.StackitMachineLabel], now.Sub(server.CreatedAt)
	if reason := p.ownerRefusal(server, known.owners); reason != "" {
		return reason
	}
	switch tag := provider.OpenStackTag(server); {
	case server.Name != label:
		return fmt.Sprintf("its name is not %s, as its label %s says: one of them was edited; "+
			"correct it, or look whose it is and delete it by hand", label, provider.StackitMachineLabel)
	case tag != "":
		return fmt.Sprintf("it has OpenStack's tag %s, and its Machine may still have OpenStack's ID "+
			"(kubernetes/migration.md); look whose it is and delete it by hand", tag)
	case now.IsZero():
		return "its age is unknown: the API's answer has no Date; ask STACKIT"
	case server.CreatedAt.IsZero():
		return "its age is unknown: the API shows no creation time; ask STACKIT"
	case age < p.options.OlderThan:
		return fmt.Sprintf("it is %s old, and somebody may be making it: run this again when it is older than %s",
			age.Round(time.Second), p.options.OlderThan)
	}
	for i := range known.nodes {
		node := &known.nodes[i]
		if !account.IsNodeOf(node, server) {
			continue
		}
		if reason := p.nodeRefusal(node, server, now); reason != "" {
			return reason
		}
	}
	return ""
}

// ownerRefusal says why a server is no orphan.
func (p *Plan) ownerRefusal(server *provider.Server, owners *account.Owners) string {
	switch account.WhoseIs(server, p.clusters, owners) {
	case account.Orphan:
		return ""
	case account.OfMachine:
		machine := owners.Of(server)[0]
		ids := account.IDsIn(machine.Spec.ProviderID)
		if len(ids) > 0 && !slices.Contains(ids, server.ID) {
			return fmt.Sprintf("it is a second server of Machine %s/%s, whose server is %s: %s",
				machine.Namespace, machine.Name, ids[len(ids)-1], account.RemedyOrphan)
		}
		return fmt.Sprintf("Machine %s/%s names it; both go with: kubectl -n %s delete machine %s",
			machine.Namespace, machine.Name, machine.Namespace, machine.Name)
	case account.Unmanaged:
		return fmt.Sprintf("it lacks the label %s or %s, and may be anybody's: look whose it is and delete it by hand",
			provider.StackitMachineLabel, provider.StackitMachineClassLabel)
	case account.Untold:
		return string(account.Untold)
	case account.OtherCluster:
	}
	text := account.ClusterText(account.ClusterLabels(server.Labels))
	if text == "" {
		return "it carries no cluster's label, and may be anybody's: look whose it is and delete it by hand"
	}
	return fmt.Sprintf("it is of another cluster than the MachineClasses here: its label is %s; "+
		"use the cluster with its Machines or, if that is gone, --cluster", text)
}

// nodeRefusal says why a server's Node keeps it: it works, or worked a moment ago.
func (p *Plan) nodeRefusal(node *corev1.Node, server *provider.Server, now time.Time) string {
	since := node.CreationTimestamp.Time
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return fmt.Sprintf("Node %s of the target cluster is this server, and Ready: restore its Machine or, "+
				"if it is to go, stop it (stackit server stop %s) and run this %s later",
				node.Name, server.ID, p.options.OlderThan)
		}
		since = condition.LastTransitionTime.Time
	}
	if since.IsZero() || now.Sub(since) < p.options.OlderThan {
		return fmt.Sprintf("Node %s of the target cluster is this server, and has not been out of order for %s: "+
			"run this again later", node.Name, p.options.OlderThan)
	}
	return ""
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// needs is what the deletion of an orphan takes, and why. One that is being deleted is asked
// again where the cluster is linked, and left alone elsewhere.
func (o *Orphan) needs() (Consent, string) {
	switch {
	case !o.server.IsDeleting():
		return o.in.Needs, strings.Join(o.in.Reasons, "; ")
	case o.in.Linked:
		return Flag, ""
	default:
		return Nobody, "it is being deleted already"
	}
}

// count notes what a server says of its place.
func (c *Plan) count(server *located, known *facts) {
	place := server.in
	isNode := func(node corev1.Node) bool { return slices.Contains(account.IDsIn(node.Spec.ProviderID), server.ID) }
	// To protect a server any form of an ID will do; to prove something, the driver must take it.
	links := func(machine *v1alpha1.Machine) bool {
		id, err := providerid.Parse(machine.Spec.ProviderID, place.ProjectID)
		return err == nil && id == server.ID
	}
	place.Linked = place.Linked || slices.ContainsFunc(known.owners.ByID(&server.Server), links)
	place.NodesProven = place.NodesProven || slices.ContainsFunc(known.nodes, isNode)
	if server.IsDeleting() {
		return
	}
	whose := c.whose(&server.Server, known)
	if whose == account.OfMachine || whose == account.Orphan {
		place.Servers++
	}
	if whose == account.Orphan && !slices.ContainsFunc(known.nodes, func(node corev1.Node) bool { return account.IsNodeOf(&node, &server.Server) }) {
		place.Orphans++
	}
	young := server.CreatedAt.IsZero() || c.access.Now().Sub(server.CreatedAt) < c.options.OlderThan
	if whose == account.Orphan && (young || server.Status == "CREATING") {
		place.inCreation = server.ID
	}
}

func (c *Plan) whose(server *provider.Server, known *facts) account.Whose {
	return account.WhoseIs(server, []map[string]string{c.options.labels()}, known.owners)
}

// judgePlace says what the deletion of a place's orphans takes. wants are MachineSets and
// MachineDeployments that want more Machines than there are.
func (c *Plan) judgePlace(place *Place, wants []string) {
	asks := func(needs Consent, format string, args ...any) {
		place.Needs = max(place.Needs, needs)
		place.Reasons = append(place.Reasons, fmt.Sprintf(format, args...))
	}
	if !place.Linked {
		asks(TypedWithIDs, "no Machine of this control cluster names a server with %s in %v: it may be the wrong one, and another's servers be in use", c.options.label(), place)
		if place.inCreation != "" {
			asks(Nobody, "server %s there has no Machine here, and is being created or younger than %s: somebody works on this cluster", place.inCreation, c.options.OlderThan)
		}
	}
	switch {
	case c.access.Target == nil:
		asks(Typed, "no target cluster was looked at, whose Nodes may be these servers: name its kubeconfig with --target-kubeconfig")
	case !place.NodesProven:
		asks(Typed, "no Node of the target cluster is a server with %s in %v: it may be the wrong target cluster", c.options.label(), place)
	}
	if len(wants) > 0 {
		asks(Typed, "%s, and their servers may be among these", report.Some(wants))
	}
	if place.Orphans*2 > place.Servers {
		asks(Typed, "these are more than half of the cluster's servers: %d of %d", place.Orphans, place.Servers)
	}
	all := 0
	for _, each := range c.Places {
		all += each.Orphans
	}
	if all > c.options.Max {
		asks(Typed, "%d are more than --max=%d", all, c.options.Max)
	}
	if len(c.namespaces) > 0 {
		asks(Typed, "only the Machines of %s can be read: a server that a Machine elsewhere names would pass for an orphan", strings.Join(c.namespaces, ", "))
	}
}

// keeps returns why a server must not be deleted, whatever anybody says; nil if it may.
func (c *Plan) keeps(server *provider.Server, known *facts) *Kept {
	kept := &Kept{ID: server.ID, Name: server.Name}
	switch c.whose(server, known) {
	case account.OfMachine:
		kept.byMachine(known.owners.Of(server)[0])
		return kept
	case account.Unmanaged:
		kept.Reason = fmt.Sprintf("it lacks the label %s or %s: it is not the manager's", provider.StackitMachineLabel, provider.StackitMachineClassLabel)
		return kept
	case account.OtherCluster:
		kept.Reason = "it carries the label of another cluster, too: " + account.ClusterText(account.ClusterLabels(server.Labels))
		if !account.Carries(server.Labels, c.options.labels()) {
			kept.Reason = fmt.Sprintf("its label is not %s any more", c.options.label())
		}
		return kept
	case account.Orphan:
	}
	isNode := func(node corev1.Node) bool { return account.IsNodeOf(&node, server) }
	at := slices.IndexFunc(known.nodes, isNode)
	label, age := server.Labels[provider.StackitMachineLabel], c.access.Now().Sub(server.CreatedAt)
	switch {
	case len(c.options.ServerIDs) > 0 && !slices.Contains(c.options.ServerIDs, server.ID):
		kept.Reason = "it is not among those named"
	case at >= 0:
		name := known.nodes[at].Name
		kept.Reason, kept.Withheld = fmt.Sprintf("Node %s of the target cluster is this server", name), true
		kept.Remedy = fmt.Sprintf("in the target cluster: kubectl drain %s, kubectl delete node %s; then run this again", name, name)
	case server.Name != label:
		kept.Reason, kept.Withheld = fmt.Sprintf("its own name is not %s, as its label %s says: the label may have been edited", label, provider.StackitMachineLabel), true
	case server.IsDeleting():
		return nil
	case server.CreatedAt.IsZero():
		kept.Reason, kept.Withheld = "its age is not known", true
	case age < c.options.OlderThan:
		kept.Reason = fmt.Sprintf("it is younger than %s", c.options.OlderThan)
	default:
		return nil
	}
	return kept
}

// byMachine says that a Machine names the server.
func (k *Kept) byMachine(machine *v1alpha1.Machine) {
	k.Reason = fmt.Sprintf("Machine %s/%s names it", machine.Namespace, machine.Name)
	if ids := account.IDsIn(machine.Spec.ProviderID); len(ids) > 0 && !slices.Contains(ids, k.ID) {
		k.Reason = fmt.Sprintf("it is a second server of Machine %s/%s, whose server is %s: %s",
			machine.Namespace, machine.Name, ids[len(ids)-1], account.RemedyOrphan)
		return
	}
	k.Remedy = fmt.Sprintf("kubectl -n %s delete machine %s", machine.Namespace, machine.Name)
}

// wants says which MachineSets and MachineDeployments of the cluster want more Machines than
// there are, as after a restore: their servers may be there already. One whose class is not
// there may be the cluster's.
func (c *Plan) wants(ctx context.Context, classes []*account.Class, machines []v1alpha1.Machine) ([]string, error) {
	ofOthers := map[string]bool{}
	for _, class := range classes {
		ofOthers[class.Namespace+"/"+class.Name] = account.IsForeign(class.MachineClass) ||
			class.Inputs.ClusterLabels[c.options.ClusterKey] != c.options.ClusterValue
	}
	var all []string
	add := func(kind string, object metav1.Object, class string, replicas int32, selector *metav1.LabelSelector) {
		selects, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || ofOthers[object.GetNamespace()+"/"+class] {
			return // the manager makes no Machines for a selector that is broken
		}
		has := 0
		for i := range machines {
			if !selects.Empty() && machines[i].Namespace == object.GetNamespace() && machines[i].DeletionTimestamp == nil && selects.Matches(labels.Set(machines[i].Labels)) {
				has++
			}
		}
		if has < int(replicas) {
			all = append(all, fmt.Sprintf("%s %s/%s wants %s and has %d", kind, object.GetNamespace(), object.GetName(), report.Count(int(replicas), "Machine"), has))
		}
	}
	deployments, err := c.access.MachineDeployments(ctx, c.namespaces...)
	if err != nil {
		return nil, err
	}
	for i := range deployments {
		spec := &deployments[i].Spec
		add("MachineDeployment", &deployments[i], spec.Template.Spec.Class.Name, spec.Replicas, spec.Selector)
	}
	sets, err := c.access.MachineSets(ctx, c.namespaces...)
	if err != nil {
		return nil, err
	}
	for i := range sets {
		spec := &sets[i].Spec
		add("MachineSet", &sets[i], spec.Template.Spec.Class.Name, spec.Replicas, spec.Selector)
	}
	return all, nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// clusterLabel is a label that says whose a project's servers are.
type clusterLabel struct{ projectID, key, value string }

func (l clusterLabel) subject() string { return fmt.Sprintf("cluster label %s=%s", l.key, l.value) }

const oneValuePerCluster = "give each cluster a value of its own in providerSpec.labels, in new classes, and roll to them"

// examineMachines reads the Machines of all namespaces, and looks for those that the manager
// would not find again in what the driver lists.
func (d *Doctor) examineMachines(ctx context.Context) {
	if d.Control == nil || len(d.servers) == 0 {
		return
	}
	d.looking("Machines")
	machines, err := d.Machines(ctx)
	if err != nil {
		d.unread("Machines", err)
		return
	}
	d.machines, d.owners = machines, account.NewOwners(machines)
	for _, in := range d.accounts {
		var otherwise []string
		for i := range d.servers[in] {
			server := &d.servers[in][i]
			for _, machine := range d.owners.ByID(server) {
				if account.IsListedOtherwise(machine, server, in.Session.ProjectID) {
					otherwise = append(otherwise, fmt.Sprintf("%s/%s (%s)", machine.Namespace, machine.Name, report.Quoted(machine.Spec.ProviderID)))
				}
			}
		}
		if len(otherwise) > 0 {
			d.place = d.placeOf(in)
			d.wrong("Machines", fmt.Sprintf("%s named by a ProviderID of another form than the driver's: %s",
				report.Count(len(otherwise), "server"), report.Some(otherwise)), account.RemedyListedOtherwise)
		}
	}
	d.place = place{}
}

// examineClusterLabels looks for two clusters with one cluster label: they would adopt and
// delete each other's servers. Another namespace of the control cluster is seen there, a
// cluster elsewhere only by its servers.
func (d *Doctor) examineClusterLabels(ctx context.Context) {
	if d.Control == nil || len(d.classes) == 0 {
		return
	}
	d.looking("cluster labels")
	used := sets.New[clusterLabel]()
	for _, class := range d.classes {
		used.Insert(labelsOf(class.Inputs)...)
	}
	labels := slices.SortedFunc(maps.Keys(used), func(a, b clusterLabel) int {
		return strings.Compare(a.subject()+a.projectID, b.subject()+b.projectID)
	})
	everywhere, err := d.Classes(ctx)
	defer func() { d.place = place{} }()
	for _, label := range labels {
		d.place = place{projectID: label.projectID}
		if err != nil {
			d.unread(label.subject()+" in other namespaces", err)
			continue
		}
		before := len(d.findings)
		d.findOtherNamespaces(ctx, label, everywhere)
		d.findOrphans(label, everywhere)
		switch {
		case len(d.findings) > before:
		case d.owners != nil && d.readServers(label):
			d.fine(label.subject(), "no other namespace uses it in this project, and no server of another cluster carries it")
		default:
			d.unknown(label.subject(), "no other namespace uses it; whether servers of another cluster carry it was not looked at", "")
		}
	}
}

// readServers says whether the servers of the label's project were read.
func (d *Doctor) readServers(label clusterLabel) bool {
	return slices.ContainsFunc(d.accounts, func(account *account.Account) bool {
		_, read := d.servers[account]
		return read && account.Session.ProjectID == label.projectID
	})
}

func labelsOf(inputs *provider.Inputs) []clusterLabel {
	var labels []clusterLabel
	for key, value := range inputs.ClusterLabels {
		labels = append(labels, clusterLabel{inputs.Secret.ProjectID, key, value})
	}
	return labels
}

// findOtherNamespaces reports the classes of other namespaces with the label. The same label
// in another project is harmless.
func (d *Doctor) findOtherNamespaces(ctx context.Context, label clusterLabel, classes []*v1alpha1.MachineClass) {
	var shared, unclear []string
	for _, class := range classes {
		if class.Namespace == d.Namespace || account.IsForeign(class) {
			continue
		}
		if value, ok := provider.Inspect(class, nil).ClusterLabels[label.key]; !ok || value != label.value {
			continue
		}
		secret, err := d.SecretOf(ctx, class)
		switch {
		case err != nil:
			unclear = append(unclear, account.Subject(class))
		case slices.Contains(labelsOf(provider.Inspect(class, secret)), label):
			shared = append(shared, account.Subject(class))
		}
	}
	if len(shared) > 0 {
		d.wrong(label.subject(), fmt.Sprintf("also used by %s, in the same project", report.Some(shared)), oneValuePerCluster)
	}
	if len(unclear) > 0 {
		d.unknown(label.subject(), fmt.Sprintf("also used by %s, in a project that cannot be told: its Secret cannot be read", report.Some(unclear)),
			"see that it is another project, or "+oneValuePerCluster)
	}
}

// findOrphans hints at servers with the label that belong to nothing in this control cluster.
func (d *Doctor) findOrphans(label clusterLabel, classes []*v1alpha1.MachineClass) {
	if d.owners == nil {
		return
	}
	known := sets.New[string]()
	for i := range classes {
		known.Insert(classes[i].Name)
	}
	var ofNoClass, ofNoMachine, deleting []string
	for _, server := range d.orphans(label) {
		class := server.Labels[provider.StackitMachineClassLabel]
		switch {
		case server.IsDeleting():
			deleting = append(deleting, server.Name)
		case !known.Has(class):
			ofNoClass = append(ofNoClass, fmt.Sprintf("%s (class %q)", server.Name, class))
		default:
			ofNoMachine = append(ofNoMachine, server.Name)
		}
	}
	if len(ofNoClass) > 0 {
		d.hint(label.subject(), fmt.Sprintf("on %s of no MachineClass and no Machine here: %s", report.Count(len(ofNoClass), "server"), report.Some(ofNoClass)),
			"if another cluster uses this value: "+oneValuePerCluster+"; if none does, \"mcm-stackit clean\" deletes such servers")
	}
	if len(ofNoMachine) > 0 {
		d.hint(label.subject(), fmt.Sprintf("on %s of a MachineClass here but no Machine: %s", report.Count(len(ofNoMachine), "server"), report.Some(ofNoMachine)),
			"the sidecar deletes them within 15 minutes, or 30 in Gardener: if they belong to another cluster, stop the sidecar now")
	}
	if len(deleting) > 0 {
		d.hint(label.subject(), fmt.Sprintf("on %s of no Machine, being deleted already: %s", report.Count(len(deleting), "server"), report.Some(deleting)), "")
	}
}

// orphans are the servers with the label that are orphans of a class of the namespace.
func (d *Doctor) orphans(label clusterLabel) []*provider.Server {
	var clusters []map[string]string
	for _, class := range d.classes {
		if class.Inputs.Secret.ProjectID == label.projectID {
			clusters = append(clusters, class.Inputs.ClusterLabels)
		}
	}
	var orphans []*provider.Server
	for _, in := range d.accounts {
		if in.Session.ProjectID != label.projectID {
			continue
		}
		for i := range d.servers[in] {
			server := &d.servers[in][i]
			if server.Labels[label.key] == label.value && account.WhoseIs(server, clusters, d.owners) == account.Orphan {
				orphans = append(orphans, server)
			}
		}
	}
	return orphans
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/deleteserver"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

type evidence = deleteserver.Evidence

const (
	lost    = "lost-1"
	lostID  = "20000000-0000-4000-8000-00000000000a"
	otherID = "20000000-0000-4000-8000-00000000000b"
)

// orphan is the evidence about a server that may be deleted: a MachineClass has its cluster label, and another server
// of its cluster has a Machine and a Node.
func orphan() *evidence {
	date := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	class := testrig.Class("worker", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
	return &deleteserver.Evidence{
		Server: &provider.Server{ID: lostID, Name: lost, Status: "ACTIVE", CreatedAt: date.Add(-2 * time.Hour),
			Labels: testrig.Labels(lost, "worker", testrig.OwnCluster)},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::a")},
		Date:      date,
		Siblings:  []string{lostID, otherID},
		Classes:   []*account.Class{account.NewClass(class)},
		Machines:  []v1alpha1.Machine{*testrig.Machine("worker-0", "worker", otherID)},
		Nodes:     []corev1.Node{*testrig.Node("worker-0", otherID, corev1.ConditionTrue)},
	}
}

func TestRefusal(t *testing.T) {
	label := func(key, value string) func(*evidence) {
		return func(e *evidence) { e.Server.Labels[key] = value }
	}
	machine := func(name, namespace, providerID string) func(*evidence) {
		return func(e *evidence) {
			made := testrig.Machine(name, "worker", "")
			made.Namespace, made.Spec.ProviderID = namespace, providerID
			e.Machines = append(e.Machines, *made)
		}
	}
	node := func(change func(*corev1.Node)) func(*evidence) {
		return func(e *evidence) {
			made := testrig.Node("n", "", corev1.ConditionUnknown)
			change(made)
			e.Nodes = append(e.Nodes, *made)
		}
	}
	address := func(kind corev1.NodeAddressType, address string) func(*evidence) {
		return node(func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: "a", Address: "::1"}, {Type: kind, Address: address}}
		})
	}
	upper, bare := strings.ToUpper(lostID), strings.ReplaceAll(lostID, "-", "")
	const tag, ofNode = "kubernetes.io-cluster-shoot", "Node n of the target cluster names it"
	for name, row := range map[string]struct {
		change func(*evidence)
		says   string
	}{
		"an orphan":                     {func(*evidence) {}, ""},
		"an orphan of a class gone":     {label(provider.StackitMachineClassLabel, "old"), ""},
		"one value under two keys":      {label("a.io/cluster", testrig.OwnCluster), ""},
		"a class of another namespace":  {func(e *evidence) { e.Classes[0].Namespace = "elsewhere" }, ""},
		"in ERROR":                      {func(e *evidence) { e.Server.Status = "ERROR" }, ""},
		"a Node's name begins with its": {node(func(n *corev1.Node) { n.Name = lost + "0" }), ""},
		"a Machine names it by ID":      {machine("other", "a", lostID), "Machine a/other names it"},
		"a Machine, in another form": {machine("other", "a", "openstack:///eu01/"+strings.ToUpper(lostID)),
			"a/other names it"},
		"a Machine has its name":       {machine(lost, "elsewhere", ""), "Machine elsewhere/lost-1 names it"},
		"a Machine has its name alone": {machine(lost, "a", "aws:///eu-central-1/i-0abc"), "Machine a/lost-1 names it"},
		"it is a Machine's second":     {machine(lost, "a", otherID), "Machine a/lost-1 names it"},
		"a Machine, without hyphens":   {machine("other", "a", bare), "Machine a/other names it"},
		"it lacks the machine label":   {label(provider.StackitMachineLabel, ""), "its owner is unknown"},
		"it lacks the class label":     {label(provider.StackitMachineClassLabel, ""), "its owner is unknown"},
		"it has no cluster label": {func(e *evidence) { delete(e.Server.Labels, testrig.ClusterKey) },
			"no cluster label"},
		"it is another cluster's": {label(testrig.ClusterKey, "x"), "has its cluster label kubernetes.io/cluster=x"},
		"it is of two clusters":   {label("a.io/cluster", "x"), "of different values: a.io/cluster=x,kuber"},
		"one of two is empty":     {label("a.io/cluster", ""), "of different values: a.io/cluster=,kuber"},
		"no MachineClass":         {func(e *evidence) { e.Classes = nil }, "no MachineClass of the control cluster"},
		"a class of another provider": {func(e *evidence) { e.Classes[0].Provider = "aws" },
			"no MachineClass of"},
		"its machine label was edited": {label(provider.StackitMachineLabel, "lost-9"), "its name is not lost-9"},
		"it has OpenStack's tag":       {label(tag, "1"), "OpenStack's tag " + tag},
		"OpenStack's tag in metadata": {func(e *evidence) { e.Server.Metadata = map[string]string{tag: "1"} },
			"tag " + tag},
		"it is young": {func(e *evidence) { e.Server.CreatedAt = e.Date.Add(-59 * time.Minute) }, "only 59m0s"},
		"the API's clock is behind": {func(e *evidence) { e.Date = e.Server.CreatedAt.Add(-time.Hour) },
			"only -1h0m0s"},
		"an answer without a Date": {func(e *evidence) { e.Date = time.Time{} }, "its age is unknown"},
		"no creation time":         {func(e *evidence) { e.Server.CreatedAt = time.Time{} }, "its age is unknown"},
		"no addresses":             {func(e *evidence) { e.Addresses = nil }, "the API returned no addresses"},
		"a NIC without address": {func(e *evidence) { e.Addresses = append(e.Addresses, netip.Addr{}) },
			"or of one of its NICs"},
		"a Node has its ID":         {node(func(n *corev1.Node) { n.Spec.ProviderID = "a:///a/" + lostID }), ofNode},
		"a Node has its UUID":       {node(func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = upper }), ofNode},
		"a Node has its machine ID": {node(func(n *corev1.Node) { n.Status.NodeInfo.MachineID = bare }), ofNode},
		"a Node has its host's name": {func(e *evidence) {
			e.Server.Name, e.Server.Labels[provider.StackitMachineLabel] = "worker-0.pool", "worker-0.pool"
		}, "Node worker-0 of the target cluster names it"},
		"a Node has its name":         {node(func(n *corev1.Node) { n.Name = lost + ".example.org" }), "Node lost-1.example"},
		"a Node has its host":         {address(corev1.NodeHostName, lost), ofNode},
		"a Node has its address":      {address(corev1.NodeInternalIP, "10.0.0.1"), ofNode},
		"a Node has its IPv6 address": {address(corev1.NodeExternalIP, "FD00:0:0:0:0:0:0:A"), ofNode},
		"its address mapped to IPv6":  {address(corev1.NodeInternalIP, "::ffff:10.0.0.1"), ofNode},
		"no Node":                     {func(e *evidence) { e.Nodes = nil }, "none of the 0 Nodes of the target cluster"},
		"the target is another cluster": {func(e *evidence) { e.Siblings = []string{lostID} },
			"none of the 1 Nodes"},
		"only a Machine names a sibling": {func(e *evidence) { e.Nodes[0].Spec.ProviderID = "" },
			"none of the 1 Nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			evidence := orphan()
			row.change(evidence)
			got := evidence.Refusal()
			if !strings.Contains(got, row.says) || (got == "") != (row.says == "") {
				t.Errorf("got %q, want %q", got, row.says)
			}
		})
	}
}

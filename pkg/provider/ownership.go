// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// StackitProviderName is the scheme of ProviderIDs and the name of this provider in
	// MachineClasses and metrics.
	StackitProviderName = providerid.Scheme
	// StackitMachineLabel is the key of the server label that holds the Machine's name.
	StackitMachineLabel = "kubernetes.io/machine"
	// StackitMachineClassLabel is the key of the server label that holds the MachineClass's name.
	StackitMachineClassLabel = "kubernetes.io/machineclass"

	// clusterLabelSuffix is the end of a cluster label's key. Gardener renders such a label; its
	// domain is configurable there.
	clusterLabelSuffix = "/cluster"
)

// identity is the machine, class and cluster of a driver call, as in a server's labels.
type identity struct {
	machine string
	class   string
	// cluster has the providerSpec's cluster labels: usually one or none.
	cluster map[string]string
	// unlabelable reports whether the machine's or class's name is not valid in a label, so that no
	// server carries it.
	unlabelable bool
	// fromOpenStack reports whether the Machine came from OpenStack: its server may have its name and
	// none of our labels, and it gets no second one.
	fromOpenStack bool
	// byName reports whether it also has no ProviderID: then the name identifies its server.
	byName bool
}

// newIdentity takes the cluster labels from the providerSpec's labels.
func newIdentity(machine, class string, labels map[string]string) identity {
	cluster := map[string]string{}
	for key, value := range labels {
		if IsClusterLabel(key) {
			cluster[key] = value
		}
	}
	return identity{machine: machine, class: class, cluster: cluster}
}

// IsClusterLabel reports whether a label with this key scopes servers to a cluster: the key ends in
// "/cluster".
func IsClusterLabel(key string) bool { return strings.HasSuffix(key, clusterLabelSuffix) }

// serverLabels returns the labels of a new server: the spec's, overridden by ours.
func (i identity) serverLabels(specLabels map[string]string) map[string]string {
	labels := maps.Clone(specLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[StackitMachineLabel] = i.machine
	labels[StackitMachineClassLabel] = i.class
	return labels
}

// machineSelector selects the machine's servers. Without a cluster label two clusters may have a
// machine of the same name: then the class must match too.
func (i identity) machineSelector() map[string]string {
	selector := map[string]string{}
	maps.Copy(selector, i.cluster)
	selector[StackitMachineLabel] = i.machine
	if len(i.cluster) == 0 {
		selector[StackitMachineClassLabel] = i.class
	}
	return selector
}

// scope returns the labels with which the machine's servers are listed together with others: the
// cluster's or, without a cluster label, the class's. nil selects the whole project: a server from
// OpenStack may have no labels.
func (i identity) scope() map[string]string {
	switch {
	case i.unlabelable, i.fromOpenStack:
		return nil
	case len(i.cluster) > 0:
		return i.cluster
	default:
		return map[string]string{StackitMachineClassLabel: i.class}
	}
}

// classSelector selects the class's servers.
func (i identity) classSelector() map[string]string {
	selector := map[string]string{}
	maps.Copy(selector, i.cluster)
	selector[StackitMachineClassLabel] = i.class
	return selector
}

// matches reports whether a server has the labels of a selector. Lists are filtered again with it.
func matches(server *Server, selector map[string]string) bool {
	for key, value := range selector {
		if actual, ok := server.Labels[key]; !ok || actual != value {
			return false
		}
	}
	return true
}

// contradiction returns the cluster label that names another cluster: the class's key with another
// value, or any other key with a value that no cluster label of the class has.
func (i identity) contradiction(labels map[string]string) (key string, contradicts bool) {
	values := slices.Collect(maps.Values(i.cluster))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		want, isOurKey := i.cluster[key]
		switch {
		case isOurKey && labels[key] != want,
			IsClusterLabel(key) && !slices.Contains(values, labels[key]): // Gardener writes one value under two keys
			return key, true
		}
	}
	return "", false
}

// checkOwned returns an error unless the server is the machine's: only then may it be changed or
// deleted. byID reports whether the request's ProviderID or the record names this server: then its
// name is enough if it has no machine label.
func (i identity) checkOwned(server *Server, byID bool) error {
	if key, contradicts := i.contradiction(server.Labels); contradicts {
		return notOurs(server, key, i.cluster[key])
	}
	label, labelled := server.Labels[StackitMachineLabel]
	switch {
	case labelled && label == i.machine:
		return nil
	case !labelled && byID && server.Name == i.machine,
		i.byName && i.isByName(server.Name, server.Labels, server.Metadata):
		return nil
	default:
		return notOurs(server, StackitMachineLabel, i.machine)
	}
}

// checkUnlabelled returns an error if one of the servers has the machine's name, and neither a machine
// label nor a label or tag of another cluster: it may be the machine's, from OpenStack.
func (i identity) checkUnlabelled(servers []Server) error {
	for at := range servers {
		server := &servers[at]
		_, labelled := server.Labels[StackitMachineLabel]
		if !labelled && i.isByName(server.Name, server.Labels, server.Metadata) {
			return notOurs(server, StackitMachineLabel, i.machine)
		}
	}
	return nil
}

// CheckOwned returns an error unless the server is the Machine's. The driver makes the same check
// before it changes or deletes a server. labels are those of the class's providerSpec; byID reports
// whether the Machine's ProviderID has this server's ID. The error's code is FailedPrecondition.
func CheckOwned(machine, class string, labels map[string]string, server *Server, byID bool) error {
	return newIdentity(machine, class, labels).checkOwned(server, byID)
}

// FoundByName reports whether the driver finds the server when it looks up a Machine without a
// ProviderID: the server has the Machine's labels, and no label of another cluster. labels are those
// of the class's providerSpec.
func FoundByName(machine, class string, labels map[string]string, server *Server) bool {
	identity := newIdentity(machine, class, labels)
	return matches(server, identity.machineSelector()) && identity.checkOwned(server, false) == nil
}

// checkRead checks a server that was read by its ID: every such server passes here on its way into a
// call. The record notes that its server was shown.
func (c *call) checkRead(server *Server) error {
	if c.machine == "" {
		return nil // the caller names the server, and only reads it
	}
	isRecorded := server.ID == c.record().serverID
	err := c.checkOwned(server, isRecorded || server.ID == c.serverID)
	if err == nil && isRecorded {
		c.records.change(&c.ref, func(known *record) { known.shown(server.ID) })
	}
	return err
}

// CompareServers orders a Machine's servers by preference, the server to keep first: running before
// all others, ERROR last, then by age, oldest first, then by ID.
func CompareServers(a, b *Server) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// rank returns a server's rank: running first, ERROR last.
func rank(server *Server) int {
	switch server.Status {
	case statusActive:
		return 0
	case statusError:
		return 2
	default:
		return 1
	}
}

// notOurs returns the refusal of a server whose label does not have the value want.
func notOurs(server *Server, label, want string) error {
	is := fmt.Sprintf("%q", server.Labels[label])
	if _, ok := server.Labels[label]; !ok {
		is = "missing"
	}
	must := fmt.Sprintf("%q", want)
	if want == "" {
		must = "absent, or set in providerSpec.labels"
	}
	return &Error{Reason: ReasonNotOurs, Label: label, Text: fmt.Sprintf(
		"server %s (%s) is not this machine's and is left alone: its label %s is %s: must be %s; "+
			"restore the label if the server belongs to the machine",
		server.ID, server.Name, label, is, must)}
}

// isNotOurs reports whether a server was refused because it is not the machine's.
func isNotOurs(err error) bool { return reasonOf(err) == ReasonNotOurs }

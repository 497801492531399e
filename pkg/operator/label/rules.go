// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package label

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// reservedPrefix begins the keys of labels that only STACKIT may set. Source: the API document.
const reservedPrefix = "stackit-"

// judge says what is to be done with a Machine's server; nil is one that no list showed: it is
// read by its ID.
func (p *Plan) judge(ctx context.Context, one *Server, server *provider.Server) {
	one.Labels = nil
	if reason := one.refusesMachine(); reason != "" {
		one.end(Refused, reason)
		return
	}
	if server == nil {
		var err error
		server, err = one.at.Server(ctx, one.ID)
		if provider.IsNotFound(err) {
			one.end(Refused, fmt.Sprintf("project %s in %s has no such server", one.ProjectID, one.Region))
			return
		}
		if err != nil {
			one.end(Unknown, one.at.Failure(err).Error())
			return
		}
	}
	if reason := p.refusesServer(one, server); reason != "" {
		one.end(Refused, reason)
		return
	}
	one.Labels = one.wanted()
	maps.DeleteFunc(one.Labels, func(key, _ string) bool { _, ok := server.Labels[key]; return ok })
	if one.end(Missing, ""); len(one.Labels) == 0 {
		one.end(Complete, "")
	}
}

// refusesMachine says why no server is labelled for a Machine; "" if one may be.
func (s *Server) refusesMachine() string {
	switch {
	case s.class == nil:
		return fmt.Sprintf("MachineClass %s does not exist", s.Class)
	case s.class.Inputs.ClusterUnknown:
		return fmt.Sprintf("the cluster label of MachineClass %s cannot be used: repair its providerSpec.labels", s.Class)
	case s.at == nil:
		return fmt.Sprintf("the credentials of MachineClass %s cannot be used: see mcm-stackit doctor", s.Class)
	case s.ProviderID == "":
		return "its Machine has no ProviderID, and no server is labelled by its name alone: the driver writes the ProviderID once it finds the server"
	}
	if _, err := providerid.Parse(s.ProviderID, s.ProjectID); err != nil {
		return err.Error()
	}
	return ""
}

// refusesServer says why a server is left alone; "" if it may be labelled. The manager compares
// ProviderIDs as texts: if the driver lists a server by another than its Machine has, the manager
// deletes it as an orphan. So labels come after ProviderIDs.
func (p *Plan) refusesServer(one *Server, server *provider.Server) string {
	listed := providerid.Format(one.ProjectID, server.ID)
	switch {
	case account.IsListedOtherwise(one.machine, server, one.ProjectID):
		return fmt.Sprintf("the ProviderID is %s, and the server has both labels already: %s", one.ProviderID, account.RemedyListedOtherwise)
	case one.ProviderID != listed:
		return fmt.Sprintf("the ProviderID is %s: with the labels the manager would delete the server as an orphan; first write %s into the Machine's spec.providerID", one.ProviderID, listed)
	case server.IsDeleting():
		return "it is " + server.Status
	}
	for _, other := range p.owners.ByID(server) {
		if other.Name != one.Machine || other.Namespace != one.Namespace {
			return fmt.Sprintf("Machine %s/%s names it, too", other.Namespace, other.Name)
		}
	}
	want := one.wanted()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := server.Labels[key]; ok && value != want[key] {
			return fmt.Sprintf("its label %s is %s, not %s", key, report.Quoted(value), report.Quoted(want[key]))
		}
	}
	if !provider.IsByName(one.Machine, one.class.Inputs.ClusterLabels, server.Name, server.Labels, server.Metadata) {
		return fmt.Sprintf("its name %s is not the Machine's, or a label or its metadata names another cluster", report.Quoted(server.Name))
	}
	return ""
}

// wanted are the labels by which the driver finds the server: its two, and those of the cluster.
func (s *Server) wanted() map[string]string {
	want := maps.Clone(s.class.Inputs.ClusterLabels)
	want[provider.StackitMachineLabel], want[provider.StackitMachineClassLabel] = s.Machine, s.Class
	return want
}

// sendable are the labels that the API lets be sent.
func sendable(labels map[string]string) map[string]string {
	sent := maps.Clone(labels)
	maps.DeleteFunc(sent, func(key, _ string) bool { return strings.HasPrefix(key, reservedPrefix) })
	return sent
}

// compare says whether an answer shows the labels that a server should have then.
func compare(want, got map[string]string) (Outcome, string) {
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch value, ok := got[key]; {
		case !ok:
			differ = append(differ, key+" is missing")
		case value != want[key]:
			differ = append(differ, fmt.Sprintf("%s is %s, not %s", key, report.Quoted(value), report.Quoted(want[key])))
		}
	}
	if len(differ) > 0 {
		return Wrong, "after the change its labels are not as they should be: " + strings.Join(differ, ", ") + "; no other server is changed"
	}
	return Labelled, ""
}

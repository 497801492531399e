// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package providerid reads and writes the ProviderIDs of STACKIT servers.
//
// Two things must never change. The first is what Format returns: every Machine has such a ProviderID, and
// the manager compares ProviderIDs as strings, so a server that is listed with another string counts as
// an orphan and is deleted. The second is that the server's ID follows the last slash: by that part
// cluster-autoscaler matches Machines to Nodes.
//
// Parse reads more formats. STACKIT's cloud controller manager writes stackit://<server> to Nodes.
// Machines that came from OpenStack have openstack://…/<server>, with anything or nothing before
// the last slash: Gardener's provider writes openstack:///<region>/<server>, cloud controllers
// openstack:///<server> or openstack://<region>/<server>.
package providerid

import (
	"fmt"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

const (
	// Scheme is the scheme of the ProviderIDs that Format writes.
	Scheme          = "stackit"
	openstackScheme = "openstack"
)

// Format returns the ProviderID of a server: stackit://<projectID>/<serverID>.
func Format(projectID, serverID string) string {
	return Scheme + "://" + projectID + "/" + serverID
}

// IsOpenStack reports whether a ProviderID has the scheme of OpenStack, in any of its forms.
func IsOpenStack(providerID string) bool {
	return strings.HasPrefix(providerID, openstackScheme+"://")
}

// Parse returns the server's ID. If the ProviderID contains a project, the project must be
// projectID.
func Parse(providerID, projectID string) (serverID string, err error) {
	scheme, rest, ok := strings.Cut(providerID, "://")
	first, second, twoParts := strings.Cut(rest, "/")
	switch {
	case ok && scheme == Scheme && !twoParts:
		serverID = first
	case ok && scheme == Scheme && first == projectID:
		serverID = second
	case ok && scheme == Scheme && validation.IsUUID(first):
		return "", fmt.Errorf("providerID %q belongs to project %s, but the Secret's project is %s",
			providerID, first, projectID)
	case ok && scheme == openstackScheme && twoParts:
		serverID = rest[strings.LastIndexByte(rest, '/')+1:]
	}
	if !validation.IsUUID(serverID) {
		return "", fmt.Errorf("providerID %q is invalid: must be %s", providerID, Format("<projectId>", "<serverId>"))
	}
	return serverID, nil
}

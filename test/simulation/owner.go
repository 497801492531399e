// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// owner is whose server something is.
type owner struct{ cluster, machine string }

// ownerOf says for whom a server was made: its metadata and its name do, which nobody
// changes. Its labels may be lost, or edited.
func ownerOf(server *iaasmock.Server) owner { return owner{server.Metadata[clusterField], server.Name} }

func serverOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// mayJoin says that the server's Node is there, or may come.
func mayJoin(server *iaasmock.Server) bool {
	return server.Status != iaasmock.StatusDeleting && server.Status != iaasmock.StatusError
}

func anyServer(*iaasmock.Server) bool { return true }

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package operator is what the command mcm-stackit does, as a library: it checks classes
// and credentials, shows a project's servers beside the Machines of a cluster, and deletes
// servers that belong to nobody.
//
// It decodes, judges and calls the API as the driver does, with the driver's own packages:
// where it says that a class is wrong, the driver refuses it, and a server is deleted by
// the driver's DeleteMachine. Nothing is written to disk, and no text has a secret in it.
//
// An Operator has what the commands share: the clusters, manifests and credentials that the
// user names. An Account is a project and region in which they work; Findings are what was
// found, with the exit code of it.
package operator

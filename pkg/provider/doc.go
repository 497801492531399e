// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider is the driver that makes machine-controller-manager's Machines
// servers of the STACKIT cloud.
//
// Three promises shape it: never two servers for a machine, never a leaked one, never a
// touched one that is not ours. The files follow a call:
//
//   - instrument.go has the driver's methods, core.go their stories
//   - request.go decodes and checks a request
//   - create.go, delete.go, status.go and nics.go are what the stories do
//   - ownership.go has the labels, and says which server is ours
//   - servers.go finds, reads and awaits servers, with every polling number; gone.go says
//     what proves one gone; readers.go lets callers share the reads
//   - errors.go is the table from a failed API call to what the manager is told; a text
//     about a decision of the driver stands where it is decided
//   - exhaustion.go remembers which classes ran out of quota or capacity
//   - stackit_client.go is what the driver needs of the API, sdk_client.go how the SDK
//     does it
//
// Package ledger remembers what this process did for each machine, package coalesce lets
// all calls read together: API calls are scarce.
package provider

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider is the driver that makes machine-controller-manager's Machines
// servers of the STACKIT cloud.
//
// Three promises shape it: never two servers for a machine, never a leaked one,
// never a touched one that is not ours. identity.go says which server is whose,
// ledger.go remembers what this process itself did, create.go and delete.go act
// only on what is certain, and errors.go tells the manager what to do next. API calls
// are scarce: inventory.go lets all calls read together, at the times that
// schedule.go decides.
package provider

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider is machine-controller-manager's driver for STACKIT: it creates, finds and deletes
// one server for each Machine.
//
// Three promises shape it: never two servers for a machine, never a leaked one, never a change to a
// server that is not ours. If something is uncertain (an answer was lost, a list lags, a predecessor
// worked on the machine, the project looks empty for a moment), the driver waits; it never guesses.
//
// core.go has one function for each driver method; instrument.go adds deadline, log line and metrics. A
// request becomes a call (call.go, from the inputs in inputs.go). create.go and delete.go have the steps,
// nics.go those for NICs, openstack.go those for Machines from OpenStack. Below the steps, each file
// answers one question:
//
//   - records.go: what has this process done for the Machine, and may it send a POST?
//   - server.go: what is a server's state, and when is it gone?
//   - reads.go: which callers share a read?
//   - wait.go: does an error end the call, and when is the next read due?
//   - ownership.go: which server is the Machine's?
//   - capacity.go: which machine type and zone does the next server get?
//   - errors.go: which code and text does the manager get?
package provider

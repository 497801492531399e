// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sim simulates the driver: the real one, with its HTTP chain and the SDK, runs against the mock of the
// cloud in one process, in the virtual time of testing/synctest. A small manager (manager_test.go) makes the calls of
// machine-controller-manager: it forgets what it has written, calls with an old Machine, and crashes.
//
// TestLife takes one Machine from its creation to its deletion, once for each fault at each of its API calls. TestPlans
// draws schedules from seeds: users create and delete Machines, faults hit requests, lists lag, lost requests are
// carried out late, clocks differ, processes crash, the API is down for minutes.
//
// Once the faults of a plan are over, the rules (rules_test.go) judge it:
//
//   - each Machine has one server, which runs with its allowed addresses, and nothing is left of a deleted Machine:
//     no server, no volume, no NIC;
//   - where lists lag and lost requests come late by less than the driver's settle together, there are never two
//     servers of a Machine that could join, and a Machine's deletion ends only once its servers are gone;
//   - nothing of another owner changes, and the running server of a Machine that is to stay is never deleted;
//   - no more POSTs of servers are sent than Machines and faults explain;
//   - an error has a reason, and a code that the faults explain;
//   - all this comes true within a bounded time.
//
// The seed fixes what is drawn. Two runs of a seed may still differ: the driver's pauses after failures are random, and
// Go's scheduler orders what happens at the same instant.
package sim

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation lets the real driver (with its HTTP chain, its token flow and
// the SDK) work against the mock of the cloud, in one process and in the virtual
// time of testing/synctest, where an hour takes milliseconds. A model of
// machine-controller-manager makes the calls: Machines with versions and a cache
// that may lag, writes that may fail, the flows of creation and deletion, retry
// periods as the longest gap, orphan runs with the manager's rules.
//
// A seed makes a Plan; from it follows what users want (Machines and classes whose
// names come back), what befalls each request (faults, lost answers, late
// execution, crashes of the process before and after), each driver answer and each
// write, and when keys are rotated. Run looks at every change in the cloud and, once
// nothing goes wrong any more, at what there is:
//
//   - never two servers that could join for a Machine, as long as lists lag and
//     requests are carried out late by less than the driver's settle; beyond that at
//     most one server after one orphan run;
//   - no Machine's running server is deleted that is to stay;
//   - every Machine that is wanted runs and is initialized, every one that is not
//     leaves no server, volume or NIC;
//   - what is another's (or the other cluster's) stays as it is;
//   - every error decodes, and has a code that what happened explains;
//   - nothing that is logged or answered holds a secret.
//
// Live is the life of one Machine with one disturbance: the tests go through all of
// them, at every API call and driver answer.
//
// # What repeats itself
//
// Everything that is drawn depends on the seed and on what it is drawn for (for which
// call, too: the end of a Retry-After lets several go at the same moment), not on what
// else goes on, and hardly any two events have the same moment. What does have it is
// ordered by Go's scheduler: calls that wait for the same list or the next read, or that
// a crash ends together. Seeds with one cluster, one Machine and no crash go the same
// way, as a test checks for 20 of them, nearly all with two such clusters, too; of the
// others about half do, more with GOMAXPROCS=1. A run that fails writes its trace to a
// file, for the case that it does not again.
//
// # What is not covered
//
// Nodes (a Machine "joins" once its server runs and carries its allowed addresses),
// drains, in-place updates, a change of the region, clocks that are wrong, two
// processes that act at the same time, and the network below HTTP.
package simulation

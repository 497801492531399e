// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the real driver (with its HTTP chain, its token flow and the
// SDK) against the mock of the cloud, in one process and in the virtual time of
// testing/synctest, where an hour takes milliseconds. The calls come from
// machine-controller-manager's own machine controller, with its clientsets and caches, which
// talks to an API server in memory (package manager).
//
// A seed makes a Plan, drawn by pgregory.net/rapid, which also shrinks a failing plan. A plan contains:
//
//   - the users' changes: Machines, whose names may be used again, and classes;
//   - the outcome of each request: faults, lost answers, labels that the cloud drops, late execution, crashes of
//     the process before and after the request;
//   - the outcome of each write of the manager to a Machine (conflicts, errors, lost answers, crashes)
//     and the delay of each watch event;
//   - key rotations;
//   - storms: one kind of write, or lists of servers, fail for minutes, or the API executes only two calls
//     a second;
//   - a creation timeout of 45 minutes, with boots of 12 minutes;
//   - where the cloud dropped a server's labels, the labels that users set some minutes later, as the
//     driver's error requests; until then, and in the hour for which its class gets no other servers, Machines
//     may fail for good;
//   - the Machines that came from OpenStack: their server, NIC and volume exist from the beginning, as
//     Gardener's OpenStack provider makes them, and some have none or two of each. They are marked from the
//     beginning or later, have a ProviderID or none, and share their name with NICs, volumes and servers of
//     other owners.
//
// Run watches every change in the cloud and, once the faults are over, checks the result:
//
//   - a Machine never has two servers that could join, as long as the lag of lists
//     and the delay of late requests add up to less than the driver's settle, and the API server's clock is
//     off by at most nine seconds; beyond that, and
//     where single lists are empty by mistake, at most one server after one orphan run;
//   - the running server of a Machine that is to stay is never deleted, not even by a process
//     that no longer leads;
//   - every Machine that is wanted runs, with its allowed addresses; a Machine that is gone
//     leaves no server; at the end, after two orphan runs, no server of ours is left,
//     DELETING included, no volume and no NIC;
//   - resources of another owner, Machine or cluster do not change;
//   - a Machine that came from OpenStack gets no second server, marked or not yet; none of its
//     OpenStack resources is deleted before it is, and none is left when it is gone;
//   - the manager can decode every error, which has a reason, and a code that the faults explain;
//     no Machine is given up (CreationTimedOut) before its creation timeout; none fails for
//     good, unless a fault lasts that long, or a lack of capacity lasts for two of the manager's
//     retries;
//   - no log line or error contains a secret.
//
// A server's owner is recorded at its creation, in its name and metadata, which do not change:
// labels may be lost.
//
// Endure creates Machines in a storm, and measures how many POSTs that takes and how soon all run.
// Live runs one Machine, new or from OpenStack, from its creation to its deletion, with given faults:
// the tests run it once for each fault at each API call and each of the manager's writes.
//
// # Paused leaders
//
// Now and then the leading process is paused, as with SIGSTOP, at any moment or
// once a request has been executed: for less than its lease; for longer, without another process
// taking the lease; or until after another process has taken it, with a driver of its
// own and the same Machines. Meanwhile it does nothing: the driver's timers do not fire,
// its requests are not sent, answers do not reach it. The manager's timers cannot be stopped;
// the driver calls and API server requests that they start wait until the process
// resumes. For some seconds its cache shows the state before the pause, in orphan runs, too.
// If it still has its lease then, it goes on as leader. Otherwise it ends at the latest
// RenewDeadline and RetryPeriod after the pause, which is as late as client-go allows; its
// writes to the API server until then conflict as usual. Its fence is the real one, with the
// manager's default lease; plans without pauses have no fence.
//
// # Repeatability
//
// A seed fixes all random choices, each by its purpose and independent of other events; each step
// of the manager takes a time of its own; and no two timers of the driver's clock fire at
// the same instant. With GOMAXPROCS=1, 197 to 200 of the first 200 plans have the same trace in two
// runs. The others differ where events at the same instant happen in the order of Go's scheduler:
//
//   - calls that one crash ends, or that go on when a pause ends, and deadlines of contexts;
//   - workers of the manager that find a Machine's key in the queue again while its write conflicts;
//   - goroutines that the scheduler interrupts, as where other programs use the processor.
//
// A failing run writes its trace to a file.
//
// # What is not covered
//
//   - The behavior of Nodes (a Machine's Node is Ready while the server in its ProviderID runs), pods
//     that have to be drained, in-place updates, and the network below HTTP. The manager's deletion of
//     a server that belongs to an older Node needs a Node with another name than its Machine, so it
//     never happens.
//   - A Machine with a reused name lives for at most ten minutes. That long after the end of the
//     earlier Machine, or sooner if the manager sees that end late, the manager (v0.62.1) mistakes the new
//     Machine for the earlier one: it sets the phase Terminating without a deletionTimestamp, and panics when
//     it drains the Node. The simulation deletes the new Machine before that.
//   - Outages of the API server.
//   - Manual edits by users: the project in the Secret, a machine label, a Machine's finalizer. The tests
//     of pkg/provider have that.
//   - Labels are dropped only in plans in which no process crashes or is paused: what only the process that
//     created a server knows would be lost with the process. A server that a wrong answer names always has
//     a machine label and a cluster label, which show its owner.
//   - There are Machines from OpenStack only where lists lag less than settle and servers are not
//     hidden for longer than a moment: only their names tell whose these servers are, so that
//     no orphan run finds a lost server. Single lists of NICs or volumes are not empty by mistake
//     in these plans, only in Live: two in a row would leave the NICs or volumes behind.
//   - Clocks: only the API server's clock is off, by the same time in the whole run, and
//     only in its timestamps on Machines. No clock jumps, or runs fast or slowly.
//   - Pauses: the clock of a paused process shows the time at which the pause
//     began, until it ends. Deadlines of contexts and the bucket of API calls follow
//     the real time all the same, so that a call can end in the driver
//     meanwhile. The process cannot send anything then: such a request is lost. A request that
//     was checked but not yet written when the pause began is therefore never sent; a
//     pause that stops all clocks with the process does not happen.
//   - Leadership: a lease is always renewed in time while the process runs, so it is
//     lost by a pause only. A process that has lost it never gets it back, and two
//     never have the same identity.
package simulation

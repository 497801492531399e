// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the real driver (with its HTTP chain, its token flow and the
// SDK) against the mock of the cloud, in one process and in the virtual time of
// testing/synctest, where an hour takes milliseconds. The calls come from
// machine-controller-manager's own machine controller, with its clientsets and caches, which
// asks an API server in memory (package manager).
//
// A seed makes a Plan, drawn by pgregory.net/rapid, which also shrinks a plan that fails. A plan says:
//
//   - what users want: Machines and classes, whose names may be used again;
//   - what happens to each request: faults, lost answers, answers that name another's server, labels that
//     the cloud drops, late execution, crashes of the process before and after it;
//   - what happens to each write of the manager to a Machine (conflicts, errors, lost answers, crashes)
//     and to each event of a watch, which may show late;
//   - when keys are rotated;
//   - hiccups: moments of up to 12 s, a minute apart, in which the project looks empty;
//   - storms: a kind of write or lists of servers fail for minutes, or the API takes two calls a second;
//   - a creation timeout of 45 minutes, with boots of 12;
//   - where the cloud dropped a server's labels, users set those that the driver's error asks for, some
//     minutes later; until then, and in the hour for which its class gets no other servers, Machines may
//     fail for good;
//   - which Machines came from OpenStack: their server, NIC and volume exist from the beginning, as
//     Gardener's OpenStack provider makes them, and some have none or two of each. They are marked from the
//     beginning or later, have a ProviderID or none, and NICs, volumes and servers of others have their name.
//
// Run watches every change in the cloud and, once the faults are over, checks what there is:
//
//   - never two servers that could join for a Machine, as long as lists lag and requests
//     are carried out late by less than the driver's settle, and the API server's clock is
//     off by less than ten seconds; beyond that, and where single lists are empty by
//     mistake, at most one server after one orphan run;
//   - no Machine's running server is deleted that is to stay, not even by a process
//     that does not lead any more;
//   - every Machine that is wanted runs, with its allowed addresses; one that is gone
//     leaves no server; at the end, after two orphan runs, no server of ours is left,
//     DELETING included, no volume and no NIC;
//   - what is another's (or another Machine's, or the other cluster's) stays as it is;
//   - a Machine that came from OpenStack gets no second server, marked or not yet; nothing that it
//     had there is deleted before it is, and nothing is left when it is gone;
//   - every error decodes, and has a reason, and a code that what happened explains; no Machine
//     is given up (CreationTimedOut) before its creation timeout, or fails for good without a
//     fault that takes as long, or lack of room that lasts for two of the manager's retries;
//   - nothing that is logged or answered holds a secret.
//
// Whose a server is, is noted at its creation, in its name and metadata, which nobody
// changes: labels may be lost.
//
// Endure takes Machines through a storm: how many POSTs it costs, and how soon all run.
// Live runs one Machine, a new one or one from OpenStack, to its deletion with one
// disturbance: the tests go through all of them, at every API call and every write of the manager.
//
// # Leaders that stand still
//
// Now and then the process that leads stands still, as with SIGSTOP, at any moment or
// once a request was carried out: for less than its lease; for longer, and nobody
// takes the lease; or until after another process has taken it, with a driver of its
// own and the same Machines. Meanwhile it does nothing: the driver's timers do not fire,
// its requests do not leave, answers do not reach it. The manager's timers cannot be stopped;
// what they bring about, driver calls and requests to the API server, waits until the process
// goes on with what it was doing. For some seconds its cache shows what was true before, in
// orphan runs, too.
// With its lease it goes on as leader; without, it ends as late as client-go sees to
// that (RenewDeadline and RetryPeriod later). What it writes to the API server until
// then conflicts as usual. Its fence is the real one, with the manager's default lease;
// plans in which no leader stands still have none.
//
// # What repeats itself
//
// A seed fixes all random choices, each by what it is drawn for and not by what else goes on; each step
// of the manager takes a time of its own; and no two timers of the clock that the driver is given fire at
// the same instant. With GOMAXPROCS=1, 197 to 200 of the first 200 plans run alike twice: what
// goes on at the same instant all the same does so in the order of Go's scheduler. That is:
//
//   - calls that one crash ends, or that go on when a pause ends, and deadlines of contexts;
//   - workers of the manager that find a Machine's key in the queue again while its write conflicts;
//   - goroutines that the scheduler interrupts, as where other programs use the processor.
//
// A run that fails writes its trace to a file.
//
// # What is not covered
//
//   - What Nodes do (a Machine's Node is Ready while the server runs that its ProviderID names), pods
//     that have to be drained, in-place updates, and the network below HTTP. The manager's deletion of
//     a server whose Node is an older one's needs a Node that is not named like its Machine, so it
//     never happens.
//   - A Machine whose name was another's lives for at most ten minutes: that long after the end of the
//     other, or sooner if the end of it shows late, the manager (v0.62.1) takes it for that, lets it
//     terminate without a deletionTimestamp, and panics when it drains its Node. It is deleted before.
//   - The API server is always there.
//   - What users edit by hand: the project in the Secret, a machine label, a Machine's finalizer. The tests
//     of pkg/provider have that.
//   - Labels are dropped only where every process lives: what only the process knew that
//     made a server is lost with it. The server that a wrong answer names says whose it
//     is, by a machine label and a cluster label.
//   - While there are hiccups nothing else hides servers.
//   - There are Machines from OpenStack only where lists lag less than settle and servers are not
//     hidden for longer than a moment: nothing but their names says whose these servers are, so that
//     no orphan run finds one that is lost. Nor is a single list of NICs or volumes empty by mistake
//     then, but in a life: two in a row would leave them.
//   - Clocks: only that of the API server is off, by the same time in the whole run, and
//     only in what it writes into Machines. No clock jumps, or runs fast or slowly.
//   - Pauses: the clock of a process that stands still shows the time at which that
//     began, until it goes on. Deadlines of contexts and the bucket of API calls go by
//     the real time all the same, so that a call can come to its end in the driver
//     meanwhile. It cannot send anything then: such a request is lost. A request that
//     was checked but not yet written when the pause began is therefore never sent; a
//     pause that stops all clocks with the process does not happen.
//   - Leadership: a lease is always renewed in time while the process runs, so it is
//     lost by a pause only. A process that has lost it never gets it back, and two
//     never have the same identity.
package simulation

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package operator is what the command mcm-stackit does. Each of its packages imports only those
// below it, as a rule of the linter says:
//
//	validate, doctor, list, deleteserver        the tasks; none imports another
//	account                                     what the user named, and reading it; what an orphan is
//	report                                      what was found, how sure, where, the exit code
//
// They decode, check and call the API as the driver does, with the driver's own packages:
// where validate says that a class is wrong, the driver refuses it, and a server is deleted
// by the driver's DeleteMachine. Nothing is written to disk, and no text has a secret in it.
//
// Where to change
//
//   - a check of a class, Machine or Secret: a method of validate's validator (class.go,
//     machines.go), called in check or checkClass; one that asks the API: called in
//     catalogue.check (online.go), by named or ask, with a read that has its permission
//   - a check of doctor: a method in cloud.go (it asks the API), cluster.go or target.go, and a row of
//     accountChecks or clusterChecks (doctor.go); a read that the driver makes: a row of driverReads
//     (cloud.go). Rows of TestAccounts or TestCluster show what it says: red for a finding that none shows
//   - a note of a server or Machine: a NoteKind of list, made in notes.go; a remedy for
//     a reason of the driver: a row in kubernetes/runbooks.md, of which list shows the text
//   - a column: a field of list's Server or Machine, filled in result.go, and a cell in
//     cmd/mcm-stackit/list.go
package operator

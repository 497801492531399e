// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package operator implements the command mcm-stackit. Each of its packages imports only those
// below it; a linter rule enforces that:
//
//	validate, doctor, list, deleteserver        the tasks; none imports another
//	account                                     access to clusters and projects, definition of an orphan
//	report                                      findings, verdicts, positions, exit codes
//
// They decode, check and call the API with the driver's own packages: the driver refuses a class
// that validate reports as wrong, and the driver's DeleteMachine deletes servers. Nothing is
// written to disk, and no output contains a secret.
//
// Where to change
//
//   - a check of a class, Machine or Secret: a method of validate's validator (class.go,
//     machines.go), called in check or checkClass; a check that calls the API: called in
//     catalogue.check (online.go), by named or ask, with a read that has its permission
//   - a check of doctor: a method in cloud.go (it calls the API), cluster.go or target.go, and a row of
//     accountChecks or clusterChecks (doctor.go); a read that the driver makes: a row of driverReads
//     (cloud.go), with its permission in pkg/provider/apis/README.md. Rows of TestAccounts or TestCluster say what it
//     finds: a whole run of doctor's tests fails for a finding that none of them makes. The help in
//     cmd/mcm-stackit/doctor.go lists the checks
//   - a note of a server or Machine: a NoteKind of list, made in notes.go; a remedy for
//     a reason of the driver: a row in kubernetes/runbooks.md, whose text list shows
//   - a column: a field of list's Server or Machine, filled in result.go, and a cell in
//     cmd/mcm-stackit/list.go
package operator

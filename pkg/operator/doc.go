// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package operator groups the packages behind the command mcm-stackit. A package imports only
// packages that are listed below it, which a linter rule enforces:
//
//	validate, doctor, list, deleteserver        the tasks; none imports another
//	account                                     access to clusters and projects, definition of an orphan
//	report                                      findings, verdicts, positions, exit codes
//
// The packages decode, check and call the API with the driver's own code: validate reports the
// errors for which the driver refuses a class, and servers are deleted by the driver's
// DeleteMachine. Nothing is written to disk. No output contains a secret,
// except a console log in which the server wrote one.
//
// To add something:
//
//   - a check of a class, Machine or Secret: write a method of validate's validator (class.go,
//     machines.go), and call it in check or checkClass. If it calls the API, call it in
//     catalogue.check (online.go), and read with named or ask and a read value that names the
//     permission
//   - a check of doctor: write a method in cloud.go (with API calls), cluster.go or target.go, and
//     add it to accountChecks or clusterChecks (doctor.go) and to the help in
//     cmd/mcm-stackit/doctor.go. Cover each finding by a row of TestAccounts or TestCluster: a full
//     run of doctor's tests fails if a finding is not covered
//   - a read that the driver makes: add a row to driverReads (doctor/cloud.go), and its permission
//     to pkg/provider/apis/README.md
//   - a note about a server or Machine: add a NoteKind to list, and create the note in notes.go
//   - a remedy for one of the driver's reasons: add a row to kubernetes/runbooks.md; list shows its
//     text
//   - a column: add a field to list's Server or Machine, set it in result.go, and add a cell in
//     cmd/mcm-stackit/list.go
package operator

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package operator groups the packages behind the command mcm-stackit. A package imports only
// packages that are listed below it, which a linter rule enforces:
//
//	validate, doctor, list, deleteserver        the tasks; none imports another
//	check                                       what is wrong with a class, a Secret, a Machine
//	account                                     access to clusters and projects, owners of servers
//	report                                      findings, verdicts, the runbook's remedies, exit codes
//
// They decode, check and call the API with the driver's own code, and servers are deleted by its
// DeleteMachine. Nothing is written to disk. No output contains a secret, except a console log in
// which the server wrote one.
package operator

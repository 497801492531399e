// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package controller runs the integration suite that machine-controller-manager
// (MCM) has for all its providers, unchanged, on a local environment: MCM and the
// sidecar create, scale, roll and delete Machines and MachineDeployments, and must
// leave nothing in the cloud.
//
// The suite expects a checkout of MCM in dev/mcm, folders beside it, variables that it
// reads before any test runs, "make start" in both checkouts, and to be alone on the
// computer. So the test runs itself a second time, with those variables, in a temporary
// folder that looks as the suite expects (testdata/workspace). It writes nothing to the
// working tree but the sidecar in bin/.
//
// With REAL=1 it works in a real project, which variables name: test/probes/README.md.
package controller

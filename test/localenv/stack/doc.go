// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package stack runs everything that turns a Machine into requests to an IaaS API, on one
// computer and without containers: etcd, kube-apiserver, machine-controller-manager and this
// project's machine-controller, each as a process. The API is a parameter (WithCloud):
// package localenv adds the mock and Nodes, test/cloud the real one.
//
// One API server is both control and target cluster, unless WithTargetCluster is set. This package
// starts API servers and etcd itself rather than with controller-runtime's envtest, which neither
// reports the death of a process nor ends its processes when the test binary is killed.
//
// The controllers act as members of system:masters, with flags that suit tests. For tests of a
// Deployment, StartPod runs its Pods instead, with their containers' arguments, environment,
// Secrets and service account.
//
// # Where kube-apiserver and etcd come from
//
// "make localenv" builds the controllers into bin/localenv, and puts kube-apiserver and etcd
// into bin/controlplane; targets of make that need them run it first. This package only starts
// these programs. KUBEBUILDER_ASSETS names another folder with kube-apiserver and etcd. Without it,
// make takes the first of these that exists:
//
//   - The programs of an earlier make in bin/controlplane.
//   - The archive that controller-tools publishes, if its server answers within 5 s.
//     ENVTEST_INDEX=<url> is the index of a mirror for setup-envtest.
//   - A build from source of the pinned module hack/tools/controlplane, up to 10 minutes on 2
//     cores. CONTROLPLANE=source does not try to download.
//
// Only Go and make are needed. Linux and macOS are supported, with one difference: if the process
// that uses this package is killed (SIGKILL, a panic, the timeout of "go test"), Linux kills all
// parts with it; on macOS they keep running, and you must end them by hand. The next environment
// removes the temporary folder.
package stack

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package stack runs, on one computer and without containers, what turns a Machine into
// requests to an IaaS API: etcd, kube-apiserver, machine-controller-manager and this
// project's machine-controller as processes of their own. The API is a parameter (Cloud):
// package localenv adds the mock and Nodes, test/cloud the real one.
//
// One API server is both control and target cluster, unless WithTargetCluster asks for
// two. They and etcd are started here rather than by controller-runtime's envtest, which
// neither reports the death of a process nor takes its processes down when the test binary
// is killed.
//
// The controllers act as members of system:masters, with flags that suit tests. Where a
// Deployment is what is tested, StartPod runs its Pods instead: their containers'
// arguments, environment, Secrets and service account.
//
// # Where kube-apiserver and etcd come from
//
// The first of these that there is:
//
//   - The folder that KUBEBUILDER_ASSETS names.
//   - The ignored folder bin/, which an earlier start has filled.
//   - An archive that controller-tools has published, if its server answers within 5 s, with
//     the SHA512 that is pinned here.
//   - The build from source of the pinned module hack/tools/controlplane, about 5
//     minutes on 2 cores. LOCALENV_BUILD=source keeps from downloading.
//
// A line of progress says what is downloaded and from where, or why it is not.
// LOCALENV_ENVTEST_URL names the archive at a mirror. It must have the pinned checksum;
// LOCALENV_ENVTEST_SHA512 is that of one that the mirror has packed itself.
//
// Only Go is needed. Linux and macOS are supported, with one difference: where
// the process that uses this package is killed (SIGKILL, a panic, the timeout of
// "go test"), Linux kills all parts with it; on macOS they go on running and must
// be ended by hand. Its temporary folder is removed when the next environment
// starts.
package stack

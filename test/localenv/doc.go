// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package localenv runs everything a Machine needs to become a server and a
// Node, on one computer and without containers: etcd, kube-apiserver,
// machine-controller-manager, this project's machine-controller as a process of
// its own, the mock of the STACKIT IaaS API, and a simulator that registers a
// Node for each running server. It serves tests and hack/dev alike.
//
//	env, err := localenv.Start(ctx)
//	if err != nil {
//		return err // names the part and shows the end of its log
//	}
//	defer env.Stop()
//	if err := env.ApplyFile(ctx, "samples/secret.yaml"); err != nil {
//		return err
//	}
//	// env.Client() talks to the API server, env.Cloud() shows what the cloud holds.
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
//   - A download by setup-envtest (pinned by hack/tools/setup-envtest), if its index
//     answers within 3 s and names the archive with the SHA512 that is pinned here.
//   - The build from source of the pinned module hack/tools/controlplane, about 5
//     minutes on 2 cores. LOCALENV_BUILD=source keeps from downloading.
//
// A line of progress says what is downloaded and from where, or why it is not.
// LOCALENV_ENVTEST_INDEX names the index of a mirror. Its archives must have the
// pinned checksums; LOCALENV_ENVTEST_SHA512 is the checksum of one that the mirror has
// packed itself.
//
// Only Go is needed. Linux and macOS are supported, with one difference: where
// the process that uses this package is killed (SIGKILL, a panic, the timeout of
// "go test"), Linux kills all parts with it; on macOS they go on running and must
// be ended by hand. Its temporary folder is removed when the next environment
// starts.
package localenv

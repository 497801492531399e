// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package localenv runs everything that turns a Machine into a server and a Node, on one computer
// and without containers: etcd, kube-apiserver, machine-controller-manager, this project's
// machine-controller as a separate process, the mock of the STACKIT IaaS API, and a simulator that
// registers a Node for each running server. Tests and hack/dev use it.
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
// One API server is both control and target cluster, unless WithTargetCluster is set. The controllers act as members of
// system:masters, with flags that suit tests; for tests of a Deployment, StartPod runs its Pods instead, with their
// containers' arguments, environment, Secrets and service account.
//
// "make localenv" builds the controllers into bin/localenv, and puts kube-apiserver and etcd into bin/controlplane:
// downloaded by setup-envtest where its server answers (ENVTEST_INDEX=<url> is the index of a mirror), else built from
// the module hack/tools/controlplane, about 15 minutes on 2 cores; CONTROLPLANE=source only builds. KUBEBUILDER_ASSETS
// names another folder with the two.
//
// If the process that uses this package is killed, its etcd and kube-apiserver go on. The next Start names them.
package localenv

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
// Package stack provides the parts that need no mock. Its documentation describes where
// kube-apiserver and etcd come from: go doc ./test/localenv/stack.
package localenv

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command mcm-stackit checks MachineClasses and credentials for STACKIT, shows a project's
// servers beside the Machines of a cluster, and deletes servers that belong to nobody. As
// kubectl-mcm_stackit it is a plugin of kubectl. Its README shows it at work.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	os.Exit(run())
}

func run() int {
	o := newOptions(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.LookupEnv)
	return o.execute(context.Background(), os.Args)
}

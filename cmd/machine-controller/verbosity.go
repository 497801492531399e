// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// maxVerbosity is the highest at which the Kubernetes client prints no bodies of
// answers (client-go, transport/round_trippers.go): those of Secrets hold keys.
const maxVerbosity = 7

// capVerbosity keeps Secrets out of the log, whatever --v says.
func capVerbosity(flags *pflag.FlagSet) {
	flag := flags.Lookup("v")
	if flag == nil {
		return
	}
	if level, err := strconv.Atoi(flag.Value.String()); err != nil || level <= maxVerbosity {
		return
	}
	if err := flags.Set("v", strconv.Itoa(maxVerbosity)); err != nil {
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.InfoS("The log's verbosity is limited: beyond it the Kubernetes client prints Secrets", "v", maxVerbosity)
}

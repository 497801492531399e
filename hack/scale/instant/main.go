// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command instant is a machine-controller whose driver answers at once: the time
// that machine-controller-manager (MCM) and a control plane take with it is the
// floor for every driver. It creates servers in a mock without authentication, so
// that Machines get their Nodes, and does not wait for them.
package main

import (
	"os"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus" // the same metrics as the sidecar's,
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"      // since they cost
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"      // some time
)

func main() {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()
	d, err := newInstantDriver(os.Getenv("STACKIT_IAAS_ENDPOINT"))
	if err == nil {
		err = app.Run(server, d)
	}
	klog.ErrorS(err, "Could not start")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command machine-controller is the sidecar with which machine-controller-manager (MCM) creates
// machines on STACKIT: MCM's machine controller with this project's driver. It accepts MCM's flags
// and those in options.go.
package main

import (
	"fmt"
	"os"

	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/time/rate"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus" // rest_client_* metrics
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"      // reflector_* metrics
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"      // mcm_workqueue_* metrics

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/redact"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

func main() {
	server := newServer(pflag.CommandLine)
	own := newDriverOptions()
	own.addFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()
	redact.KeepSecrets(pflag.CommandLine)

	if own.printVersion {
		fmt.Println(buildinfo.Version())
		return
	}
	klog.ErrorS(redact.Error(run(server, own)), "Failed to start")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// newServer returns MCM's options with this project's defaults, and adds their flags.
func newServer(flags *pflag.FlagSet) *options.MCServer {
	server := options.NewMCServer()
	server.ConcurrentNodeSyncs = concurrentSyncs
	server.AddFlags(flags)
	return server
}

// run returns only if the start fails.
func run(server *options.MCServer, own *driverOptions) error {
	if err := own.validate(); err != nil {
		return err
	}
	config, err := spi.ConfigFromEnvironment(os.LookupEnv)
	if err != nil {
		return err
	}
	if config.NoAuth {
		klog.Warningf("%s is set: requests carry no credentials; use this only with a local mock", spi.EnvNoAuth)
	}
	klog.InfoS("Starting machine-controller for STACKIT", "version", buildinfo.Version(), "apiEndpoint", config.Endpoint)
	sessions := &spi.PluginSPIImpl{
		Config:    config,
		Limiter:   rate.NewLimiter(rate.Limit(own.apiQPS), own.apiBurst),
		Fence:     startFence(server.LeaderElection),
		UserAgent: "machine-controller-manager-provider-stackit/" + buildinfo.Version(),
	}
	return app.Run(server, newDriver(server, own, sessions, prometheus.DefaultRegisterer))
}

// newDriver returns the driver, and registers all metrics other than MCM's.
func newDriver(
	server *options.MCServer, own *driverOptions, sessions spi.SessionProviderInterface, registerer prometheus.Registerer,
) driver.Driver {
	showBuildInfo(registerer)
	lead := newLeadership(server.LeaderElection)
	lead.show(registerer)
	spi.RegisterMetrics(registerer)
	return provider.NewProvider(sessions,
		provider.WithSettle(own.settle),
		provider.WithCreationTimeout(server.SafetyOptions.MachineCreationTimeout.Duration),
		provider.WithTargetCluster(server.TargetKubeconfig != constants.TargetKubeconfigDisabledValue),
		provider.WithStrictProviderSpec(own.strictSpec),
		provider.WithActingSince(lead.actingSince),
		provider.WithMetrics(registerer),
	)
}

// showBuildInfo registers a metric with the version.
func showBuildInfo(registerer prometheus.Registerer) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stackit_build_info", Help: "Always 1, with the version of this sidecar.",
		ConstLabels: prometheus.Labels{"version": buildinfo.Version()},
	}, func() float64 { return 1 }))
}

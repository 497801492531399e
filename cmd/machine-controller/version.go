// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version overrides the build's own, for builds without a git checkout:
// -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion is the module's version, which names the commit in a build from a checkout.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// showBuildInfo shows the version as a metric.
func showBuildInfo(registerer prometheus.Registerer) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stackit_build_info", Help: "Always 1, with the version of this sidecar.",
		ConstLabels: prometheus.Labels{"version": buildVersion()},
	}, func() float64 { return 1 }))
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// concurrentSyncs is the default of MCM's flag --concurrent-syncs: how many machines are processed in parallel. With
// MCM's own default of 50, 200 machines come in four waves, because each occupies a worker until its server has booted.
// Here a wait costs a goroutine and almost no API calls.
const concurrentSyncs = 500

// driverOptions are the flags that this project adds to MCM's.
type driverOptions struct {
	settle       time.Duration
	apiQPS       float64
	apiBurst     int
	strictSpec   bool
	printVersion bool
}

func newDriverOptions() *driverOptions {
	return &driverOptions{settle: provider.DefaultSettle, apiQPS: 50, apiBurst: 100}
}

func (o *driverOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.settle, "stackit-settle", o.settle,
		"Maximum time until a requested server appears in the lists of STACKIT's API. If it is unknown "+
			"whether a request created a server, no second request is sent before this time has passed.")
	flags.Float64Var(&o.apiQPS, "stackit-api-qps", o.apiQPS,
		"Maximum API calls per second that this process sends to STACKIT's IaaS API, for all its machines together. "+
			"STACKIT's own limit is per source address: everything behind one NAT shares it.")
	flags.IntVar(&o.apiBurst, "stackit-api-burst", o.apiBurst,
		"How many API calls to STACKIT's IaaS API may be sent at once after a quiet period.")
	flags.BoolVar(&o.strictSpec, "strict-provider-spec", o.strictSpec,
		"Refuse a MachineClass whose providerSpec has unknown fields, instead of logging them.")
	flags.BoolVar(&o.printVersion, "version", o.printVersion, "Print the version and exit.")
}

func (o *driverOptions) validate() error {
	switch {
	case o.settle < 0:
		return fmt.Errorf("--stackit-settle is %s: must not be negative", o.settle)
	case !(o.apiQPS > 0): // nor NaN
		return fmt.Errorf("--stackit-api-qps is %v: must be more than 0", o.apiQPS)
	case o.apiBurst < 1:
		return fmt.Errorf("--stackit-api-burst is %d: must be at least 1", o.apiBurst)
	}
	return nil
}

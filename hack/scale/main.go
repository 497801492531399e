// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures how long a MachineDeployment takes to scale up, to roll and to scale down,
// and how many IaaS API calls this needs. It runs a local environment with the limits that Gardener
// sets.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var o options
	pflag.IntVar(&o.machines, "machines", 500, "number of machines to scale up to")
	pflag.IntVar(&o.keep, "keep", 0, "number of machines that remain after scaling down")
	pflag.BoolVar(&o.instant, "instant", false,
		"measure the minimum: a driver that answers at once, without API latency, --faults and allowedAddresses")
	pflag.DurationVar(&o.join, "join", time.Second,
		"time from ACTIVE until the server's Node joins; real servers need longer")
	pflag.Float64Var(&o.faults, "faults", 0.01,
		"share of API calls that the mock answers with 503, 0 to 1; no effect with --instant")
	pflag.BoolVar(&o.roll, "roll", true,
		"also roll all machines to another class, which takes longer than the other phases")
	pflag.Parse()
	phases, err := measure(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Failed:", err)
		os.Exit(1)
	}
	fmt.Printf("\n%d machines, %d kept\n\n%s", o.machines, o.keep, table(phases))
}

// options are the parameters of a run.
type options struct {
	machines, keep int
	instant, roll  bool
	join           time.Duration
	faults         float64
}

// environment returns the local environment's options for this run, with the flags that Gardener sets. The
// sidecar's --concurrent-syncs is this driver's default, set explicitly so that the floor has it, too.
func (o options) environment() []localenv.Option {
	cloud := []iaasmock.Option{
		iaasmock.WithSeed(1), iaasmock.WithBootDuration(20 * time.Second), iaasmock.WithDeleteDuration(5 * time.Second),
	}
	env := []localenv.Option{
		localenv.WithProgress(progress), localenv.WithJoinDuration(o.join),
		localenv.WithSidecarArgs("--kube-api-qps=100", "--kube-api-burst=200", "--concurrent-syncs=500"),
		localenv.WithManagerArgs("--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30"),
	}
	if o.instant {
		cloud = append(cloud, iaasmock.WithoutAuthentication())
		env = append(env, localenv.WithSidecarProgram("instant"))
	} else {
		cloud = append(cloud, iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond))
	}
	return append(env, localenv.WithCloudOptions(cloud...))
}

func progress(line string) { fmt.Println(line) }

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// The drivers that can be measured.
const (
	driverStackit = "stackit"
	driverInstant = "instant"
)

// An API call takes from leastLatency to mostLatency; none with the instant driver.
const (
	leastLatency = 30 * time.Millisecond
	mostLatency  = 80 * time.Millisecond
)

type options struct {
	machines, keep     int
	driver             string
	boot, join, remove time.Duration
	faults             float64
	roll               bool
	allowedAddresses   []string
	sidecarArgs        []string
	limit              time.Duration
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	flags.IntVar(&o.machines, "machines", 500, "how many machines")
	flags.IntVar(&o.keep, "keep", 0, "how many machines stay when the others go")
	flags.StringVar(&o.driver, "driver", driverStackit,
		"stackit, or instant: a driver that answers at once, without latency, faults and allowedAddresses, as the floor")
	flags.DurationVar(&o.boot, "boot", 20*time.Second, "time from CREATING to ACTIVE")
	flags.DurationVar(&o.join, "join", time.Second, "time from ACTIVE to the server's Node; a real one needs longer")
	flags.DurationVar(&o.remove, "delete", 5*time.Second, "time from DELETING to gone")
	flags.Float64Var(&o.faults, "faults", 0.01, "share of API calls that are answered with 503, 0 to 1")
	flags.BoolVar(&o.roll, "roll", true, "roll to another class, too, which takes longest")
	flags.StringSliceVar(&o.allowedAddresses, "allowed-addresses", []string{"100.96.0.0/11"},
		"allowedAddresses of the class; empty for none")
	flags.StringArrayVar(&o.sidecarArgs, "sidecar-arg", nil, "one more flag of the machine-controller; may be repeated")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "how long each of up, roll and down may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.driver == driverInstant {
		o.faults, o.allowedAddresses = 0, nil
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.machines < 1:
		return fmt.Errorf("--machines is %d, must be at least 1", o.machines)
	case o.keep < 0 || o.keep >= o.machines:
		return fmt.Errorf("--keep is %d, must be from 0 to less than --machines", o.keep)
	case o.driver != driverStackit && o.driver != driverInstant:
		return fmt.Errorf("--driver is %q, must be %s or %s", o.driver, driverStackit, driverInstant)
	case o.boot < 0 || o.join < 0 || o.remove < 0 || o.limit <= 0:
		return errors.New("times must not be negative, and the limit not 0")
	case !(o.faults >= 0 && o.faults < 1): // nor NaN
		return fmt.Errorf("--faults is %v, must be from 0 to less than 1", o.faults)
	}
	return nil
}

// The flags Gardener sets. --concurrent-syncs of the sidecar is the default of this
// driver, given so that the floor has it, too.
var (
	sidecarArgs = []string{"--kube-api-qps=100", "--kube-api-burst=200", "--concurrent-syncs=500"}
	managerArgs = []string{"--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30"}
)

func (o options) conditions() conditions {
	return conditions{
		Driver: o.driver, Machines: o.machines, Keep: o.keep, Boot: o.boot.Seconds(), Join: o.join.Seconds(), Delete: o.remove.Seconds(),
		Faults: o.faults, AllowedAddresses: len(o.allowedAddresses) > 0, SidecarArgs: o.sidecarArgs,
	}
}

// environment returns how the local environment is made for this run.
func (o options) environment(progress func(string)) []localenv.Option {
	cloud := []iaasmock.Option{iaasmock.WithBootDuration(o.boot), iaasmock.WithDeleteDuration(o.remove)}
	env := []localenv.Option{
		localenv.WithProgress(progress), localenv.WithJoinDuration(o.join),
		localenv.WithSidecarArgs(append(sidecarArgs, o.sidecarArgs...)...), localenv.WithManagerArgs(managerArgs...),
	}
	if o.driver == driverInstant {
		cloud = append(cloud, iaasmock.WithoutAuthentication())
		env = append(env, localenv.WithSidecarPackage("./hack/scale/instant"))
	} else {
		cloud = append(cloud, iaasmock.WithLatency(leastLatency, mostLatency))
	}
	return append(env, localenv.WithCloudOptions(cloud...))
}

// spoil lets the cloud refuse the share of calls that was asked for, in each run the same.
func (o options) spoil(cloud *iaasmock.Cloud) {
	if o.faults == 0 {
		return
	}
	dice := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // these dice may be guessed
	cloud.Inject(iaasmock.Fault{
		Status: http.StatusServiceUnavailable,
		// The cloud asks for one call after the other.
		Match: func(*http.Request) bool { return dice.Float64() < o.faults },
	})
}

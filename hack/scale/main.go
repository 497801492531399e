// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures how long a MachineDeployment takes to scale up, to roll and to
// scale down on a local environment with the limits that Gardener sets, and which calls of
// the IaaS API that takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Failed:", err)
		os.Exit(1)
	}
}

// run measures, writes the result to bin/scale and prints it beside the floor.
func run(ctx context.Context, o options, out io.Writer) error {
	progress := func(line string) { _, _ = fmt.Fprintln(out, line) }
	root, err := localenv.Root()
	if err != nil {
		return err
	}
	file := func(driver string) string {
		return filepath.Join(root, "bin", "scale", fmt.Sprintf("%s-%d.json", driver, o.Machines))
	}
	r, err := measure(ctx, o, progress)
	if err != nil {
		return err
	}
	if err := r.write(file(o.Driver)); err != nil {
		return err
	}
	var floor *result
	if o.Driver != driverInstant {
		if floor, err = readFloor(file(driverInstant), r.Conditions); err != nil {
			progress(fmt.Sprintf("no floor to compare with (make scale DRIVER=instant N=%d): %v", o.Machines, err))
		}
	}
	_, err = fmt.Fprintf(out, "\n%s\nWritten: %s\n", r.table(floor), file(o.Driver))
	return err
}

// The drivers that can be measured.
const (
	driverStackit = "stackit"
	driverInstant = "instant"
)

// options are the conditions of a run, as they are written to its file, and how to run it.
type options struct {
	Driver           string          `json:"driver"`
	Machines         int             `json:"machines"`
	Keep             int             `json:"keep"`
	Boot             metav1.Duration `json:"boot"`
	Join             metav1.Duration `json:"join"`
	Delete           metav1.Duration `json:"delete"`
	Faults           float64         `json:"faults"`
	AllowedAddresses []string        `json:"allowedAddresses,omitempty"`
	SidecarArgs      []string        `json:"sidecarArgs,omitempty"`

	roll bool
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	flags.IntVar(&o.Machines, "machines", 500, "how many machines")
	flags.IntVar(&o.Keep, "keep", 0, "how many machines stay when the others are deleted")
	flags.StringVar(&o.Driver, "driver", driverStackit,
		"stackit; or instant, the floor: a driver that answers at once, without latency, faults and allowedAddresses")
	flags.DurationVar(&o.Boot.Duration, "boot", 20*time.Second, "time from CREATING to ACTIVE")
	flags.DurationVar(&o.Join.Duration, "join", time.Second, "time from ACTIVE until the server's Node joins; real ones need longer")
	flags.DurationVar(&o.Delete.Duration, "delete", 5*time.Second, "time from DELETING to gone")
	flags.Float64Var(&o.Faults, "faults", 0.01, "share of API calls that are answered with 503, 0 to 1")
	flags.BoolVar(&o.roll, "roll", true, "also roll to another class, which takes longest")
	flags.StringSliceVar(&o.AllowedAddresses, "allowed-addresses", []string{"100.96.0.0/11"},
		"allowedAddresses of the class; empty for none")
	flags.StringArrayVar(&o.SidecarArgs, "sidecar-arg", nil, "an additional flag of machine-controller; may be repeated")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.Driver == driverInstant {
		o.Faults, o.AllowedAddresses = 0, nil
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.Machines < 1:
		return fmt.Errorf("--machines is %d, must be at least 1", o.Machines)
	case o.Keep < 0 || o.Keep >= o.Machines:
		return fmt.Errorf("--keep is %d, must be from 0 to less than --machines", o.Keep)
	case o.Driver != driverStackit && o.Driver != driverInstant:
		return fmt.Errorf("--driver is %q, must be %s or %s", o.Driver, driverStackit, driverInstant)
	case o.Boot.Duration < 0 || o.Join.Duration < 0 || o.Delete.Duration < 0:
		return errors.New("--boot, --join and --delete must not be negative")
	case !(o.Faults >= 0 && o.Faults < 1): // nor NaN
		return fmt.Errorf("--faults is %v, must be from 0 to less than 1", o.Faults)
	}
	return nil
}

// The flags Gardener sets. --concurrent-syncs of the sidecar is the default of this
// driver, given so that the floor has it, too.
var (
	sidecarArgs = []string{"--kube-api-qps=100", "--kube-api-burst=200", "--concurrent-syncs=500"}
	managerArgs = []string{"--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30"}
)

// environment returns how the local environment is made for this run.
func (o options) environment(progress func(string)) []localenv.Option {
	cloud := []iaasmock.Option{iaasmock.WithSeed(1), iaasmock.WithBootDuration(o.Boot.Duration), iaasmock.WithDeleteDuration(o.Delete.Duration)}
	env := []localenv.Option{
		localenv.WithProgress(progress), localenv.WithJoinDuration(o.Join.Duration),
		localenv.WithSidecarArgs(append(sidecarArgs, o.SidecarArgs...)...), localenv.WithManagerArgs(managerArgs...),
	}
	if o.Driver == driverInstant {
		cloud = append(cloud, iaasmock.WithoutAuthentication())
		env = append(env, localenv.WithSidecarProgram("instant"))
	} else {
		cloud = append(cloud, iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond))
	}
	return append(env, localenv.WithCloudOptions(cloud...))
}

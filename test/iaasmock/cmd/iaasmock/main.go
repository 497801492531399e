// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command iaasmock serves a fake STACKIT IaaS API until it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"text/template"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "iaasmock:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	cloud := iaasmock.New(o.cloud...)
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (choose another with --address): %w", o.address, err)
	}
	if o.keyFile != "" {
		if err := writeKey(cloud, o.keyFile); err != nil {
			_ = listener.Close()
			return fmt.Errorf("--key-file: %w", err)
		}
	}
	for _, fault := range o.faults {
		cloud.Inject(fault)
	}
	printIntro(out, "http://"+listener.Addr().String(), o)
	return serve(ctx, listener, cloud)
}

// writeKey writes a new key file, readable by its owner only, and replaces an old one.
func writeKey(cloud *iaasmock.Cloud, path string) error {
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, append(key, '\n'), 0o600)
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// options holds the parsed flags.
type options struct {
	address, keyFile string
	noAuth           bool
	cloud            []iaasmock.Option
	faults           []iaasmock.Fault
}

// durations are the duration flags with their targets.
var durations = []struct {
	name   string
	value  time.Duration
	usage  string
	option func(time.Duration) iaasmock.Option
}{
	{"boot", 10 * time.Second, "time from CREATING to ACTIVE", iaasmock.WithBootDuration},
	{"delete", 5 * time.Second, "time from DELETING to gone", iaasmock.WithDeleteDuration},
	{"list-lag", 0, "how far lists of servers lag behind the current state", iaasmock.WithListLag},
}

func parse(args []string) (o options, err error) {
	flags := pflag.NewFlagSet("iaasmock", pflag.ContinueOnError)
	flags.StringVar(&o.address, "address", "127.0.0.1:8080", "address to listen on; port 0 chooses a free port")
	flags.StringVar(&o.keyFile, "key-file", "", "write a service account key of the default project to this file")
	flags.BoolVar(&o.noAuth, "no-auth", false, "accept calls without a token")
	for _, d := range durations {
		flags.Duration(d.name, d.value, d.usage)
	}
	faults := flags.StringArray("fault", nil,
		`inject a fault: a preset's name, or JSON such as {"preset":"no-capacity","count":3}; may be given several times`)
	preset := flags.String("preset", "", "live: as slow and rate-limited as STACKIT; duration flags override its times")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch *preset {
	case "":
	case "live":
		o.cloud = append(o.cloud, iaasmock.WithLive())
	default:
		return o, fmt.Errorf("--preset is %q: must be live; for the preset of a fault use --fault", *preset)
	}
	for _, d := range durations {
		value, _ := flags.GetDuration(d.name)
		if value < 0 {
			return o, fmt.Errorf("--%s must not be negative", d.name)
		}
		if *preset == "" || flags.Changed(d.name) {
			o.cloud = append(o.cloud, d.option(value))
		}
	}
	if o.noAuth {
		o.cloud = append(o.cloud, iaasmock.WithoutAuthentication())
	}
	for _, text := range *faults {
		f, err := fault.Parse(text)
		if err != nil {
			return o, fmt.Errorf("--fault %s: %w", text, err)
		}
		o.faults = append(o.faults, f)
	}
	return o, nil
}

var intro = template.Must(template.New("intro").Parse(`STACKIT IaaS API mock on {{.URL}} (Ctrl-C stops it)

  project {{.Project}}   region {{.Region}}   network {{.Network}}
  image   {{.Image}}   machine type {{.MachineType}}   key pair {{.Keypair}}
{{if .KeyFile}}
Service account key written to {{.KeyFile}}; the token endpoint of this mock is {{.URL}}/oauth/v2/token
{{end}}
The state as JSON:
  curl -s {{.URL}}/admin/state

Environment for this project's driver:
  export STACKIT_IAAS_ENDPOINT={{.URL}} STACKIT_TOKEN_BASEURL={{.URL}}/oauth/v2/token` +
	`{{if .NoAuth}} STACKIT_NO_AUTH=true{{end}}
`))

func printIntro(out io.Writer, url string, o options) {
	// A closed terminal does not end the server.
	_ = intro.Execute(out, map[string]any{
		"URL": url, "NoAuth": o.noAuth, "KeyFile": o.keyFile,
		"Project": iaasmock.DefaultProjectID, "Region": iaasmock.DefaultRegion, "Network": iaasmock.DefaultNetworkID,
		"Image": iaasmock.DefaultImageID, "MachineType": iaasmock.DefaultMachineType, "Keypair": iaasmock.DefaultKeypairName,
	})
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Environment variables of the credentials, by the names that STACKIT's own tools read.
const (
	envProjectID = "STACKIT_PROJECT_ID"
	envRegion    = "STACKIT_REGION"
	envKeyPath   = "STACKIT_SERVICE_ACCOUNT_KEY_PATH"
)

// noCluster is the --target-kubeconfig of a sidecar without a target cluster.
const noCluster = "none"

// flagRequestTimeout is kubectl's flag for its requests; here it bounds reads of the API, too.
const flagRequestTimeout = "request-timeout"

// options are what all commands share.
type options struct {
	streams genericiooptions.IOStreams
	// out is streams.Out.
	out    *output
	lookup func(string) (string, bool)
	clock  clock.Clock

	control          *genericclioptions.ConfigFlags
	targetKubeconfig string
	files            []string
	secret           string
	projectID        string
	region           string
	keyPath          string
	tokenHosts       string
	identityDirs     string

	// running ends when the command is interrupted.
	running context.Context
	// started says that the command line was right.
	started bool
	// config says where the API is; configError that the environment says it wrongly.
	config      spi.Config
	configError error
	// requestTimeout is what --request-timeout says; 0 is none.
	requestTimeout time.Duration
}

func newOptions(streams genericiooptions.IOStreams, lookup func(string) (string, bool)) *options {
	control := genericclioptions.NewConfigFlags(false)
	// Nothing is written to disk; and --cluster is about the label of servers.
	control.CacheDir, control.ClusterName = nil, nil
	out := &output{Writer: streams.Out}
	streams.Out = out
	o := &options{streams: streams, out: out, lookup: lookup, clock: clock.RealClock{}, control: control, running: context.Background(),
		tokenHosts: spi.DefaultTokenHosts, identityDirs: spi.DefaultIdentityDirs}
	control.WrapConfigFn = o.interruptible
	return o
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	o.control.AddFlags(flags)
	flags.Lookup(flagRequestTimeout).Usage =
		"how long a request to a cluster, or a read of the API with its retries, may take, such as 10s; 0: as long as the command lets it"
	flags.StringVar(&o.targetKubeconfig, "target-kubeconfig", "",
		`file that reaches the cluster that the machines join; "none" without one (default: the cluster with the Machines)`)
	// Not a StringSlice, as kubectl's: a file's name may have a comma.
	flags.StringArrayVarP(&o.files, "filename", "f", nil,
		`file or folder with manifests, "-" for standard input; may be repeated; Secrets in them are used before those of the cluster`)
	flags.StringVar(&o.secret, "secret", "", "Secret with the credentials, as name or namespace/name (default: those of the MachineClasses)")
	flags.StringVar(&o.projectID, "project-id", "", "UUID of the STACKIT project; beats the Secret's (without a Secret: $"+envProjectID+")")
	flags.StringVar(&o.region, "region", "", "STACKIT region, such as eu01; beats the Secret's and the class's (without a Secret: $"+envRegion+")")
	flags.StringVar(&o.keyPath, "service-account-key-path", "", "file with a service-account key; beats the Secret's (without a Secret: $"+envKeyPath+")")
	// By the sidecar's names and defaults: what it refuses is refused here.
	flags.StringVar(&o.tokenHosts, spi.FlagTokenHosts, o.tokenHosts,
		"hosts that a service-account key may name in credentials.tokenEndpoint, as the sidecar has them")
	flags.StringVar(&o.identityDirs, spi.FlagIdentityDirs, o.identityDirs,
		"folders in which a Secret may name the file of a workload identity's token, as the sidecar has them")
}

// interruptible makes each request to a cluster end with the command: discovery, which comes
// before the first list, knows no context.
func (o *options) interruptible(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(request.Context())
			context.AfterFunc(o.running, cancel)
			return next.RoundTrip(request.WithContext(ctx))
		})
	})
	return config
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// output is standard output. It keeps its first error: a command whose data did not arrive
// has not told anything.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// say writes a line for the user, beside the data.
func (o *options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.streams.ErrOut, format+"\n", args...)
}

// sayAbout says it to those who asked for it with -v.
func (o *options) sayAbout(level klog.Level, text string) {
	if klog.V(level).Enabled() {
		o.say("%s", text)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
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

// flagRequestTimeout is kubectl's flag for its requests; here it bounds reads of the API, too.
const flagRequestTimeout = "request-timeout"

// defaultRequestTimeout is after how long something that hangs is not waited for.
const defaultRequestTimeout = "10s"

// options are what all commands share.
type options struct {
	streams genericiooptions.IOStreams
	// out is streams.Out.
	out    *output
	lookup func(string) (string, bool)
	clock  clock.Clock

	// program is what the command was called by: printed commands begin with it.
	program string

	control      *genericclioptions.ConfigFlags
	secret       string
	projectID    string
	region       string
	keyPath      string
	tokenHosts   string
	identityDirs string

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
	*control.Timeout = defaultRequestTimeout
	out := &output{Writer: streams.Out}
	streams.Out = out
	return &options{streams: streams, out: out, lookup: lookup, clock: clock.RealClock{}, program: programName, control: control,
		tokenHosts: spi.DefaultTokenHosts, identityDirs: spi.DefaultIdentityDirs}
}

// addFlags adds what all commands have to the root.
func (o *options) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.control.AddFlags(flags)
	flags.Lookup(flagRequestTimeout).Usage =
		"how long a cluster or the API may take to answer, with retries; 0: as long as the command lets it"
	flags.StringVar(&o.secret, "secret", "", "Secret with the credentials, as name or namespace/name (default: those of the MachineClasses)")
	flags.StringVar(&o.projectID, "project-id", "", "UUID of the STACKIT project, in place of a Secret, with region and key ($"+envProjectID+")")
	flags.StringVar(&o.region, "region", "", "STACKIT region, such as eu01; beats those of Secret and class (in place of a Secret: $"+envRegion+")")
	flags.StringVar(&o.keyPath, "service-account-key-path", "", "file with a service-account key, in place of a Secret ($"+envKeyPath+")")
	// By the sidecar's names and defaults: what it refuses is refused here.
	flags.StringVar(&o.tokenHosts, spi.FlagTokenHosts, o.tokenHosts,
		"hosts that a service-account key may name in credentials.tokenEndpoint, as the sidecar has them")
	flags.StringVar(&o.identityDirs, spi.FlagIdentityDirs, o.identityDirs,
		"folders in which a Secret may name the file of a workload identity's token, as the sidecar has them")
	for name, complete := range map[string]cobra.CompletionFunc{"namespace": o.completeNamespace, "context": o.completeContext} {
		utilruntime.Must(root.RegisterFlagCompletionFunc(name, complete))
	}
}

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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/redact"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Environment variables with credentials, named as in STACKIT's own tools.
const (
	envProjectID = "STACKIT_PROJECT_ID"
	envRegion    = "STACKIT_REGION"
	envKeyPath   = "STACKIT_SERVICE_ACCOUNT_KEY_PATH"
)

// flagRequestTimeout is kubectl's flag for its requests. Here it limits reads of the API, too.
const flagRequestTimeout = "request-timeout"

// options are the options that all commands share.
type options struct {
	streams genericiooptions.IOStreams
	// program is the name the command was called by. Printed commands start with it.
	program string

	control   *genericclioptions.ConfigFlags
	secret    string
	projectID string
	region    string
	keyPath   string

	// cloudOnly is doctor's flag: no cluster is used, and variables may give the credentials.
	cloudOnly bool

	// started means that the command line was valid.
	started bool
	// config has the API's endpoint; configError is the error in its environment variables.
	config      spi.Config
	configError error
	// requestTimeout is the value of --request-timeout; 0 means no limit.
	requestTimeout time.Duration
}

func newOptions(streams genericiooptions.IOStreams) *options {
	control := genericclioptions.NewConfigFlags(false)
	// Nothing is written to disk.
	control.CacheDir, control.ClusterName = nil, nil
	*control.Timeout = "10s"
	streams.Out = output{streams.Out}
	return &options{streams: streams, program: programName, control: control}
}

// addFlags adds the flags of all commands to the root.
func (o *options) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.control.AddFlags(flags)
	flags.Lookup(flagRequestTimeout).Usage =
		"limit of a read of a cluster, the API or a URL; 0: none"
	flags.StringVar(&o.secret, "secret", "",
		"Secret with the credentials, as [namespace/]name")
	flags.StringVar(&o.projectID, "project-id", "",
		"project, instead of a Secret")
	flags.StringVar(&o.region, "region", "", "region, such as eu01; overrides that of Secret and class")
	flags.StringVar(&o.keyPath, "service-account-key-path", "",
		"file with a service-account key, instead of a Secret")
}

// output is standard output without control characters, which the API or a status may contain.
type output struct{ io.Writer }

// Write implements io.Writer.
func (o output) Write(text []byte) (int, error) {
	_, err := o.Writer.Write(withoutControls(text))
	return len(text), err
}

func withoutControls(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '?'
		}
		return r
	}, text)
}

// say writes a line to standard error. Text from the API or a cluster is made safe for a terminal.
func (o *options) say(format string, args ...any) {
	_, _ = fmt.Fprintln(o.streams.ErrOut, report.OneLine(fmt.Sprintf(format, args...)))
}

// addOutputFlag adds the flag -o with these formats. The returned function refuses others.
func addOutputFlag(command *cobra.Command, formats ...string) (format *string, check func() error) {
	format = command.Flags().StringP("output", "o", "", "print as "+strings.Join(formats, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return format, func() error {
		if *format != "" && !slices.Contains(formats, *format) {
			return wrongUsage("-o must be one of: %s", strings.Join(formats, ", "))
		}
		return nil
	}
}

// complete checks the flags and reads the environment. The errors do not repeat values: a misplaced one may be a
// secret.
func (o *options) complete() error {
	o.config, o.configError = spi.ConfigFromEnvironment(os.LookupEnv)
	var err error
	o.requestTimeout, err = clientcmd.ParseTimeout(*o.control.Timeout)
	isDirect := o.projectID != "" || o.keyPath != ""
	switch {
	case err != nil || o.requestTimeout < 0:
		return wrongUsage("--%s must be a time with its unit, such as 10s, or 0", flagRequestTimeout)
	case o.projectID != "" && !validation.IsUUID(o.projectID):
		return wrongUsage("--project-id must be a UUID in lower case")
	case o.region != "" && len(validation.ValidateRegion(o.region, nil)) > 0:
		return wrongUsage("--region must be a region such as eu01")
	case isDirect && o.secret != "":
		return wrongUsage("--secret cannot be combined with --project-id or --service-account-key-path")
	case isDirect && o.direct() == nil:
		return wrongUsage("credentials without a Secret need all of %s", account.AllThree)
	}
	for _, name := range []string{clientcmd.RecommendedConfigPathEnvVar, envKeyPath} { // client-go repeats them
		if slices.ContainsFunc(strings.Split(os.Getenv(name), ":"), redact.IsContent) {
			return wrongUsage("%v", redact.ContentError("$"+name))
		}
	}
	return nil
}

// direct returns the credentials given by flags, and with cloudOnly also by variables; nil if they are incomplete. With
// a cluster, variables do not count: those exported for another tool must not replace the classes' Secrets.
func (o *options) direct() *account.Direct {
	direct := &account.Direct{ProjectID: o.projectID, Region: o.region, KeyPath: o.keyPath, Origin: account.AllThree}
	if o.cloudOnly {
		direct.ProjectID = cmp.Or(o.projectID, os.Getenv(envProjectID))
		direct.Region = cmp.Or(o.region, os.Getenv(envRegion))
		direct.KeyPath = cmp.Or(o.keyPath, os.Getenv(envKeyPath))
		direct.Origin += ", or their variables"
	}
	if direct.ProjectID == "" || direct.Region == "" || direct.KeyPath == "" && !o.config.NoAuth {
		return nil
	}
	return direct
}

// completionTimeout limits the time that shell completion takes.
const completionTimeout = 3 * time.Second

// completeObjects completes names that list shows for the namespace. It offers nothing if they cannot be read in time.
func (o *options) completeObjects(
	command *cobra.Command, names func(*list.Result) []string,
) ([]string, cobra.ShellCompDirective) {
	if o.complete() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	o.requestTimeout = completionTimeout
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	access, err := o.operator()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(list.Read(ctx, access, list.Query{})), cobra.ShellCompDirectiveNoFileComp
}

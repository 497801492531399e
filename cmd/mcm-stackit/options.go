// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
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
	out *output

	// program is what the command was called by: printed commands begin with it.
	program string

	control      *genericclioptions.ConfigFlags
	secret       string
	projectID    string
	region       string
	keyPath      string
	tokenHosts   string
	identityDirs string

	// cloudOnly is doctor's flag: no cluster is asked, and variables may name what a cluster's Secrets would.
	cloudOnly bool

	// started says that the command line was right.
	started bool
	// config says where the API is; configError that the environment says it wrongly.
	config      spi.Config
	configError error
	// requestTimeout is what --request-timeout says; 0 is none.
	requestTimeout time.Duration
}

func newOptions(streams genericiooptions.IOStreams) *options {
	control := genericclioptions.NewConfigFlags(false)
	// Nothing is written to disk; and --cluster is about the label of servers.
	control.CacheDir, control.ClusterName = nil, nil
	*control.Timeout = defaultRequestTimeout
	out := &output{Writer: streams.Out}
	streams.Out = out
	return &options{streams: streams, out: out, program: programName, control: control,
		tokenHosts: spi.DefaultTokenHosts, identityDirs: spi.DefaultIdentityDirs}
}

// addFlags adds what all commands have to the root.
func (o *options) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.control.AddFlags(flags)
	flags.Lookup(flagRequestTimeout).Usage =
		"how long a cluster, the API or a URL may take to answer, with retries; 0: without an end"
	flags.StringVar(&o.secret, "secret", "", "Secret with the credentials, as name or namespace/name (default: those of the MachineClasses)")
	flags.StringVar(&o.projectID, "project-id", "", "UUID of the STACKIT project, in place of a Secret, with region and key")
	flags.StringVar(&o.region, "region", "", "STACKIT region, such as eu01; overrides those of Secret and class")
	flags.StringVar(&o.keyPath, "service-account-key-path", "", "file with a service-account key, in place of a Secret")
	// By the sidecar's names and defaults: what it refuses is refused here.
	flags.StringVar(&o.tokenHosts, spi.FlagTokenHosts, o.tokenHosts,
		"hosts that a service-account key may name in credentials.tokenEndpoint beside those below stackit.cloud, as the sidecar has them")
	flags.StringVar(&o.identityDirs, spi.FlagIdentityDirs, o.identityDirs,
		"folders in which a Secret may name the file of a workload identity's token, as the sidecar has them")
	for name, complete := range map[string]cobra.CompletionFunc{"namespace": o.completeNamespace, "context": o.completeContext} {
		utilruntime.Must(root.RegisterFlagCompletionFunc(name, complete))
	}
}

// output is standard output. It keeps its first error: a command whose data did not arrive
// has not told anything. No control character of the API's or of a status reaches a terminal.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	clean := bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '?'
		}
		return r
	}, text)
	_, err := o.Writer.Write(clean)
	o.err = cmp.Or(o.err, err)
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// say writes a line for the user, beside the data. What the API or a cluster said in it reaches no terminal as it is.
func (o *options) say(format string, args ...any) {
	_, _ = fmt.Fprintln(o.streams.ErrOut, report.OneLine(fmt.Sprintf(format, args...)))
}

// complete checks the flags, and reads the environment.
func (o *options) complete() error {
	o.config, o.configError = spi.ConfigFromEnvironment(os.LookupEnv)
	o.config.TokenHosts, o.config.IdentityDirs = o.tokenHosts, o.identityDirs
	var err error
	if o.requestTimeout, err = clientcmd.ParseTimeout(*o.control.Timeout); err != nil || o.requestTimeout < 0 {
		return wrongUsage("--%s is %q, must be a time with its unit, such as 10s, or 0", flagRequestTimeout, *o.control.Timeout)
	}
	if err := o.checkNames(); err != nil {
		return err
	}
	return o.checkDirect()
}

// checkDirect refuses half of what names an account without a Secret, and both.
func (o *options) checkDirect() error {
	given := o.projectID != "" || o.keyPath != ""
	switch {
	case given && o.secret != "":
		return wrongUsage("--secret goes without --project-id and --service-account-key-path")
	case given && o.direct() == nil:
		return wrongUsage("credentials without a Secret need all of %s", account.AllThree)
	}
	return nil
}

// direct are the credentials that flags name, and variables where no cluster is asked; nil if they do not name all. Where
// one is, its classes' Secrets are judged: a variable that was exported for another tool must not take their place.
func (o *options) direct() *account.Direct {
	var origins []string
	value := func(flag, given, variable string) string {
		origin := "--" + flag
		if given == "" && o.cloudOnly {
			origin = "$" + variable
			given = os.Getenv(variable)
		}
		origins = append(origins, origin)
		return given
	}
	direct := &account.Direct{ProjectID: value("project-id", o.projectID, envProjectID), Region: value("region", o.region, envRegion)}
	direct.KeyPath = value("service-account-key-path", o.keyPath, envKeyPath)
	direct.Origin = strings.Join(origins, ", ")
	if direct.ProjectID == "" || direct.Region == "" || direct.KeyPath == "" && !o.config.NoAuth {
		return nil
	}
	return direct
}

// checkNames refuses values that can name nothing. They are not repeated: a value in a wrong
// place may be a secret.
func (o *options) checkNames() error {
	switch {
	case o.projectID != "" && !validation.IsUUID(o.projectID):
		return wrongUsage("--project-id must be a UUID in lower case")
	case o.region != "" && len(validation.ValidateRegion(o.region, nil)) > 0:
		return wrongUsage("--region must be a region such as eu01")
	case spi.CheckTokenHosts(o.tokenHosts) != nil:
		return wrongUsage("--%s must be hosts in lower case, with commas between them, such as token.example or *.token.example", spi.FlagTokenHosts)
	case spi.CheckIdentityDirs(o.identityDirs) != nil:
		return wrongUsage("--%s must be whole paths of folders, with commas between them, such as %s", spi.FlagIdentityDirs, spi.DefaultIdentityDirs)
	}
	return nil
}

// completionTimeout is how long somebody who pressed the tabulator key is made to wait.
const completionTimeout = 3 * time.Second

// completeObjects completes by what list shows of the namespace. What cannot be had in time completes to nothing.
func (o *options) completeObjects(
	command *cobra.Command, names func(*list.Result) []string,
) ([]string, cobra.ShellCompDirective) {
	if o.complete() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	o.requestTimeout = completionTimeout
	found := make(chan *list.Result, 1)
	go func() {
		if access, err := o.operator(command.Context()); err == nil { // perhaps by a login plugin
			found <- list.Read(command.Context(), access, list.Query{})
		}
	}()
	select {
	case result := <-found:
		return names(result), cobra.ShellCompDirectiveNoFileComp
	case <-time.After(completionTimeout + time.Second/2): // list.Read ends by itself, and has what it could read
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeContext completes --context by the kubeconfig.
func (o *options) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := o.control.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeNamespace completes -n by the cluster. What cannot be had in time completes to nothing. The
// shell keeps those that begin with what was typed.
func (o *options) completeNamespace(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	access := o.access()
	if o.connect(ctx, access); access.Control == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var namespaces corev1.NamespaceList
	_ = access.Control.List(ctx, &namespaces)
	var names []string
	for i := range namespaces.Items {
		names = append(names, namespaces.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

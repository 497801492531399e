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
	"path/filepath"
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

// defaultRequestTimeout is the default of --request-timeout.
const defaultRequestTimeout = "10s"

// options are the options that all commands share.
type options struct {
	streams genericiooptions.IOStreams
	// out is streams.Out.
	out *output

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
	// kubeconfigError is the reason why $KUBECONFIG is not used; nil if it may be used.
	kubeconfigError error
	// requestTimeout is the value of --request-timeout; 0 means no limit.
	requestTimeout time.Duration
}

func newOptions(streams genericiooptions.IOStreams) *options {
	control := genericclioptions.NewConfigFlags(false)
	// Nothing is written to disk, and --cluster is a server label here.
	control.CacheDir, control.ClusterName = nil, nil
	*control.Timeout = defaultRequestTimeout
	out := &output{Writer: streams.Out}
	streams.Out = out
	return &options{streams: streams, out: out, program: programName, control: control}
}

// addFlags adds the flags of all commands to the root.
func (o *options) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	o.control.AddFlags(flags)
	flags.Lookup(flagRequestTimeout).Usage =
		"how long a cluster, the API or a URL may take to answer, retries included; 0: no limit"
	flags.StringVar(&o.secret, "secret", "",
		"Secret with the credentials, as name or namespace/name (default: the Secrets of the MachineClasses)")
	flags.StringVar(&o.projectID, "project-id", "",
		"UUID of the STACKIT project; used instead of a Secret, with --region and --service-account-key-path")
	flags.StringVar(&o.region, "region", "", "STACKIT region, such as eu01; overrides the region of Secret and class")
	flags.StringVar(&o.keyPath, "service-account-key-path", "",
		"file with a service-account key; used instead of a Secret, with --project-id and --region")
	for name, complete := range map[string]cobra.CompletionFunc{"namespace": o.completeNamespace,
		"context": o.completeContext} {
		utilruntime.Must(root.RegisterFlagCompletionFunc(name, complete))
	}
}

// output is standard output without control characters, which the API or a status may contain. It keeps its first
// error, so that a command fails if its data was not written.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	_, err := o.Writer.Write(withoutControls(text))
	o.err = cmp.Or(o.err, err)
	if err != nil {
		return 0, err
	}
	return len(text), nil
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

// complete checks the flags and reads the environment.
func (o *options) complete() error {
	o.config, o.configError = spi.ConfigFromEnvironment(os.LookupEnv)
	var err error
	if o.requestTimeout, err = clientcmd.ParseTimeout(*o.control.Timeout); err != nil || o.requestTimeout < 0 {
		return wrongUsage("--%s is %q: must be a time with its unit, such as 10s, or 0", flagRequestTimeout,
			*o.control.Timeout)
	}
	if err := o.checkNames(); err != nil {
		return err
	}
	if err := o.checkVariables(); err != nil {
		return err
	}
	return o.checkDirect()
}

// checkVariables refuses variables that have the content of a file in place of its path, as redact.CheckArguments does
// for flags. As any error in a kubeconfig, that in $KUBECONFIG is reported only where a cluster is read.
func (o *options) checkVariables() error {
	const kubeconfig = clientcmd.RecommendedConfigPathEnvVar
	if *o.control.KubeConfig == "" && slices.ContainsFunc(filepath.SplitList(os.Getenv(kubeconfig)), redact.IsContent) {
		o.kubeconfigError = redact.ContentError("$" + kubeconfig)
		if err := os.Setenv(kubeconfig, os.DevNull); err != nil { // client-go logs what it does not find
			return err
		}
	}
	for name, flag := range map[string]string{envProjectID: o.projectID, envRegion: o.region, envKeyPath: o.keyPath} {
		if o.cloudOnly && flag == "" && redact.IsContent(os.Getenv(name)) {
			return wrongUsage("%v", redact.ContentError("$"+name))
		}
	}
	return nil
}

// checkDirect refuses incomplete credentials without a Secret, and such credentials together with a Secret.
func (o *options) checkDirect() error {
	given := o.projectID != "" || o.keyPath != ""
	switch {
	case given && o.secret != "":
		return wrongUsage("--secret cannot be combined with --project-id or --service-account-key-path")
	case given && o.direct() == nil:
		return wrongUsage("credentials without a Secret need all of %s", account.AllThree)
	}
	return nil
}

// direct returns the credentials given by flags, and with cloudOnly also by variables; nil if they are incomplete. With
// a cluster, variables do not count: those exported for another tool must not replace the classes' Secrets.
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
	direct := &account.Direct{ProjectID: value("project-id", o.projectID, envProjectID),
		Region: value("region", o.region, envRegion)}
	direct.KeyPath = value("service-account-key-path", o.keyPath, envKeyPath)
	direct.Origin = strings.Join(origins, ", ")
	if direct.ProjectID == "" || direct.Region == "" || direct.KeyPath == "" && !o.config.NoAuth {
		return nil
	}
	return direct
}

// checkNames refuses invalid values. The errors do not repeat them: a misplaced value may be a secret.
func (o *options) checkNames() error {
	switch {
	case o.projectID != "" && !validation.IsUUID(o.projectID):
		return wrongUsage("--project-id must be a UUID in lower case")
	case o.region != "" && len(validation.ValidateRegion(o.region, nil)) > 0:
		return wrongUsage("--region must be a region such as eu01")
	}
	return nil
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

// completeContext completes --context from the kubeconfig.
func (o *options) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := o.control.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeNamespace completes -n from the cluster. It offers nothing if the namespaces cannot be read in time. The
// shell filters them by prefix.
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

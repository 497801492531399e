// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/redact"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// operator returns the Access for commands that use API and control cluster. If the cluster is unreachable,
// ControlError has the reason.
func (o *options) operator(ctx context.Context) (*account.Access, error) {
	if o.configError != nil {
		return nil, o.configError
	}
	result := o.access()
	o.connect(ctx, result)
	return result, nil
}

// access returns the Access of all commands, without clients for clusters.
func (o *options) access() *account.Access {
	namespace, _, err := o.control.ToRawKubeConfigLoader().Namespace()
	if err != nil { // connect reports the same error, if a cluster is used
		namespace = cmp.Or(*o.control.Namespace, metav1.NamespaceDefault)
	}
	direct := o.direct()
	switch {
	case direct != nil:
		o.say("credentials: %s", direct.Origin)
	case o.secret != "":
		o.say("credentials: Secret %s (--secret)", o.secret)
	}
	return &account.Access{
		Sessions: &spi.PluginSPIImpl{
			Config: o.config, UserAgent: "mcm-stackit/" + buildinfo.Version(), Transport: spi.NewTransport(),
		},
		Namespace:    namespace,
		SecretName:   o.secret,
		Direct:       direct,
		Region:       o.region,
		ReadTimeout:  o.requestTimeout,
		Program:      o.program,
		KubectlFlags: o.kubectlFlags(),
		Clock:        clock.RealClock{},
	}
}

// contextName returns the name of the context in use; "" if there is none.
func (o *options) contextName() string {
	if *o.control.Context != "" {
		return *o.control.Context
	}
	raw, err := o.control.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// kubectlFlags returns the flags with which kubectl reaches the same cluster.
func (o *options) kubectlFlags() (flags string) {
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", *o.control.KubeConfig}, {"context", o.contextName()}, {"server", *o.control.APIServer},
	} {
		if flag.value != "" {
			flags += " --" + flag.name + " " + quoted(flag.value)
		}
	}
	return flags
}

var unquoted = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted quotes a text for a shell, if needed.
func quoted(text string) string {
	if unquoted.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// noKubeconfigHost is the cluster that client-go assumes without a kubeconfig: nobody means it.
const noKubeconfigHost = "http://localhost:8080"

// connect sets the client of the control cluster, or ControlError.
func (o *options) connect(ctx context.Context, to *account.Access) {
	config, err := o.control.ToRESTConfig()
	if err = cmp.Or(o.kubeconfigError, redact.Error(err)); err != nil {
		to.ControlError = fmt.Errorf("reading the kubeconfig of the cluster with the Machines: %w", err)
		return
	}
	if config.Host == noKubeconfigHost && *o.control.APIServer == "" && o.contextName() == "" {
		to.ControlError = errors.New("no kubeconfig with a current context: " +
			"set --kubeconfig, $KUBECONFIG or --context to the cluster with the Machines")
		return
	}
	to.Control, to.ControlError = o.newClient(ctx, config)
}

// newClient returns a client for a cluster, after the login plugin has run, if there is one.
func (o *options) newClient(ctx context.Context, config *rest.Config) (client.Client, error) {
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 300 // as kubectl does
	}
	if err := o.logIn(ctx, config); err != nil {
		return nil, fmt.Errorf("logging in to cluster %s: %w", config.Host, redact.Error(err))
	}
	made, err := client.New(config, client.Options{Scheme: account.Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for cluster %s: %w", config.Host, redact.Error(err))
	}
	return made, nil
}

// mapper maps all kinds that are read to their resources. Discovery would take more requests, without a context.
func mapper() meta.RESTMapper {
	scheme, mapper := account.Scheme(), meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if kind.Kind == "Node" || kind.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}

// pluginTimeout is the delay after which a running login plugin is named: it may wait for user input.
const pluginTimeout = time.Second

// logIn runs the login plugin of a kubeconfig, which then caches its credentials for the process. So the time of the
// login, in a browser for instance, does not count against the cluster's timeout.
func (o *options) logIn(ctx context.Context, config *rest.Config) error {
	if config.ExecProvider == nil {
		return nil
	}
	notice := time.AfterFunc(pluginTimeout, func() {
		o.say("still waiting for the login plugin %s", config.ExecProvider.Command)
	})
	defer notice.Stop()
	plugin := rest.CopyConfig(config)
	plugin.Timeout = 0
	plugin.Wrap(func(http.RoundTripper) http.RoundTripper { // no request is sent
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
		})
	})
	transport, err := rest.TransportFor(plugin)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://login.invalid", http.NoBody)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// operator returns what the commands work with that ask API and control cluster. That the cluster
// cannot be reached is its ControlError.
func (o *options) operator(ctx context.Context) (*account.Access, error) {
	if o.configError != nil {
		return nil, o.configError
	}
	result := o.access()
	o.connect(ctx, result)
	return result, nil
}

// access is what all commands work with, before it reaches a cluster.
func (o *options) access() *account.Access {
	namespace, _, err := o.control.ToRawKubeConfigLoader().Namespace()
	if err != nil { // connect has the same error, where a cluster is asked
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

// contextName is the context that is used; "" if there is none.
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

// kubectlFlags are those by which kubectl reaches the same cluster.
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

// quoted is a text as a shell takes it.
func quoted(text string) string {
	if unquoted.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// connect sets the client of the control cluster, or why there is none.
func (o *options) connect(ctx context.Context, to *account.Access) {
	config, err := o.control.ToRESTConfig()
	if err != nil {
		to.ControlError = fmt.Errorf("reading the kubeconfig of the cluster with the Machines: %w", err)
		return
	}
	to.Control, to.ControlError = o.newClient(ctx, config)
}

// newClient logs in to a cluster, if that takes a plugin.
func (o *options) newClient(ctx context.Context, config *rest.Config) (client.Client, error) {
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 300 // as kubectl does
	}
	if err := o.logIn(ctx, config); err != nil {
		return nil, fmt.Errorf("logging in to cluster %s: %w", config.Host, err)
	}
	made, err := client.New(config, client.Options{Scheme: account.Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("asking cluster %s: %w", config.Host, err)
	}
	return made, nil
}

// mapper names the resources of all kinds that are read. To ask the cluster for them would take
// more requests, and those know no context.
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

// pluginPatience is after how long a login plugin is named: it may wait for somebody.
const pluginPatience = time.Second

// logIn runs the login plugin of a kubeconfig, which then keeps its credentials for the process:
// what the plugin takes, as for somebody to log in by a browser, is not time of the cluster's.
func (o *options) logIn(ctx context.Context, config *rest.Config) error {
	if config.ExecProvider == nil {
		return nil
	}
	patience := time.AfterFunc(pluginPatience, func() { o.say("the login plugin %s runs", config.ExecProvider.Command) })
	defer patience.Stop()
	plugin := rest.CopyConfig(config)
	plugin.Timeout = 0
	plugin.Wrap(func(http.RoundTripper) http.RoundTripper { // no request leaves
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

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

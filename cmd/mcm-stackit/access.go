// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

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
func (o *options) operator() (*account.Access, error) {
	if o.configError != nil {
		return nil, o.configError
	}
	result := o.access()
	o.connect(result)
	return result, nil
}

// access returns the Access of all commands, without clients for clusters. It says whose credentials are used.
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
		Namespace:   namespace,
		SecretName:  o.secret,
		Direct:      direct,
		Region:      o.region,
		ReadTimeout: o.requestTimeout,
		Clock:       clock.RealClock{},
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

// connect sets the client of the control cluster, or ControlError.
func (o *options) connect(to *account.Access) {
	config, err := o.control.ToRESTConfig()
	if err != nil {
		to.ControlError = fmt.Errorf("reading the kubeconfig of the cluster with the Machines: %w", redact.Error(err))
		return
	}
	to.Control, to.ControlError = newClient(config)
}

// newClient returns a client for a cluster.
func newClient(config *rest.Config) (client.Client, error) {
	config.QPS, config.Burst = 50, 300 // as kubectl does
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// operator returns what the commands work with that call the API. withCluster says whether
// the control cluster may be asked.
func (o *options) operator(ctx context.Context, withCluster bool) (*account.Access, error) {
	if o.configError != nil {
		return nil, o.configError
	}
	return o.operatorOfWhole(ctx, withCluster)
}

// operatorOfWhole is operator for a command that can do without the API.
func (o *options) operatorOfWhole(ctx context.Context, withCluster bool) (*account.Access, error) {
	with, err := o.operatorOfBroken(ctx, withCluster)
	if err != nil || len(with.Broken) == 0 {
		return with, err
	}
	return nil, with.Broken[0]
}

// operatorOfBroken is operator for a command that says itself which files are broken.
func (o *options) operatorOfBroken(ctx context.Context, withCluster bool) (*account.Access, error) {
	namespace, _, err := o.control.ToRawKubeConfigLoader().Namespace()
	if err != nil { // connect has the same error, where a cluster is asked
		namespace = cmp.Or(*o.control.Namespace, metav1.NamespaceDefault)
	}
	manifests, broken, err := manifest.Read(ctx, o.files, o.streams.In, namespace)
	if err != nil {
		return nil, err
	}
	overrides, err := o.flagOverrides(ctx)
	if err != nil {
		return nil, err
	}
	transport := spi.NewTransport()
	result := &account.Access{
		Sessions:    o.sessions(transport),
		Transport:   transport,
		NewSessions: o.sessions,
		Manifests:   manifests,
		Broken:      broken,
		Namespace:   namespace,
		SecretName:  o.secret,
		Overrides:   overrides,
		Environment: o.environment(ctx),
		NoAuth:      o.config.NoAuth,
		ReadTimeout: o.requestTimeout,
		Note:        func(text string) { o.sayAbout(1, text) },
		Clock:       o.clock,
	}
	if withCluster {
		err = o.connect(result)
	}
	return result, err
}

// sessions returns what makes the command's sessions with the IaaS API.
func (o *options) sessions(transport http.RoundTripper) spi.SessionProviderInterface {
	if o.configError != nil { // the default would be STACKIT's own API
		transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, o.configError })
	}
	return &spi.PluginSPIImpl{Config: o.config, UserAgent: "mcm-stackit/" + buildinfo.Version(), Transport: transport}
}

// connect sets the clients of the clusters.
func (o *options) connect(to *account.Access) error {
	config, err := o.control.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster with the Machines: %w", err)
	}
	if to.Control, err = newClient(config); err != nil {
		return err
	}
	switch o.targetKubeconfig {
	case "":
		to.Target = to.Control
	case noCluster:
	default:
		target, err := o.targetConfig()
		if err != nil {
			return err
		}
		target.Timeout = config.Timeout
		to.Target, err = newClient(target)
		return err
	}
	return nil
}

// tryToConnect sets the clients of the clusters. One that cannot be asked is unread, and not
// the end.
func (o *options) tryToConnect(to *account.Access) {
	err := o.connect(to)
	if to.Control == nil {
		to.ControlError = err
	}
	if to.Target == nil && o.targetKubeconfig != noCluster {
		to.TargetError = err
	}
}

// targetConfig reads the file of --target-kubeconfig.
func (o *options) targetConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.targetKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --target-kubeconfig %s: %w", o.targetKubeconfig, err)
	}
	return o.interruptible(config), nil
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 300 // as kubectl does
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: account.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("asking cluster %s: %w", config.Host, err)
	}
	return c, nil
}

// flagOverrides are what the flags say of the credentials.
func (o *options) flagOverrides(ctx context.Context) (account.Overrides, error) {
	overrides := account.Overrides{
		ProjectID:         account.Override{Value: o.projectID, Origin: "--project-id"},
		Region:            account.Override{Value: o.region, Origin: "--region"},
		ServiceAccountKey: account.Override{Origin: "--service-account-key-path"},
	}
	var err error
	if o.keyPath != "" {
		overrides.ServiceAccountKey.Value, err = readKey(ctx, "--service-account-key-path", o.keyPath)
	}
	return overrides, err
}

// environment is what the environment says of them. Its key is read when it is used: the
// variable may be set for other tools.
func (o *options) environment(ctx context.Context) account.Overrides {
	variable := func(name string) account.Override {
		value, _ := o.lookup(name)
		return account.Override{Value: value, Origin: "$" + name}
	}
	key := variable(envKeyPath)
	if path := key.Value; path != "" {
		key.Value = ""
		key.Read = sync.OnceValues(func() (string, error) { return readKey(ctx, key.Origin, path) })
	}
	return account.Overrides{ProjectID: variable(envProjectID), Region: variable(envRegion), ServiceAccountKey: key}
}

func readKey(ctx context.Context, origin, path string) (string, error) {
	if isContent(path) {
		return "", contentError(origin)
	}
	content, err := manifest.ReadFile(ctx, path)
	if err != nil {
		return "", fmt.Errorf("reading the key of %s: %w", origin, err)
	}
	if len(content) == 0 {
		return "", fmt.Errorf("reading the key of %s: %s is empty: must have a service-account key", origin, path)
	}
	return string(content), nil
}

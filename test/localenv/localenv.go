// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// Env is a running environment. Its methods are safe for concurrent use.
type Env struct {
	*stack.Env

	cloud     *iaasmock.Cloud
	server    *httptest.Server
	stopNodes func()
}

// Start starts all parts from the programs that make has built. It returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on /healthz. On failure it
// stops all parts and returns a *PartError with the failed part and the end of its log. ctx limits
// only the start: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	s := newSettings(opts)
	e := &Env{cloud: iaasmock.New(s.cloudOptions...), stopNodes: func() {}}
	key, err := e.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		return nil, err
	}
	e.server = httptest.NewServer(s.cloudHandler(e.cloud))
	api := stack.API{ServiceAccountKey: key, Environment: []string{
		"STACKIT_IAAS_ENDPOINT=" + e.server.URL,
		"STACKIT_TOKEN_BASEURL=" + e.server.URL + "/oauth/v2/token",
		"STACKIT_IDP_TOKEN_ENDPOINT=" + e.server.URL + "/oauth/v2/token",
	}}
	if e.Env, err = stack.Start(ctx, append(s.stack, stack.WithCloud(api))...); err != nil {
		e.server.Close()
		return nil, err
	}
	e.stopNodes = startNodes(e.Cloud(), e.TargetClient(), s.joinDuration)
	return e, nil
}

// Stop stops all parts in reverse order, removes the temporary folder, and returns when everything
// has ended. Further calls do nothing.
func (e *Env) Stop() {
	e.stopNodes()
	e.Env.Stop()
	e.server.CloseClientConnections()
	e.server.Close()
}

// Cloud returns the mock of the cloud.
func (e *Env) Cloud() *iaasmock.Cloud { return e.cloud }

// CloudURL returns the URL of the mock's IaaS API.
func (e *Env) CloudURL() string { return e.server.URL }

// Types of package stack, so that users of this package need not import it.
type (
	// Part is the name of a part of the environment, such as its sidecar.
	Part = stack.Part
	// PartError is the error of a part that failed to start or ended unexpectedly.
	PartError = stack.PartError
	// Request is a request of a service account to an API server: see Env.Requests.
	Request = stack.Request
)

// The controllers of an environment: machine-controller-manager, and this project's machine-controller.
const (
	PartManager = stack.PartManager
	PartSidecar = stack.PartSidecar
)

// Check returns a *PartError if a program that Start needs is missing.
func Check() error { return stack.Check() }

// Root returns the root folder of this repository, in which the working directory must be.
func Root() (string, error) { return stack.Root() }

// ParseManifests parses YAML with one or several objects: see stack.ParseManifests.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	return stack.ParseManifests(content)
}

// PodPart returns the part of a container that Env.StartPod runs, for Env.Logs.
func PodPart(pod, container string) Part { return stack.PodPart(pod, container) }

// ServiceAccountToken returns a token of a service account for the API server, valid for an hour.
func ServiceAccountToken(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	return stack.ServiceAccountToken(ctx, c, namespace, name)
}

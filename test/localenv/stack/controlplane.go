// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func (e *Env) startControlPlane(ctx context.Context) error {
	etcdURL, err := e.startEtcd(ctx, e.programs.etcd)
	if err != nil {
		return err
	}
	if e.control, err = e.startCluster(ctx, PartAPIServer, etcdURL); err != nil {
		return err
	}
	e.target = e.control
	if e.settings.targetCluster {
		if e.target, err = e.startCluster(ctx, PartTargetAPIServer, etcdURL); err != nil {
			return err
		}
	}
	if err := e.ensureNamespace(ctx); err != nil {
		return &PartError{Part: PartAPIServer, Err: fmt.Errorf("making namespace %s: %w", e.settings.namespace, err)}
	}
	return nil
}

// startEtcd starts etcd and returns its URL.
func (e *Env) startEtcd(ctx context.Context, path string) (string, error) {
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	ports, err := e.launch(ctx, service{
		part:  PartEtcd,
		ports: 2,
		command: func(ports []int) command {
			client, peer := url(ports[0]), url(ports[1])
			return command{path: path, env: minimalEnvironment(), args: []string{
				"--data-dir=" + filepath.Join(e.dir, "etcd"),
				"--listen-client-urls=" + client,
				"--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer,
				"--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=default=" + peer,
				// What is stored here is thrown away at the end.
				"--unsafe-no-fsync=true",
			}}
		},
		ready: func(ctx context.Context, ports []int) error {
			return httpOK(ctx, e.probe, url(ports[0])+"/health", "")
		},
	})
	if err != nil {
		return "", err
	}
	return url(ports[0]), nil
}

// startCluster starts a kube-apiserver, whose objects have its name as their prefix in
// etcd, and makes what reaches it as a member of system:masters.
func (e *Env) startCluster(ctx context.Context, part Part, etcdURL string) (*cluster, error) {
	creds, err := newCredentials(filepath.Join(e.dir, string(part)))
	if err != nil {
		return nil, &PartError{Part: part, Err: err}
	}
	c := &cluster{part: part, credentials: creds, etcdURL: etcdURL, kubeconfig: filepath.Join(creds.dir, "kubeconfig")}
	if c.port, err = e.launchAPIServer(ctx, c); err != nil {
		return nil, err
	}
	c.restConfig = &rest.Config{
		Host:            apiServerURL(c.port),
		BearerToken:     creds.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: creds.ca},
		// Nobody else uses this server: no need to be gentle.
		QPS:            1000,
		Burst:          2000,
		WarningHandler: rest.NoWarnings{},
	}
	c.client, err = newClient(c.restConfig)
	if err := errors.Join(err, writeKubeconfig(c.kubeconfig, c.restConfig)); err != nil {
		return nil, &PartError{Part: part, Err: err}
	}
	return c, nil
}

// launchAPIServer runs kube-apiserver, on the port it had before if there was one,
// and returns its port.
func (e *Env) launchAPIServer(ctx context.Context, c *cluster) (port int, err error) {
	probe, closeIdle := c.credentials.httpClient()
	defer closeIdle()
	ports, err := e.launch(ctx, service{
		part:  c.part,
		ports: 1,
		fixed: c.port,
		command: func(ports []int) command {
			return command{path: e.programs.apiServer, env: minimalEnvironment(), args: c.args(ports[0])}
		},
		ready: func(ctx context.Context, ports []int) error {
			return httpOK(ctx, probe, apiServerURL(ports[0])+"/readyz", c.credentials.token)
		},
	})
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// KillAPIServer ends the control cluster's kube-apiserver with SIGKILL and returns when
// it is gone. It does not count as a failure of the environment.
func (e *Env) KillAPIServer() { e.endPart(PartAPIServer, 0) }

// StartAPIServer starts kube-apiserver and returns when it is ready. Start has done
// so already; it is for use after KillAPIServer. Address, credentials and all objects
// are the same as before.
func (e *Env) StartAPIServer(ctx context.Context) error {
	_, err := e.launchAPIServer(ctx, e.control)
	return err
}

func (e *Env) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.settings.namespace}}
	// The API server makes "default" itself, but perhaps a moment later.
	if err := e.control.client.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

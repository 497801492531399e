// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// cluster is a control plane of envtest, with clients that use it as a member of system:masters.
type cluster struct {
	envtest    envtest.Environment
	dir        string
	config     *rest.Config
	client     client.Client
	kubeconfig string
}

// startCluster starts an etcd and a kube-apiserver, with these CRDs.
func (e *Env) startCluster(name string, crds ...string) (*cluster, error) {
	log.SetLogger(klog.Background()) // else controller-runtime complains that it has none
	c := &cluster{dir: filepath.Join(e.dir, name)}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	known := runtime.NewScheme()
	// Tokens are signed with RSA, as in Gardener; envtest's own key is none.
	_, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	err = errors.Join(err,
		os.MkdirAll(c.path("etcd"), 0o700),
		os.WriteFile(c.path("tokens.key"), key, 0o600),
		os.WriteFile(c.path("audit.yaml"), []byte(auditPolicy), 0o600),
		scheme.AddToScheme(known), apiextensionsv1.AddToScheme(known), machinev1alpha1.AddToScheme(known),
	)
	if err != nil {
		return nil, err
	}
	c.envtest = envtest.Environment{
		BinaryAssetsDirectory: e.programs.controlPlane, ControlPlaneStartTimeout: readyLimit,
		// Open watches keep an API server from ending at SIGTERM: no need to wait for more than etcd takes.
		ControlPlaneStopTimeout: time.Second, CRDDirectoryPaths: crds, UseExistingCluster: ptr.To(false),
	}
	c.envtest.ControlPlane.Etcd = &envtest.Etcd{DataDir: c.path("etcd")}
	server := c.envtest.ControlPlane.GetAPIServer()
	server.CertDir = c.dir // kept by a restart
	server.Configure().Set("audit-policy-file", c.path("audit.yaml")).Set("audit-log-path", c.path(auditLog)).
		Set("endpoint-reconciler-type", "none").
		Set("service-account-key-file", c.path("tokens.key")).
		Set("service-account-signing-key-file", c.path("tokens.key"))
	if c.config, err = c.envtest.Start(); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting the control plane %s: %w", name, err)
	}
	// The Host ends in "/", which users would put before a path once more.
	c.config.Host, c.config.WarningHandler = strings.TrimSuffix(c.config.Host, "/"), rest.NoWarnings{}
	c.client, err = client.New(c.config, client.Options{Scheme: known})
	return c, errors.Join(err, os.WriteFile(c.kubeconfig, c.envtest.KubeConfig, 0o600))
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// RestartAPIServer stops the control cluster's kube-apiserver, and starts it again with the same address,
// credentials and objects. It returns when the API server is ready.
func (e *Env) RestartAPIServer() error {
	server := e.control.envtest.ControlPlane.APIServer
	_ = server.Stop() // Its error says that it had to be killed.
	return server.Start()
}

func (c *cluster) stop() { _ = c.envtest.Stop() } // as above

const (
	// readyLimit is the maximum time until a part is ready: a minute where a dozen API servers start at once.
	readyLimit = 2 * time.Minute
	// auditLog is the audit log's file name in a cluster's folder.
	auditLog = "audit.log"
	// auditPolicy logs the requests of service accounts: all other users may do everything.
	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`
)

// Request is a request of a service account to an API server, from the audit log.
type Request struct {
	// User is the service account, as system:serviceaccount:NAMESPACE:NAME.
	User string
	// Verb is what the request does in Kubernetes' terms, such as get, list, watch or patch.
	Verb string
	// These fields identify the object; "" where a request has none.
	Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status code of the answer.
	Code int
}

// Requests returns the requests of service accounts for resources, first those to the control
// cluster, then those to the target cluster. A watch that has ended is listed twice.
func (e *Env) Requests() (requests []Request, err error) {
	for _, c := range slices.Compact([]*cluster{e.control, e.target}) {
		log, err := os.ReadFile(c.path(auditLog))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range bytes.Lines(log) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // The last line may be incomplete.
			}
			var event struct {
				Verb      string
				User      struct{ Username string }
				ObjectRef *struct {
					APIGroup, Resource, Subresource, Namespace, Name string
				}
				ResponseStatus struct{ Code int }
			}
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, err
			}
			if object := event.ObjectRef; object != nil {
				requests = append(requests, Request{
					User: event.User.Username, Verb: event.Verb,
					Group: object.APIGroup, Resource: object.Resource, Subresource: object.Subresource,
					Namespace: object.Namespace, Name: object.Name, Code: event.ResponseStatus.Code,
				})
			}
		}
	}
	return requests, nil
}

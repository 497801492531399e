// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (e *Env) startControlPlane(ctx context.Context) error {
	etcdURL, err := e.startEtcd(ctx)
	if err != nil {
		return err
	}
	if e.control, err = e.startCluster(ctx, partAPIServer, etcdURL); err != nil {
		return err
	}
	e.target = e.control
	if e.settings.targetCluster {
		if e.target, err = e.startCluster(ctx, partTargetAPIServer, etcdURL); err != nil {
			return err
		}
	}
	if err := e.ensureNamespace(ctx); err != nil {
		return &PartError{Part: partAPIServer, Err: fmt.Errorf("creating namespace %s: %w", e.settings.namespace, err)}
	}
	return nil
}

// startEtcd starts etcd and returns its URL. It has a single member, so its peer port need not be known.
func (e *Env) startEtcd(ctx context.Context) (string, error) {
	port, err := e.launch(ctx, service{
		part: PartEtcd,
		command: func(port int) command {
			return command{path: e.programs.etcd, env: minimalEnvironment(), args: []string{
				"--data-dir=" + filepath.Join(e.dir, "etcd"),
				"--listen-client-urls=" + localURL(port),
				"--advertise-client-urls=" + localURL(port),
				"--listen-peer-urls=http://127.0.0.1:0",
				// The data is thrown away at the end.
				"--unsafe-no-fsync=true",
			}}
		},
		ready: func(ctx context.Context, port int) error {
			return httpOK(ctx, e.probe, localURL(port)+"/health", "")
		},
	})
	return localURL(port), err
}

// startCluster starts a kube-apiserver that stores its objects in etcd under a prefix of its own, and makes clients
// that use it as a member of system:masters.
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
		// The server has no other users, so a high rate is fine.
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

// launchAPIServer runs kube-apiserver, on its earlier port if it had one, and returns its port.
func (e *Env) launchAPIServer(ctx context.Context, c *cluster) (port int, err error) {
	probe, closeIdle := c.credentials.httpClient()
	defer closeIdle()
	return e.launch(ctx, service{
		part:  c.part,
		fixed: c.port,
		command: func(port int) command {
			return command{path: e.programs.apiServer, env: minimalEnvironment(), args: c.args(port)}
		},
		ready: func(ctx context.Context, port int) error {
			return httpOK(ctx, probe, apiServerURL(port)+"/readyz", c.credentials.token)
		},
	})
}

// KillAPIServer kills the control cluster's kube-apiserver with SIGKILL and returns when it has
// ended. The environment does not take this for a failure: Err stays nil.
func (e *Env) KillAPIServer() { e.endPart(partAPIServer, 0) }

// StartAPIServer restarts kube-apiserver after KillAPIServer, and returns when it is ready.
// Address, credentials and all objects stay the same.
func (e *Env) StartAPIServer(ctx context.Context) error {
	_, err := e.launchAPIServer(ctx, e.control)
	return err
}

func (e *Env) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.settings.namespace}}
	// The API server creates "default" itself, but maybe a moment later.
	if err := e.control.client.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// cluster is a kube-apiserver and its clients. It can be restarted.
type cluster struct {
	part        Part
	credentials credentials
	etcdURL     string
	// port is 0 before the first start.
	port int

	restConfig *rest.Config
	client     client.Client
	kubeconfig string
}

func (c *cluster) args(port int) []string {
	path := c.credentials.path
	return []string{
		"--etcd-servers=" + c.etcdURL,
		"--etcd-prefix=/" + string(c.part),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + path("tls.crt"),
		"--tls-private-key-file=" + path("tls.key"),
		"--cert-dir=" + c.credentials.dir,
		"--token-auth-file=" + path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--audit-policy-file=" + path("audit.yaml"),
		"--audit-log-path=" + path(auditLog),
		"--service-account-issuer=https://localenv",
		// These tokens are used only here: the serving key is good enough.
		"--service-account-key-file=" + path("tls.key"),
		"--service-account-signing-key-file=" + path("tls.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		// No controller creates the service accounts that this plugin requires, and nothing uses the endpoints below.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
	}
}

func apiServerURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// credentials are the keys and certificates of an API server and its only user.
type credentials struct {
	dir string
	// token is the bearer token of a member of system:masters.
	token string
	// ca is the CA certificate, in PEM.
	ca []byte
}

func (c credentials) path(name string) string { return filepath.Join(c.dir, name) }

// newCredentials creates keys and certificates and writes them to dir.
func newCredentials(dir string) (credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return credentials{}, err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", loopback, []string{"localhost"})
	if err != nil {
		return credentials{}, fmt.Errorf("creating a serving certificate: %w", err)
	}
	c := credentials{dir: dir, token: rand.Text(), ca: cert}
	return c, errors.Join(
		os.WriteFile(c.path("tls.crt"), cert, 0o600),
		os.WriteFile(c.path("tls.key"), key, 0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(c.token+`,admin,admin,"system:masters"`+"\n"), 0o600),
		os.WriteFile(c.path("audit.yaml"), []byte(auditPolicy), 0o600),
	)
}

// httpClient returns a client that trusts the API server, and a function that closes its connections.
func (c credentials) httpClient() (*http.Client, func()) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "localenv"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}

// newClient returns a client for the types of Kubernetes, of CRDs and of Machines.
func newClient(config *rest.Config) (client.Client, error) {
	known := runtime.NewScheme()
	err := errors.Join(
		scheme.AddToScheme(known),
		apiextensionsv1.AddToScheme(known),
		machinev1alpha1.AddToScheme(known),
	)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: known})
}

// auditPolicy makes kube-apiserver log the requests of service accounts. All other users here are members of
// system:masters, which may do everything. A watch is logged when it starts: it ends with the environment.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`

// auditLog is the audit log's file name in the folder of an API server's credentials.
const auditLog = "audit.log"

// Request is a request of a service account to an API server, from the audit log.
type Request struct {
	// User is the service account, as system:serviceaccount:NAMESPACE:NAME.
	User string
	// Verb is what the request does in Kubernetes' terms, such as get, list, watch or patch.
	Verb string
	// These fields identify the object. Group is "" for the core API, Subresource is "" for a whole
	// object, Namespace is "" for cluster-wide resources, and Name is "" for lists and generated
	// names.
	Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status code of the answer.
	Code int
}

// Requests returns the requests of service accounts for resources, first those to the control
// cluster, then those to the target cluster. A watch that has ended is listed twice.
func (e *Env) Requests() ([]Request, error) {
	var requests []Request
	for _, part := range []Part{partAPIServer, partTargetAPIServer} {
		file, err := os.Open(filepath.Join(e.dir, string(part), auditLog))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		read, err := readAuditLog(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", part, err)
		}
		requests = append(requests, read...)
	}
	return requests, nil
}

func readAuditLog(log io.Reader) ([]Request, error) {
	var requests []Request
	for decoder := json.NewDecoder(bufio.NewReader(log)); ; {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef *struct {
				APIGroup, Resource, Subresource, Namespace, Name string
			}
			ResponseStatus struct{ Code int }
		}
		err := decoder.Decode(&event)
		// The last line may be incomplete.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return requests, nil
		}
		if err != nil {
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

// establishLimit is the maximum time until the API server serves a new CRD, which takes a second or two.
const establishLimit = 30 * time.Second

// installCRDs applies the manager's CRDs and waits until they are served.
func (e *Env) installCRDs(ctx context.Context) error {
	crds, err := readManifests(e.programs.crds)
	if err != nil {
		return err
	}
	if len(crds) == 0 {
		return fmt.Errorf("the folder %s has no manifests: must have the custom resource definitions of the manager",
			e.programs.crds)
	}
	for _, crd := range crds {
		if err := e.apply(ctx, crd); err != nil {
			return err
		}
	}
	served := func(ctx context.Context) (bool, error) {
		for _, crd := range crds {
			var current apiextensionsv1.CustomResourceDefinition
			err := e.control.client.Get(ctx, client.ObjectKeyFromObject(crd), &current)
			if err != nil || !apihelpers.IsCRDConditionTrue(&current, apiextensionsv1.Established) {
				return false, err
			}
		}
		return true, nil
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishLimit, true, served)
}

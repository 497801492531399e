// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

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

// apiServer is what kube-apiserver needs to start, and to start again as the same.
type apiServer struct {
	credentials credentials
	etcdURL     string
	// port is 0 before the first start.
	port int
}

// startAPIServer starts kube-apiserver and makes the configuration to reach it.
func (e *Env) startAPIServer(ctx context.Context, etcdURL string) error {
	creds, err := newCredentials(filepath.Join(e.dir, "pki"))
	if err != nil {
		return &PartError{Part: PartAPIServer, Err: err}
	}
	e.apiServer = apiServer{credentials: creds, etcdURL: etcdURL}
	if e.apiServer.port, err = e.launchAPIServer(ctx); err != nil {
		return err
	}
	e.restConfig = &rest.Config{
		Host:            apiServerURL(e.apiServer.port),
		BearerToken:     creds.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: creds.ca},
		// Nobody else uses this server: no need to be gentle.
		QPS:            1000,
		Burst:          2000,
		WarningHandler: rest.NoWarnings{},
	}
	controllers := e.RESTConfig()
	controllers.Impersonate.UserName = e.settings.controllerUser
	// Without such a user both are the same file.
	return errors.Join(
		writeKubeconfig(e.controllerKubeconfig(), controllers),
		writeKubeconfig(e.KubeconfigPath(), e.restConfig))
}

func apiServerURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// launchAPIServer runs kube-apiserver, on the port it had before if there was one,
// and returns its port.
func (e *Env) launchAPIServer(ctx context.Context) (port int, err error) {
	creds := e.apiServer.credentials
	client, closeIdle := creds.httpClient()
	defer closeIdle()
	ports, err := e.launch(ctx, service{
		part:  PartAPIServer,
		ports: 1,
		fixed: e.apiServer.port,
		command: func(ports []int) command {
			return command{path: e.programs.apiServer, env: minimalEnvironment(), args: creds.apiServerArgs(ports[0], e.apiServer.etcdURL)}
		},
		ready: func(ctx context.Context, ports []int) error {
			return httpOK(ctx, client, apiServerURL(ports[0])+"/readyz", creds.token)
		},
	})
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// KillAPIServer ends kube-apiserver with SIGKILL and returns when it is gone. It
// does not count as a failure of the environment.
func (e *Env) KillAPIServer() { e.endPart(PartAPIServer, 0) }

// StartAPIServer starts kube-apiserver and returns when it is ready. Start has done
// so already; it is for use after KillAPIServer. Address, credentials and all objects
// are the same as before.
func (e *Env) StartAPIServer(ctx context.Context) error {
	_, err := e.launchAPIServer(ctx)
	return err
}

// credentials are what an API server and its only user need.
type credentials struct {
	dir string
	// token is the bearer token of a member of system:masters.
	token string
	// ca is the certificate to trust, PEM.
	ca []byte
}

func (c credentials) path(name string) string { return filepath.Join(c.dir, name) }

// newCredentials makes keys and certificates and writes them to dir.
func newCredentials(dir string) (credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return credentials{}, err
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return credentials{}, fmt.Errorf("making a serving certificate: %w", err)
	}
	signer, err := newSigningKey()
	if err != nil {
		return credentials{}, fmt.Errorf("making a key to sign service account tokens: %w", err)
	}
	c := credentials{dir: dir, token: rand.Text(), ca: cert}
	return c, errors.Join(
		os.WriteFile(c.path("tls.crt"), cert, 0o600),
		os.WriteFile(c.path("tls.key"), key, 0o600),
		os.WriteFile(c.path("signer.key"), signer, 0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(c.token+`,admin,admin,"system:masters"`+"\n"), 0o600),
	)
}

func newSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func (c credentials) apiServerArgs(port int, etcdURL string) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + c.path("tls.crt"),
		"--tls-private-key-file=" + c.path("tls.key"),
		"--cert-dir=" + c.dir,
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://localenv",
		"--service-account-key-file=" + c.path("signer.key"),
		"--service-account-signing-key-file=" + c.path("signer.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		// There is no controller that would make the service accounts this
		// plugin wants, and nobody to whom the endpoints below would matter.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
	}
}

// httpClient returns a client that trusts the API server, and what closes its
// connections.
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
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken, Impersonate: config.Impersonate.UserName}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}

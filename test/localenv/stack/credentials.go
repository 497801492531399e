// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

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
		os.WriteFile(c.path("audit.yaml"), []byte(auditPolicy), 0o600),
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
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// leaseIdentity gives a machine-controller a name of its own in leader election.
// It takes its computer's host name there, which here is the same for all: they
// would all take the lease for theirs. So it reaches the API server through a proxy
// that writes another name into Leases, and reads it back.
type leaseIdentity struct {
	// kubeconfig is the file with which to reach the API server through the proxy.
	kubeconfig string
	// host is the name the controller knows, name the one in the Lease.
	host string
	name atomic.Pointer[string]
}

// become changes the name in the Lease.
func (l *leaseIdentity) become(name string) { l.name.Store(&name) }

// newLeaseIdentity starts the proxy of a part, which reaches the API server of the
// control cluster with this token.
func (e *Env) newLeaseIdentity(part Part, token string) (*leaseIdentity, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &leaseIdentity{host: host, kubeconfig: filepath.Join(e.dir, string(part)+".kubeconfig")}
	l.become(string(part))
	server := &http.Server{Handler: l.proxy(e.control, token), ReadHeaderTimeout: 10 * time.Second}
	e.mu.Lock()
	e.leaseServers = append(e.leaseServers, server)
	e.mu.Unlock()
	e.watchers.Add(1)
	go func() {
		defer e.watchers.Done()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.fail(&PartError{Part: part, Err: err})
		}
	}()
	return l, writeKubeconfig(l.kubeconfig, &rest.Config{Host: "http://" + listener.Addr().String()})
}

// endLeaseServers ends all proxies.
func (e *Env) endLeaseServers() {
	e.mu.Lock()
	servers := e.leaseServers
	e.mu.Unlock()
	for _, server := range servers {
		_ = server.Close()
	}
}

// proxy to an API server, which it reaches with this token: clients send no credentials
// without TLS.
func (l *leaseIdentity) proxy(server *cluster, token string) http.Handler {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.credentials.ca)
	target := &url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(server.port))}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+token)
			if isLease(r.In) && r.In.ContentLength > 0 {
				r.Out.Body, r.Out.ContentLength = renamed(r.In.Body, r.In.Header, l.host, *l.name.Load())
			}
		},
		ModifyResponse: func(response *http.Response) error {
			if isLease(response.Request) {
				response.Body, response.ContentLength = renamed(response.Body, response.Header, *l.name.Load(), l.host)
				response.Header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
			}
			return nil
		},
		// While the API server is down, the controllers say what there is to say.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		FlushInterval: -1,
	}
}

func isLease(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/leases") && r.URL.Query().Get("watch") == ""
}

// renamed replaces a holder of the Lease in body by another.
func renamed(body io.ReadCloser, header http.Header, from, to string) (io.ReadCloser, int64) {
	content, err := io.ReadAll(body)
	_ = body.Close()
	if err != nil {
		content = nil // An empty Lease is refused on either side.
	}
	if changed, err := withHolder(content, header.Get("Content-Type"), from, to); err == nil {
		content = changed
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content))
}

// withHolder answers an error for what is no Lease of that holder, such as the
// Status that there is none.
func withHolder(content []byte, contentType, from, to string) ([]byte, error) {
	// client-go's leader election speaks protobuf.
	form, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		return nil, fmt.Errorf("unknown content type %q", contentType)
	}
	object, kind, err := form.Serializer.Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || ptr.Deref(lease.Spec.HolderIdentity, "") != from {
		return nil, errors.New("no Lease of " + from)
	}
	lease.Spec.HolderIdentity = &to
	lease.SetGroupVersionKind(*kind)
	var encoded bytes.Buffer
	err = form.Serializer.Encode(lease, &encoded)
	return encoded.Bytes(), err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

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
	// host is the name the controller knows.
	host string
	part Part
	// generation counts the starts. Like the Pods of a Deployment, a replica that
	// comes back is another one, and has to wait until its own lease has ended.
	generation atomic.Int64
}

// generationMark stands between a part and its generation.
const generationMark = "."

// renew gives the replica that is started next a new name.
func (l *leaseIdentity) renew() { l.generation.Add(1) }

// name is the one in the Lease.
func (l *leaseIdentity) name() string {
	return fmt.Sprintf("%s-%s%s%d", l.host, l.part, generationMark, l.generation.Load())
}

// newLeaseIdentity starts the proxy of a part.
func (e *Env) newLeaseIdentity(part Part) (*leaseIdentity, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &leaseIdentity{host: host, part: part, kubeconfig: filepath.Join(e.dir, string(part)+".kubeconfig")}
	server := &http.Server{Handler: l.proxy(e.apiServer, e.settings.controllerUser), ReadHeaderTimeout: 10 * time.Second}
	e.leaseServers = append(e.leaseServers, server)
	e.watchers.Add(1)
	go func() {
		defer e.watchers.Done()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.fail(&PartError{Part: part, Err: err})
		}
	}()
	return l, writeKubeconfig(l.kubeconfig, &rest.Config{Host: "http://" + listener.Addr().String()})
}

// proxy to the API server, which it reaches as user; "" is a member of
// system:masters. Clients send no credentials without TLS.
func (l *leaseIdentity) proxy(server apiServer, user string) http.Handler {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.credentials.ca)
	target := &url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(server.port))}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+server.credentials.token)
			if user != "" {
				r.Out.Header.Set("Impersonate-User", user)
			}
			if isLease(r.In) && r.In.ContentLength > 0 {
				r.Out.Body, r.Out.ContentLength = renamed(r.In.Body, r.In.Header, l.host, l.name())
			}
		},
		ModifyResponse: func(response *http.Response) error {
			if isLease(response.Request) {
				response.Body, response.ContentLength = renamed(response.Body, response.Header, l.name(), l.host)
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

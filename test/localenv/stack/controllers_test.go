// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	leasePath  = "/apis/coordination.k8s.io/v1/namespaces/default/leases/machine-controller"
	secretPath = "/api/v1/namespaces/default/secrets/machine-controller"
)

func TestLeaseNamesTheReplica(t *testing.T) {
	const host, ours, earlier, another = "host", "machine-controller-2.2", "machine-controller-2.1", "machine-controller-1.1"
	for name, row := range map[string]struct {
		// The controller writes sent; the API server gets and answers stored; the
		// controller reads read.
		path, sent, stored, read string
	}{
		"a Lease of ours":          {leasePath, host, ours, host},
		"a Lease of our last life": {leasePath, "", earlier, earlier},
		"a Lease of another":       {leasePath, "", another, another},
		"anything else":            {secretPath, ours, ours, ours},
	} {
		for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
			t.Run(name+", "+contentType, func(t *testing.T) {
				g := NewWithT(t)
				backend := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					g.Expect(r.Header.Get("Authorization")).To(Equal("Bearer secret"))
					if r.Method == http.MethodPut {
						g.Expect(holderIn(g, r.Body, contentType)).To(Equal(row.stored))
					}
					w.Header().Set("Content-Type", contentType)
					_, _ = w.Write(leaseOf(g, row.stored, contentType))
				}))
				defer backend.Close()
				lease := &leaseIdentity{host: host}
				lease.become(ours)
				proxy := httptest.NewServer(lease.proxy(serverAt(t, backend), "secret"))
				defer proxy.Close()

				method, body := http.MethodGet, []byte(nil)
				if row.sent != "" {
					method, body = http.MethodPut, leaseOf(g, row.sent, contentType)
				}
				request, err := http.NewRequestWithContext(t.Context(), method, proxy.URL+row.path, bytes.NewReader(body))
				g.Expect(err).NotTo(HaveOccurred())
				request.Header.Set("Content-Type", contentType)
				response, err := http.DefaultClient.Do(request)
				g.Expect(err).NotTo(HaveOccurred())
				defer func() { _ = response.Body.Close() }()
				g.Expect(holderIn(g, response.Body, contentType)).To(Equal(row.read))
			})
		}
	}
}

func TestLeaseWhileTheAPIServerIsDown(t *testing.T) {
	g := NewWithT(t)
	backend := httptest.NewTLSServer(http.NotFoundHandler())
	server := serverAt(t, backend)
	backend.Close()
	lease := &leaseIdentity{}
	lease.become("nobody")
	proxy := httptest.NewServer(lease.proxy(server, ""))
	defer proxy.Close()
	response, err := http.Get(proxy.URL + leasePath)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	g.Expect(response.StatusCode).To(Equal(http.StatusBadGateway))
}

func serializer(g *WithT, contentType string) runtime.Serializer {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	g.Expect(ok).To(BeTrue())
	return info.Serializer
}

func leaseOf(g *WithT, holder, contentType string) []byte {
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		Spec:     coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
	var encoded bytes.Buffer
	g.Expect(serializer(g, contentType).Encode(lease, &encoded)).To(Succeed())
	return encoded.Bytes()
}

func holderIn(g *WithT, body io.Reader, contentType string) string {
	content, err := io.ReadAll(body)
	g.Expect(err).NotTo(HaveOccurred())
	lease := &coordinationv1.Lease{}
	_, _, err = serializer(g, contentType).Decode(content, nil, lease)
	g.Expect(err).NotTo(HaveOccurred())
	return *lease.Spec.HolderIdentity
}

// serverAt stands for the environment's API server.
func serverAt(t *testing.T, server *httptest.Server) *cluster {
	t.Helper()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &cluster{credentials: credentials{ca: ca}, port: port}
}

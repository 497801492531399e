// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// startLeaseProxy starts a proxy to the control cluster's API server that logs in with a Pod's token and puts the
// Pod's name into Leases. In leader election a controller has the name of its host: all processes of one computer
// would take each other's lease for their own.
func (e *Env) startLeaseProxy(pod, token string) (*httptest.Server, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(e.control.config) // without the administrator's certificate
	config.BearerToken = token
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if isLease(r.In) && r.In.ContentLength > 0 {
				r.Out.Body, r.Out.ContentLength = withHolder(r.In.Body, r.In.Header, host, pod)
			}
		},
		ModifyResponse: func(response *http.Response) error {
			if isLease(response.Request) {
				response.Body, response.ContentLength = withHolder(response.Body, response.Header, pod, host)
				response.Header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
			}
			return nil
		},
		// The controllers log when the API server is down.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport:     transport,
		FlushInterval: -1,
	}), nil
}

func isLease(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/leases") && r.URL.Query().Get("watch") == ""
}

// withHolder replaces the holder of an encoded Lease. All else, such as a Status, stays as it is.
func withHolder(body io.ReadCloser, header http.Header, from, to string) (io.ReadCloser, int64) {
	content, _ := io.ReadAll(body) // Both sides reject a Lease that is cut.
	_ = body.Close()
	form, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), header.Get("Content-Type"))
	if ok {
		object, kind, err := form.Serializer.Decode(content, nil, nil)
		lease, isLease := object.(*coordinationv1.Lease)
		if err == nil && isLease && ptr.Deref(lease.Spec.HolderIdentity, "") == from {
			lease.Spec.HolderIdentity = &to
			lease.SetGroupVersionKind(*kind)
			var encoded bytes.Buffer
			if err := form.Serializer.Encode(lease, &encoded); err == nil {
				content = encoded.Bytes()
			}
		}
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content))
}

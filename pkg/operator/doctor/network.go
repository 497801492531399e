// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// explainNoAnswer says in words why a server gave no answer that can be used, and how to
// mend it.
func explainNoAnswer(err error, url string) (found, remedy string) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var operation *net.OpError
	proxy := proxyOf(url)
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an authority that this computer does not trust" + inTheWay(proxy),
			"put the CA's certificate into /etc/ssl/certs, or into a folder that SSL_CERT_DIR names; Gardener mounts the CA of a CloudProfile there for the sidecar"
	case errors.As(err, &name):
		return "its certificate is for another name: " + report.OneLine(name.Error()), "correct the host in the URL; or a proxy answers in its place" + inTheWay(proxy)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid now: " + report.OneLine(invalid.Error()), "check this computer's clock; if it is right, the certificate has to be renewed"
	case errors.As(err, &invalid):
		return "its certificate cannot be used: " + report.OneLine(invalid.Error()), "the certificate has to be replaced"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "it does not speak TLS", "begin the URL with http:// if that is meant, as for a local mock, or correct the port"
	case errors.As(err, &operation) && operation.Op == "proxyconnect", proxy != "" && strings.Contains(err.Error(), "Proxy Authentication Required"):
		return fmt.Sprintf("the proxy %s does not let the request pass: %s", proxy, report.OneLine(err.Error())), "correct HTTPS_PROXY or HTTP_PROXY, or name the host in NO_PROXY"
	case errors.As(err, &dns):
		return fmt.Sprintf("its host %s cannot be found: %s", dns.Name, dns.Err), "correct the host in the URL, or the DNS of this computer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there: connection refused", "correct the URL, or start the server"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time", "check that firewalls and network policies let connections to it pass" + inTheWay(proxy)
	default:
		return "no answer that can be used: " + report.OneLine(err.Error()), "check that the URL is right, and that no proxy or gateway answers in its place" + inTheWay(proxy)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func inTheWay(proxy string) string {
	if proxy == "" {
		return ""
	}
	return fmt.Sprintf(" (the proxy %s is in the way)", proxy)
}

// proxyOf names the proxy that the environment sets for a URL; "" if there is none. A proxy's
// URL may hold a password: only its host is named.
func proxyOf(url string) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return ""
	}
	proxy, err := http.ProxyFromEnvironment(request)
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Host
}

// tokenFailure returns the token endpoint's failure; nil if err is about something else.
func tokenFailure(err error) *spi.TokenError {
	var failure *spi.TokenError
	if errors.As(err, &failure) {
		return failure
	}
	return nil
}

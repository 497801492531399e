// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is a kube-apiserver, and how to reach it. It can start again as the same.
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
		"--service-account-key-file=" + path("signer.key"),
		"--service-account-signing-key-file=" + path("signer.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		// There is no controller that would make the service accounts this
		// plugin wants, and nobody to whom the endpoints below would matter.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
	}
}

func apiServerURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

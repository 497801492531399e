// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Versions that go together. kubernetes/upgrade.md has the same table, and the reasons.
const (
	// managerVersion is the version of machine-controller-manager and its custom resource
	// definitions.
	managerVersion = "v0.62.1"
	// testedKubernetes is the version that the tests run with; all APIs in use have been
	// stable since oldestKubernetes.
	testedKubernetes, oldestKubernetes = "1.36", "1.21"
)

// examineVersion says whether an API server's version is one that goes together with the
// sidecar. reachable is false if the API server did not answer.
func (d *Doctor) examineVersion(subject string, server discovery.ServerVersionInterface) (reachable bool) {
	if server == nil {
		return true
	}
	info, err := server.ServerVersion()
	if err != nil {
		d.unknown(subject, "cannot be reached: "+report.OneLine(err.Error()), "check the kubeconfig and the network; --cloud-only looks at the cloud alone")
		return false
	}
	parsed, err := version.ParseSemantic(info.GitVersion)
	if err != nil {
		d.wrong(subject, fmt.Sprintf("its version %q is not a semantic version: sidecars end when they read it", info.GitVersion),
			"build the API server with its version set")
		return true
	}
	if parsed.LessThan(version.MustParseGeneric(oldestKubernetes)) {
		d.wrong(subject, fmt.Sprintf("Kubernetes %s is too old", info.GitVersion), "update it to "+oldestKubernetes+" or later; tested is "+testedKubernetes)
		return true
	}
	d.fine(subject, fmt.Sprintf("Kubernetes %s; tested is %s, all APIs in use are stable since %s", info.GitVersion, testedKubernetes, oldestKubernetes))
	return true
}

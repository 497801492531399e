// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RESTConfig returns a copy of the configuration to reach the API server of the control
// cluster as a member of system:masters.
func (e *Env) RESTConfig() *rest.Config { return rest.CopyConfig(e.control.restConfig) }

// Client returns a client for the control cluster. It knows the types of Kubernetes,
// of its CRDs and of machine.sapcloud.io/v1alpha1. It reads without a cache.
func (e *Env) Client() client.Client { return e.control.client }

// KubeconfigPath returns a file for kubectl --kubeconfig. Stop removes it.
func (e *Env) KubeconfigPath() string { return e.control.kubeconfig }

// TargetRESTConfig is RESTConfig for the target cluster, which is the same without
// WithTargetCluster.
func (e *Env) TargetRESTConfig() *rest.Config { return rest.CopyConfig(e.target.restConfig) }

// TargetClient is Client for the target cluster.
func (e *Env) TargetClient() client.Client { return e.target.client }

// TargetKubeconfigPath is KubeconfigPath for the target cluster.
func (e *Env) TargetKubeconfigPath() string { return e.target.kubeconfig }

// Namespace returns the namespace the controllers watch.
func (e *Env) Namespace() string { return e.settings.namespace }

// SidecarMetricsURL returns the URL of the machine-controller's metrics. It
// changes with every StartSidecar.
func (e *Env) SidecarMetricsURL() string { return e.url(PartSidecar) + "/metrics" }

// ManagerMetricsURL returns the URL of machine-controller-manager's metrics. It
// changes with every StartManager.
func (e *Env) ManagerMetricsURL() string { return e.url(PartManager) + "/metrics" }

// CloudEnvironment returns the variables ("NAME=value") with which the driver
// reaches the cloud. The sidecar that the environment starts has them already.
func (e *Env) CloudEnvironment() []string { return slices.Clone(e.api.Environment) }

// ServiceAccountKey returns API.ServiceAccountKey.
func (e *Env) ServiceAccountKey() []byte { return slices.Clone(e.api.ServiceAccountKey) }

// ManagerPath returns the path of the built machine-controller-manager, for a test that
// starts one of its own.
func (e *Env) ManagerPath() string { return e.programs.manager }

// ManagerCRDs returns the folder of machine-controller-manager's custom resource
// definitions. They are installed already.
func (e *Env) ManagerCRDs() string { return e.programs.crds }

// MakeFolder makes a folder for what belongs to this environment. Stop removes it
// with all that is in it; if that never happens, the next environment does.
func (e *Env) MakeFolder(name string) (string, error) {
	path := filepath.Join(e.dir, "of-users", name)
	return path, os.MkdirAll(path, 0o750)
}

// Logs returns what a part that is a process has logged so far.
func (e *Env) Logs(part Part) (string, error) {
	content, err := os.ReadFile(e.LogPath(part))
	return string(content), err
}

// Controllers returns the parts that are a machine-controller-manager or a
// machine-controller and were started, also if they have ended: those of a Pod and
// replicas among them.
func (e *Env) Controllers() []Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.controllers)
}

// PID returns the process ID of a part that runs as a process now, 0 if it does
// not.
func (e *Env) PID(part Part) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.processes[part]; p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

func (e *Env) url(part Part) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.urls[part]
}

func (e *Env) setURL(part Part, url string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.urls[part] = url
}

// Requests returns what service accounts have asked of the API servers about resources,
// those of the control cluster first. A watch counts twice when it has ended.
func (e *Env) Requests() ([]Request, error) {
	var requests []Request
	for _, part := range []Part{PartAPIServer, PartTargetAPIServer} {
		file, err := os.Open(filepath.Join(e.dir, string(part), auditLog))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		read, err := readAuditLog(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("audit log of %s: %w", part, err)
		}
		requests = append(requests, read...)
	}
	return requests, nil
}

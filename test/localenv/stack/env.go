// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errStopped is the cause of errors after Stop.
var errStopped = errors.New("the environment was stopped")

// Env is a running environment. Its methods are safe for concurrent use.
type Env struct {
	settings settings
	// dir holds everything temporary; Stop removes it.
	dir, logDir string
	folder      *folder
	programs    programs
	// probe is the client for readiness checks.
	probe *http.Client

	// control is the cluster of the Machines, target the cluster of the Nodes. They are the same without
	// WithTargetCluster.
	control, target *cluster
	// stopReplicas stops restarting the replicas of WithSidecarReplicas.
	stopReplicas func()

	stopOnce sync.Once
	watchers sync.WaitGroup
	// running is cancelled by end, on the first failure or after everything has stopped.
	running context.Context
	end     context.CancelCauseFunc

	mu        sync.Mutex
	processes map[Part]*process
	// sidecarURL is the URL of the sidecar that StartSidecar started last.
	sidecarURL string
	// controllers are the parts started, in order; pods are the Pods running.
	controllers  []Part
	pods         map[string]*corev1.Pod
	leaseServers []*httptest.Server
	stopped      bool
}

func newEnv(s settings) *Env {
	running, end := context.WithCancelCause(context.Background())
	return &Env{
		settings:  s,
		probe:     &http.Client{Transport: &http.Transport{}},
		running:   running,
		end:       end,
		processes: map[Part]*process{},
		pods:      map[string]*corev1.Pod{},
	}
}

// Done returns a channel that is closed when a part has ended unexpectedly, and when the
// environment has stopped. Err returns the cause.
func (e *Env) Done() <-chan struct{} { return e.running.Done() }

// Err returns the error that made the environment fail; nil if it has not failed. A Stop is not a failure.
func (e *Env) Err() error {
	if err := context.Cause(e.running); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// fail records the first failure of the running environment. Errors after the start of Stop do not count.
func (e *Env) fail(err error) {
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if !stopped {
		e.end(err)
	}
}

func (e *Env) progress(format string, args ...any) {
	e.settings.progress(fmt.Sprintf(format, args...))
}

// Start starts all parts from the programs that make has built. It returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on /healthz. On failure it
// stops all parts and returns a *PartError with the failed part and the end of its log. ctx limits
// only the start: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	e := newEnv(newSettings(opts))
	if err := e.start(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// start runs the steps of Start. If the environment fails meanwhile, it returns that error: a part that dies makes
// later steps fail.
func (e *Env) start(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer context.AfterFunc(e.running, func() { cancel(e.Err()) })()
	err := e.startParts(ctx)
	if failed := e.Err(); failed != nil {
		return failed
	}
	// client-go reports that the context was cancelled, but not the cause.
	if cause := context.Cause(parent); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (e *Env) startParts(ctx context.Context) error {
	if err := e.makeFolders(); err != nil {
		return err
	}
	e.progress("starting etcd and kube-apiserver")
	var err error
	if e.programs, err = findPrograms(e.settings.sidecarProgram); err != nil {
		return err
	}
	if err := e.startControlPlane(ctx); err != nil {
		return err
	}
	e.progress("installing the custom resource definitions of machine-controller-manager")
	if err := e.installCRDs(ctx); err != nil {
		return &PartError{Part: partCRDs, Err: err}
	}
	return e.startControllers(ctx)
}

func (e *Env) makeFolders() (err error) {
	removeAbandonedFolders()
	if e.folder, err = makeFolder(); err != nil {
		return err
	}
	e.dir = e.folder.path
	e.logDir = filepath.Join(e.dir, "logs")
	return os.MkdirAll(e.logDir, 0o750)
}

func (e *Env) startControllers(ctx context.Context) error {
	if which := e.settings.controllers(); which != "" {
		e.progress("starting %s", which)
	}
	if !e.settings.withoutManager {
		if err := e.StartManager(ctx); err != nil {
			return err
		}
	}
	if !e.settings.withoutSidecar {
		if err := e.StartSidecar(ctx); err != nil {
			return err
		}
		if err := awaitNextSecond(ctx); err != nil {
			return &PartError{Part: PartSidecar, Err: err}
		}
	}
	return e.startReplicas(ctx)
}

// awaitNextSecond waits for the next full second. A creationTimestamp has whole seconds, so a Machine created in the
// second of the sidecar's start would look older than the sidecar. The sidecar would then wait, because a predecessor
// might have just created its server.
func awaitNextSecond(ctx context.Context) error {
	now := time.Now()
	select {
	case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop stops all parts in reverse order, removes the temporary folder, and returns when everything
// has ended. Further calls do nothing.
func (e *Env) Stop() {
	e.stopOnce.Do(func() {
		e.mu.Lock()
		e.stopped = true
		e.mu.Unlock()
		e.endReplicas()
		e.endPods()
		// The manager and the sidecar do not handle SIGTERM: they end at once.
		e.endPart(PartSidecar, stopGrace)
		e.endPart(PartManager, stopGrace)
		e.endLeaseServers()
		e.endPart(partTargetAPIServer, stopGrace)
		e.endPart(partAPIServer, stopGrace)
		e.endPart(PartEtcd, stopGrace)
		e.watchers.Wait()
		e.probe.CloseIdleConnections()
		if e.folder != nil {
			if err := e.folder.remove(); err != nil {
				e.progress("removing %s: %v", e.dir, err)
			}
		}
		e.end(errStopped)
	})
}

// RESTConfig returns a copy of the client configuration for the control cluster. The user is a
// member of system:masters.
func (e *Env) RESTConfig() *rest.Config { return rest.CopyConfig(e.control.restConfig) }

// Client returns a client without a cache for the control cluster. It supports the types of
// Kubernetes, of CRDs and of machine.sapcloud.io/v1alpha1.
func (e *Env) Client() client.Client { return e.control.client }

// KubeconfigPath returns the path of a kubeconfig for the control cluster. Stop removes the file.
func (e *Env) KubeconfigPath() string { return e.control.kubeconfig }

// TargetRESTConfig is like RESTConfig, for the target cluster. Without WithTargetCluster, the
// control cluster is also the target cluster.
func (e *Env) TargetRESTConfig() *rest.Config { return rest.CopyConfig(e.target.restConfig) }

// TargetClient is like Client, for the target cluster.
func (e *Env) TargetClient() client.Client { return e.target.client }

// TargetKubeconfigPath is like KubeconfigPath, for the target cluster.
func (e *Env) TargetKubeconfigPath() string { return e.target.kubeconfig }

// Namespace returns the namespace that the controllers watch.
func (e *Env) Namespace() string { return e.settings.namespace }

// SidecarMetricsURL returns the URL of the machine-controller's metrics. It changes with every
// StartSidecar.
func (e *Env) SidecarMetricsURL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sidecarURL + "/metrics"
}

// CloudEnvironment returns the environment variables ("NAME=value") with which a driver reaches the
// cloud. The environment's own sidecar has them already.
func (e *Env) CloudEnvironment() []string { return slices.Clone(e.settings.cloud.Environment) }

// ServiceAccountKey returns the service-account key, in JSON, that was set by WithCloud; nil if there is none.
func (e *Env) ServiceAccountKey() []byte { return slices.Clone(e.settings.cloud.ServiceAccountKey) }

// ManagerPath returns the path of the program machine-controller-manager, for tests that run it
// themselves.
func (e *Env) ManagerPath() string { return e.programs.manager }

// ManagerCRDs returns the folder of machine-controller-manager's CRDs, which are already installed.
func (e *Env) ManagerCRDs() string { return e.programs.crds }

// MakeFolder creates a folder, which Stop removes with its content. If Stop is never called, the
// next environment removes it.
func (e *Env) MakeFolder(name string) (string, error) {
	path := filepath.Join(e.dir, "of-users", name)
	return path, os.MkdirAll(path, 0o750)
}

// Logs returns the log that a part has written so far. Parts that are not processes have no log.
func (e *Env) Logs(part Part) (string, error) {
	content, err := os.ReadFile(e.LogPath(part))
	return string(content), err
}

// Controllers returns every machine-controller-manager and machine-controller that was started,
// including those of Pods and replicas, and those that have ended.
func (e *Env) Controllers() []Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.controllers)
}

// PID returns the process ID of a part; 0 if it is not running as a process.
func (e *Env) PID(part Part) int {
	if p := e.process(part); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

func (e *Env) process(part Part) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.processes[part]
}

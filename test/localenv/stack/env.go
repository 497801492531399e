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

// errStopped is the cause of errors of an environment that was stopped.
var errStopped = errors.New("the environment was stopped")

// Env is a running environment. Its methods may be used from several
// goroutines.
type Env struct {
	settings settings
	// dir holds everything temporary; Stop removes it.
	dir, logDir string
	folder      *folder
	programs    programs
	// probe asks parts whether they are ready.
	probe *http.Client

	// control is the cluster of the Machines, target that of the Nodes: the same one
	// without WithTargetCluster.
	control, target *cluster
	// stopReplicas is that of WithSidecarReplicas.
	stopReplicas func()

	stopOnce sync.Once
	watchers sync.WaitGroup
	// running ends, by end, with the first failure, or when everything was stopped.
	running context.Context
	end     context.CancelCauseFunc

	mu        sync.Mutex
	processes map[Part]*process
	// sidecarURL is that of the last StartSidecar.
	sidecarURL string
	// controllers are those that were started, in this order; pods are those that run.
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

// Done is closed when a part has ended by itself (Err then tells which), and
// when the environment has been stopped.
func (e *Env) Done() <-chan struct{} { return e.running.Done() }

// Err returns why the environment failed, nil as long as it has not.
func (e *Env) Err() error {
	if err := context.Cause(e.running); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// fail records the first failure of the running environment. What ends after
// Stop has begun is no failure.
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

// Start starts all parts, whose programs make has built, and returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on
// /healthz. If it fails, the error names the part with the end of its log (a
// *PartError), and everything that had been started is stopped again. ctx
// bounds the start alone: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	e := newEnv(newSettings(opts))
	if err := e.start(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// start takes the steps of Start. The environment's own failure is the better
// explanation: a part that dies makes the later ones fail.
func (e *Env) start(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer context.AfterFunc(e.running, func() { cancel(e.Err()) })()
	err := e.startParts(ctx)
	if failed := e.Err(); failed != nil {
		return failed
	}
	// client-go answers that the context was cancelled, and not why.
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
	e.progress("starting machine-controller-manager and machine-controller")
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

// awaitNextSecond returns when the second has changed. A creationTimestamp has
// whole seconds, so a Machine applied in the second in which the sidecar started
// would look older than the sidecar, which then takes care that a predecessor
// may have made its server just now, and lets some time pass. Here there was none.
func awaitNextSecond(ctx context.Context) error {
	now := time.Now()
	select {
	case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop stops all parts in reverse order and removes the temporary folder. It
// returns when everything is gone. Further calls do nothing.
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
func (e *Env) SidecarMetricsURL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sidecarURL + "/metrics"
}

// CloudEnvironment returns the variables ("NAME=value") with which the driver
// reaches the cloud. The sidecar that the environment starts has them already.
func (e *Env) CloudEnvironment() []string { return slices.Clone(e.settings.cloud.Environment) }

// ServiceAccountKey returns API.ServiceAccountKey.
func (e *Env) ServiceAccountKey() []byte { return slices.Clone(e.settings.cloud.ServiceAccountKey) }

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

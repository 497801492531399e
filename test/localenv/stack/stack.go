// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// ErrStopped is the cause of errors of an environment that was stopped.
var ErrStopped = errors.New("the environment was stopped")

// Env is a running environment. Its methods may be used from several
// goroutines.
type Env struct {
	settings settings
	// dir holds everything temporary; Stop removes it.
	dir, logDir string
	folder      *folder
	programs    programs
	// crds is the folder of the manager's custom resource definitions.
	crds string
	// probe asks parts whether they are ready.
	probe *http.Client

	// control is the cluster of the Machines, target that of the Nodes: the same one
	// without WithTargetCluster.
	control, target *cluster
	// api is where the controllers find the cloud; cloudStarted says that it is to be stopped.
	api          API
	cloudStarted bool
	// stopReplicas is that of WithSidecarReplicas.
	stopReplicas func()

	stopOnce sync.Once
	watchers sync.WaitGroup
	done     chan struct{}

	mu        sync.Mutex
	processes map[Part]*process
	starting  map[Part]bool
	urls      map[Part]string
	// controllers are those that were started, in this order; pods are those that run.
	controllers  []Part
	pods         map[string]*corev1.Pod
	leaseServers []*http.Server
	stopped      bool
	err          error
}

// programs are the paths of what is run.
type programs struct {
	assets
	manager, sidecar string
}

// Start builds what is needed, starts all parts and returns when all are ready:
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

// Build makes what Start needs, which takes minutes the first time, and starts nothing:
// for tests whose own time limits are not to include that.
func Build(ctx context.Context, opts ...Option) error { return newEnv(newSettings(opts)).build(ctx) }

func newEnv(s settings) *Env {
	return &Env{
		settings:  s,
		probe:     &http.Client{Transport: &http.Transport{}},
		done:      make(chan struct{}),
		processes: map[Part]*process{},
		starting:  map[Part]bool{},
		urls:      map[Part]string{},
		pods:      map[string]*corev1.Pod{},
	}
}

// start takes the steps of Start. The environment's own failure is the better
// explanation: a part that dies makes the later ones fail.
func (e *Env) start(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stopWatching := make(chan struct{})
	defer close(stopWatching)
	go func() {
		select {
		case <-e.done:
			cancel(e.Err())
		case <-stopWatching:
		}
	}()
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
	if err := e.build(ctx); err != nil {
		return err
	}
	if err := e.startControlPlane(ctx); err != nil {
		return err
	}
	e.progress("installing the custom resource definitions of machine-controller-manager")
	if err := e.installCRDs(ctx, e.crds); err != nil {
		return &PartError{Part: PartCRDs, Err: err}
	}
	if err := e.startCloud(); err != nil {
		return err
	}
	return e.startControllers(ctx)
}

func (e *Env) makeFolders() (err error) {
	removeAbandonedFolders()
	if e.folder, err = makeFolder("localenv-"); err != nil {
		return err
	}
	e.dir = e.folder.path
	e.logDir = filepath.Join(e.dir, "logs")
	return os.MkdirAll(e.logDir, 0o750)
}

// build makes sure that all programs are there, and finds the manager's CRDs. A
// download of the control plane does not hold up the compilers.
func (e *Env) build(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return &PartError{Part: PartBuild, Err: err}
	}
	b := builder{root: root, progress: e.progress}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		e.programs.assets, err = b.controlPlane(ctx)
		return err
	})
	group.Go(func() (err error) {
		e.programs.manager, e.programs.sidecar, err = b.controllers(ctx, mcmModulePath+"/cmd/machine-controller-manager", e.settings.sidecarPackage)
		return err
	})
	group.Go(func() error {
		mcm, err := b.moduleFolder(ctx, mcmModulePath)
		if err != nil {
			return &PartError{Part: PartBuild, Err: err}
		}
		e.crds = filepath.Join(mcm, "kubernetes", "crds")
		return nil
	})
	return group.Wait()
}

func (e *Env) startControlPlane(ctx context.Context) error {
	e.progress("starting etcd and kube-apiserver")
	etcdURL, err := e.startEtcd(ctx, e.programs.etcd)
	if err != nil {
		return err
	}
	if e.control, err = e.startCluster(ctx, PartAPIServer, etcdURL); err != nil {
		return err
	}
	e.target = e.control
	if e.settings.targetCluster {
		if e.target, err = e.startCluster(ctx, PartTargetAPIServer, etcdURL); err != nil {
			return err
		}
	}
	if err := e.ensureNamespace(ctx); err != nil {
		return &PartError{Part: PartAPIServer, Err: fmt.Errorf("making namespace %s: %w", e.settings.namespace, err)}
	}
	return nil
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
		if e.cloudStarted {
			e.settings.cloud.Stop()
		}
		e.endLeaseServers()
		e.endPart(PartTargetAPIServer, stopGrace)
		e.endPart(PartAPIServer, stopGrace)
		e.endPart(PartEtcd, stopGrace)
		e.watchers.Wait()
		e.probe.CloseIdleConnections()
		if e.folder != nil {
			if err := e.folder.remove(); err != nil {
				e.progress("removing %s: %v", e.dir, err)
			}
		}
		e.finish(nil)
	})
}

// Done is closed when a part has ended by itself (Err then tells which), and
// when the environment has been stopped.
func (e *Env) Done() <-chan struct{} { return e.done }

// Err returns why the environment failed, nil as long as it has not.
func (e *Env) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// fail records the first failure of the running environment. What ends after
// Stop has begun is no failure.
func (e *Env) fail(err error) {
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if !stopped {
		e.finish(err)
	}
}

func (e *Env) finish(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.done:
	default:
		e.err = err
		close(e.done)
	}
}

func (e *Env) progress(format string, args ...any) {
	e.settings.progress(fmt.Sprintf(format, args...))
}

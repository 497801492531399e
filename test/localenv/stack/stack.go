// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

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
	e.progress("starting etcd and kube-apiserver")
	var err error
	if e.programs, err = findPrograms(e.settings.sidecarProgram); err != nil {
		return err
	}
	if err := e.startControlPlane(ctx); err != nil {
		return err
	}
	e.progress("installing the custom resource definitions of machine-controller-manager")
	if err := e.installCRDs(ctx, e.programs.crds); err != nil {
		return &PartError{Part: PartCRDs, Err: err}
	}
	if err := e.startCloud(); err != nil {
		return err
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

// startCloud makes the API reachable.
func (e *Env) startCloud() error {
	api, err := e.settings.cloud.Start(func(err error) { e.fail(&PartError{Part: PartCloud, Err: err}) })
	if err != nil {
		return &PartError{Part: PartCloud, Err: err}
	}
	e.api, e.cloudStarted = api, true
	return nil
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

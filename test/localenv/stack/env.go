// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

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

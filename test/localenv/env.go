// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// errStopped is the cause of errors after Stop.
var errStopped = errors.New("the environment was stopped")

// Env is a running environment. Its methods are safe for concurrent use.
type Env struct {
	settings settings
	// cloud is the mock, served by server, with a service-account key. stopNodes stops the simulator of Nodes.
	cloud     *iaasmock.Cloud
	server    *httptest.Server
	key       []byte
	stopNodes func()
	// dir holds everything temporary; Stop removes it.
	dir      string
	programs programs
	// control is the cluster of the Machines, target the cluster of the Nodes. They are the same without
	// WithTargetCluster.
	control, target *cluster

	stopOnce sync.Once
	watchers sync.WaitGroup
	// running is cancelled by stopped, on the first failure or after everything has stopped.
	running context.Context
	stopped context.CancelCauseFunc

	mu         sync.Mutex
	processes  map[Part]*process
	sidecarURL string
	// controllers are the parts started, in order; pods are the Pods running.
	controllers []Part
	pods        map[string]*pod
}

// Start starts all parts from the programs that make has built. It returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on /healthz. On failure it
// stops all parts and returns an error with the failed part and the end of its log. ctx limits
// only the start: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	e := &Env{settings: newSettings(opts), stopNodes: func() {}, processes: map[Part]*process{}, pods: map[string]*pod{}}
	e.running, e.stopped = context.WithCancelCause(context.Background())
	if err := e.start(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

func (e *Env) start(ctx context.Context) (err error) {
	if e.programs, err = findPrograms(e.settings.sidecarProgram); err != nil {
		return err
	}
	reportAbandoned(e.settings.progress)
	if err := errors.Join(e.makeFolder(), e.startCloud()); err != nil {
		return err
	}
	e.settings.progress("starting etcd and kube-apiserver")
	if e.control, err = e.startCluster("control", e.programs.crds); err != nil {
		return err
	}
	e.target = e.control
	if e.settings.targetCluster {
		if e.target, err = e.startCluster("target"); err != nil {
			return err
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.settings.namespace}}
	if err := e.control.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	e.stopNodes = startNodes(e.cloud, e.target.client, e.settings.joinDuration)
	e.settings.progress("starting the controllers")
	if !e.settings.withoutManager {
		if err := e.startManager(ctx); err != nil {
			return err
		}
	}
	if e.settings.withoutSidecar {
		return nil
	}
	if err := e.StartSidecar(ctx); err != nil {
		return err
	}
	// A creationTimestamp has whole seconds: a Machine created in the second of the sidecar's start would look older
	// than the sidecar, which would then wait for a predecessor's server.
	now := time.Now()
	select {
	case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeFolder makes the environment's folder, which names this process.
func (e *Env) makeFolder() (err error) {
	if e.dir, err = os.MkdirTemp("", folders); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(filepath.Join(e.dir, "logs"), 0o750),
		os.WriteFile(filepath.Join(e.dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600))
}

// startCloud serves the mock.
func (e *Env) startCloud() (err error) {
	e.cloud = iaasmock.New(e.settings.cloudOptions...)
	e.server = httptest.NewServer(e.settings.cloudHandler(e.cloud))
	e.key, err = e.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	return err
}

const (
	// folders is the pattern of environments' folders in the folder for temporary files.
	folders = "localenv-*"
	// pidFile holds the ID of the process that made the folder.
	pidFile = "pid"
)

// reportAbandoned names the environments whose process was killed: nobody has stopped their etcd and kube-apiserver.
func reportAbandoned(report func(string)) {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), folders))
	for _, folder := range all {
		content, err := os.ReadFile(filepath.Join(folder, pidFile))
		if err != nil {
			continue // It is just being made.
		}
		if pid, err := strconv.Atoi(string(content)); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			report(fmt.Sprintf("process %d was killed: end what it left with pkill -f %[2]s; rm -r %[2]s", pid, folder))
		}
	}
}

// Stop stops all parts in reverse order, and removes the temporary folder. Further calls do nothing.
func (e *Env) Stop() {
	e.stopOnce.Do(func() {
		e.stopNodes()
		e.stopped(errStopped)
		e.stopPods()
		e.end(PartSidecar, stopGrace)
		e.end(PartManager, stopGrace)
		e.watchers.Wait()
		if e.target != nil && e.target != e.control {
			e.target.stop()
		}
		if e.control != nil {
			e.control.stop()
		}
		if e.server != nil {
			e.server.CloseClientConnections()
			e.server.Close()
		}
		_ = os.RemoveAll(e.dir)
	})
}

// Done returns a channel that is closed when a controller has ended unexpectedly, and when the
// environment has stopped. Err returns the cause.
func (e *Env) Done() <-chan struct{} { return e.running.Done() }

// Err returns the error that made the environment fail; nil if it has not failed. A Stop is not a failure.
func (e *Env) Err() error {
	if err := context.Cause(e.running); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// Cloud returns the mock of the cloud.
func (e *Env) Cloud() *iaasmock.Cloud { return e.cloud }

// CloudURL returns the URL of the mock's IaaS API.
func (e *Env) CloudURL() string { return e.server.URL }

// RESTConfig returns a copy of the client configuration for the control cluster. The user is a
// member of system:masters.
func (e *Env) RESTConfig() *rest.Config { return rest.CopyConfig(e.control.config) }

// Client returns a client without a cache for the control cluster. It supports the types of
// Kubernetes, of CRDs and of machine.sapcloud.io/v1alpha1.
func (e *Env) Client() client.Client { return e.control.client }

// KubeconfigPath returns the path of a kubeconfig for the control cluster. Stop removes the file.
func (e *Env) KubeconfigPath() string { return e.control.kubeconfig }

// TargetRESTConfig is like RESTConfig, for the target cluster.
func (e *Env) TargetRESTConfig() *rest.Config { return rest.CopyConfig(e.target.config) }

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
func (e *Env) CloudEnvironment() []string {
	return []string{
		"STACKIT_IAAS_ENDPOINT=" + e.server.URL,
		"STACKIT_TOKEN_BASEURL=" + e.server.URL + "/oauth/v2/token",
		"STACKIT_IDP_TOKEN_ENDPOINT=" + e.server.URL + "/oauth/v2/token",
	}
}

// ServiceAccountKey returns a service-account key of the cloud, in JSON.
func (e *Env) ServiceAccountKey() []byte { return slices.Clone(e.key) }

// ManagerPath returns the path of the program machine-controller-manager.
func (e *Env) ManagerPath() string { return e.programs.manager }

// ManagerCRDs returns the folder of machine-controller-manager's CRDs, which are already installed.
func (e *Env) ManagerCRDs() string { return e.programs.crds }

// MakeFolder creates a folder, which Stop removes with its content.
func (e *Env) MakeFolder(name string) (string, error) {
	path := filepath.Join(e.dir, "of-users", name)
	return path, os.MkdirAll(path, 0o750)
}

// Controllers returns every controller that was started, including those of Pods, and those that have ended.
func (e *Env) Controllers() []Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.controllers)
}

// PID returns the process ID of a part; 0 if it is not running.
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

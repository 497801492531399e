// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noTarget makes both controllers run without a target cluster.
const noTarget = "none"

// StartManager starts machine-controller-manager and returns when it answers on /healthz. Start
// calls it already; call it only after KillManager or with WithoutManager.
func (e *Env) StartManager(ctx context.Context) error {
	// The rates that Gardener sets.
	args := append(e.controllerArgs(), "--kube-api-qps=150", "--kube-api-burst=200")
	args = append(args, e.settings.managerArgs...)
	_, err := e.startController(ctx, e.controllerService(PartManager, e.programs.manager, minimalEnvironment(), args))
	return err
}

// StartSidecar starts this project's machine-controller and returns when it answers on /healthz.
// Start calls it already; call it only after the sidecar has ended or with WithoutSidecar.
func (e *Env) StartSidecar(ctx context.Context) error {
	args := append(e.controllerArgs(), e.sidecarArgs()...)
	s := e.controllerService(PartSidecar, e.programs.sidecar, e.sidecarEnvironment(), args)
	port, err := e.startController(ctx, s)
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sidecarURL = localURL(port)
	}
	return err
}

// SidecarCommand returns flags and variables ("NAME=value") for an additional machine-controller in
// this environment. They equal those of the environment's own machine-controller, except the port.
func (e *Env) SidecarCommand() (args, variables []string) {
	return append(e.controllerArgs(), e.sidecarArgs()...), e.CloudEnvironment()
}

// sidecarArgs returns the rates that Gardener sets, and the flags from the settings.
func (e *Env) sidecarArgs() []string {
	return append([]string{"--kube-api-qps=100", "--kube-api-burst=200"}, e.settings.sidecarArgs...)
}

// KillManager kills machine-controller-manager with SIGKILL and returns when it has ended. The
// environment does not fail.
func (e *Env) KillManager() { e.endPart(PartManager, 0) }

// KillSidecar kills the machine-controller with SIGKILL and returns when it has ended. The
// environment does not fail.
func (e *Env) KillSidecar() { e.endPart(PartSidecar, 0) }

// TerminateSidecar terminates the machine-controller with SIGTERM, as Kubernetes does, and returns
// when it has ended. The environment does not fail.
func (e *Env) TerminateSidecar() { e.endPart(PartSidecar, stopGrace) }

// startController starts a controller, adds it to Controllers, and returns its port.
func (e *Env) startController(ctx context.Context, s service) (port int, err error) {
	e.mu.Lock()
	if !slices.Contains(e.controllers, s.part) {
		e.controllers = append(e.controllers, s.part)
	}
	e.mu.Unlock()
	return e.launch(ctx, s)
}

func localURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// controllerService returns the service of a controller on any free port.
func (e *Env) controllerService(part Part, path string, env, args []string) service {
	return service{
		part: part,
		command: func(port int) command {
			return command{path: path, env: env, args: append(slices.Clone(args), "--port="+strconv.Itoa(port))}
		},
		ready: func(ctx context.Context, port int) error {
			return httpOK(ctx, e.probe, localURL(port)+"/healthz", "")
		},
	}
}

// controllerArgs returns the flags of both controllers. The order matters: the manager's integration suite finds
// processes by their first flag.
func (e *Env) controllerArgs() []string {
	target := e.TargetKubeconfigPath()
	if e.settings.targetless {
		target = noTarget
	}
	return []string{
		"--control-kubeconfig=" + e.KubeconfigPath(),
		"--target-kubeconfig=" + target,
		"--namespace=" + e.settings.namespace,
		"--address=127.0.0.1",
		// Each runs once, and after a restart must not wait for a lease.
		"--leader-elect=false",
		"--v=2",
	}
}

func (e *Env) sidecarEnvironment() []string {
	return append(minimalEnvironment(), e.CloudEnvironment()...)
}

const (
	// The lease is short, so that another replica takes over within seconds.
	leaseDuration = 6 * time.Second
	renewDeadline = 3 * time.Second
	renewPeriod   = time.Second

	// restartDelay is the delay before a replica that ended is restarted. A leader must not lead again before another
	// replica has led. That replica sees the last renewal after up to 2.2 renewPeriods, waits for leaseDuration, and tries
	// after up to 2.2 more.
	restartDelay = 5 * time.Second
)

// generationMark separates a replica's part from the number of its start.
const generationMark = "."

// ReplicaPart returns the part of a replica of WithSidecarReplicas, for Logs. Replica numbers start
// at 1.
func ReplicaPart(number int) Part { return Part(fmt.Sprintf("%s-%d", PartSidecar, number)) }

// startReplicas starts the machine-controllers of WithSidecarReplicas, and keeps them running as Kubernetes does: after
// its end, each is restarted with a new name. A machine-controller ends itself if it loses its lease, because it or the
// API server was too slow.
func (e *Env) startReplicas(ctx context.Context) error {
	running, cancel := context.WithCancel(context.Background())
	e.stopReplicas = cancel
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		lease, err := e.newLeaseIdentity(ReplicaPart(number), e.control.credentials.token)
		if err != nil {
			return &PartError{Part: ReplicaPart(number), Err: err}
		}
		ended := make(chan struct{}, 1)
		if err := e.startReplica(ctx, number, 1, lease, ended); err != nil {
			return err
		}
		e.watchers.Go(func() { e.keepReplica(running, number, lease, ended) })
	}
	return nil
}

// keepReplica restarts a replica whenever it ends, until ctx ends.
func (e *Env) keepReplica(ctx context.Context, number int, lease *leaseIdentity, ended chan struct{}) {
	for generation := 2; ; generation++ {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		if err := e.startReplica(ctx, number, generation, lease, ended); err != nil {
			e.progress("%s did not start again, trying once more: %v", ReplicaPart(number), err)
			ended <- struct{}{}
		}
	}
}

// startReplica starts a replica. Like a new Pod of a Deployment, a restarted replica has a new name, and must wait
// until its own earlier lease expires.
func (e *Env) startReplica(
	ctx context.Context, number, generation int, lease *leaseIdentity, ended chan struct{},
) error {
	lease.become(fmt.Sprintf("%s%s%d", ReplicaPart(number), generationMark, generation))
	args := append(append(e.controllerArgs(), e.sidecarArgs()...),
		"--control-kubeconfig="+lease.kubeconfig,
		"--leader-elect=true",
		"--leader-elect-lease-duration="+leaseDuration.String(),
		"--leader-elect-renew-deadline="+renewDeadline.String(),
		"--leader-elect-retry-period="+renewPeriod.String(),
	)
	part := ReplicaPart(number)
	s := e.controllerService(part, e.programs.sidecar, e.sidecarEnvironment(), args)
	s.ended = func(*process) {
		e.endPart(part, 0)
		ended <- struct{}{}
	}
	_, err := e.startController(ctx, s)
	return err
}

// KillReplica kills a replica of WithSidecarReplicas with SIGKILL and returns when it has ended.
// The environment restarts it after some seconds; if it was the leader, another replica leads
// first.
func (e *Env) KillReplica(number int) {
	p := e.process(ReplicaPart(number))
	if p != nil {
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
}

// PauseReplica pauses a replica of WithSidecarReplicas with SIGSTOP, at any point of its work.
// resume continues it; if another replica leads by then, the resumed replica notices at its next
// renewal and exits. ok is false if the replica has ended and is not restarted yet.
func (e *Env) PauseReplica(number int) (resume func(), ok bool) {
	p := e.process(ReplicaPart(number))
	if p == nil {
		return nil, false
	}
	p.signal(syscall.SIGSTOP)
	return func() { p.signal(syscall.SIGCONT) }, true
}

// Leader returns the number of the replica that holds the lease, even if that replica has ended; 0
// if no replica holds it.
func (e *Env) Leader(ctx context.Context) (int, error) {
	var lease coordinationv1.Lease
	err := e.control.client.Get(ctx, client.ObjectKey{Namespace: e.settings.namespace, Name: string(PartSidecar)}, &lease)
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		if strings.HasPrefix(holder, string(ReplicaPart(number))+generationMark) {
			return number, nil
		}
	}
	return 0, nil
}

// endReplicas ends the machine-controllers of WithSidecarReplicas.
func (e *Env) endReplicas() {
	if e.stopReplicas != nil {
		e.stopReplicas()
	}
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		e.endPart(ReplicaPart(number), stopGrace)
	}
}

// leaseIdentity gives a machine-controller its own name in leader election. Otherwise it uses the host name, which is
// the same for all replicas here, so that each would take the lease for its own. It therefore reaches the API server
// through a proxy that replaces the name in Leases, in both directions.
type leaseIdentity struct {
	// kubeconfig is the path of a kubeconfig for the API server through the proxy.
	kubeconfig string
	// host is the name that the controller uses, name is the name in the Lease.
	host string
	name atomic.Pointer[string]
}

// become changes the name in the Lease.
func (l *leaseIdentity) become(name string) { l.name.Store(&name) }

// newLeaseIdentity starts the proxy of a part, which sends this token to the control cluster's API server.
func (e *Env) newLeaseIdentity(part Part, token string) (*leaseIdentity, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &leaseIdentity{host: host, kubeconfig: filepath.Join(e.dir, string(part)+".kubeconfig")}
	l.become(string(part))
	server := httptest.NewServer(l.proxy(e.control, token))
	e.mu.Lock()
	e.leaseServers = append(e.leaseServers, server)
	e.mu.Unlock()
	return l, writeKubeconfig(l.kubeconfig, &rest.Config{Host: server.URL})
}

// endLeaseServers stops all proxies.
func (e *Env) endLeaseServers() {
	e.mu.Lock()
	servers := e.leaseServers
	e.mu.Unlock()
	for _, server := range servers {
		server.CloseClientConnections()
		server.Close()
	}
}

// proxy returns a proxy to an API server. It adds the token: clients send no credentials without TLS.
func (l *leaseIdentity) proxy(server *cluster, token string) http.Handler {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.credentials.ca)
	target := &url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(server.port))}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+token)
			if isLease(r.In) && r.In.ContentLength > 0 {
				r.Out.Body, r.Out.ContentLength = renamed(r.In.Body, r.In.Header, l.host, *l.name.Load())
			}
		},
		ModifyResponse: func(response *http.Response) error {
			if isLease(response.Request) {
				response.Body, response.ContentLength = renamed(response.Body, response.Header, *l.name.Load(), l.host)
				response.Header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
			}
			return nil
		},
		// The controllers log when the API server is down.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		FlushInterval: -1,
	}
}

func isLease(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/leases") && r.URL.Query().Get("watch") == ""
}

// renamed replaces one holder of the Lease in body with another.
func renamed(body io.ReadCloser, header http.Header, from, to string) (io.ReadCloser, int64) {
	content, err := io.ReadAll(body)
	_ = body.Close()
	if err != nil {
		content = nil // Both sides reject an empty Lease.
	}
	if changed, err := withHolder(content, header.Get("Content-Type"), from, to); err == nil {
		content = changed
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content))
}

// withHolder replaces the holder of an encoded Lease. It returns an error if content is not a Lease of holder from, for
// instance a Status.
func withHolder(content []byte, contentType, from, to string) ([]byte, error) {
	// client-go's leader election uses protobuf.
	form, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		return nil, fmt.Errorf("unknown content type %q", contentType)
	}
	object, kind, err := form.Serializer.Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || ptr.Deref(lease.Spec.HolderIdentity, "") != from {
		return nil, errors.New("not a Lease of " + from)
	}
	lease.Spec.HolderIdentity = &to
	lease.SetGroupVersionKind(*kind)
	var encoded bytes.Buffer
	err = form.Serializer.Encode(lease, &encoded)
	return encoded.Bytes(), err
}

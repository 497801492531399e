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

// noTarget tells both controllers that there is no target cluster.
const noTarget = "none"

// StartManager starts machine-controller-manager and returns when it answers on
// /healthz. Start has done so already; it is for use after KillManager.
func (e *Env) StartManager(ctx context.Context) error {
	// The rates Gardener sets.
	args := append(e.controllerArgs(), "--kube-api-qps=150", "--kube-api-burst=200")
	args = append(args, e.settings.managerArgs...)
	_, err := e.startController(ctx, e.controllerService(PartManager, e.programs.manager, minimalEnvironment(), args))
	return err
}

// StartSidecar starts this project's machine-controller and returns when it
// answers on /healthz. Start has done so already; it is for use after
// KillSidecar.
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

// SidecarCommand returns the flags and the variables ("NAME=value") with which another
// machine-controller works in this environment: those of its own, but for the port.
func (e *Env) SidecarCommand() (args, variables []string) {
	return append(e.controllerArgs(), e.sidecarArgs()...), e.CloudEnvironment()
}

// sidecarArgs are the rates Gardener sets, and what the settings add.
func (e *Env) sidecarArgs() []string {
	return append([]string{"--kube-api-qps=100", "--kube-api-burst=200"}, e.settings.sidecarArgs...)
}

// KillManager ends machine-controller-manager with SIGKILL and returns when it
// is gone. It does not count as a failure of the environment.
func (e *Env) KillManager() { e.endPart(PartManager, 0) }

// KillSidecar ends the machine-controller with SIGKILL and returns when it is
// gone. It does not count as a failure of the environment.
func (e *Env) KillSidecar() { e.endPart(PartSidecar, 0) }

// TerminateSidecar ends the machine-controller with SIGTERM, as a Pod's end begins, and returns when it is
// gone. It does not count as a failure of the environment.
func (e *Env) TerminateSidecar() { e.endPart(PartSidecar, stopGrace) }

// startController starts a part that Controllers names, and returns its port.
func (e *Env) startController(ctx context.Context, s service) (port int, err error) {
	e.mu.Lock()
	if !slices.Contains(e.controllers, s.part) {
		e.controllers = append(e.controllers, s.part)
	}
	e.mu.Unlock()
	return e.launch(ctx, s)
}

func localURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// controllerService is a controller on a port of our choice.
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

// controllerArgs are the flags both controllers have. The manager's integration
// suite finds processes by their first flag, hence the order.
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
		// There is one of each, and a restarted one must not wait for a lease.
		"--leader-elect=false",
		"--v=2",
	}
}

func (e *Env) sidecarEnvironment() []string {
	return append(minimalEnvironment(), e.CloudEnvironment()...)
}

const (
	// A short lease, so that another replica takes over after seconds.
	leaseDuration = 6 * time.Second
	renewDeadline = 3 * time.Second
	renewPeriod   = time.Second

	// restartDelay is between the end of a replica and its next start. One that led
	// must not lead again before another has: that one sees the last renewal after up
	// to 2.2 renewPeriods, waits for leaseDuration, and tries after up to 2.2 more.
	restartDelay = 5 * time.Second
)

// generationMark stands between a replica's part and the number of its start.
const generationMark = "."

// ReplicaPart names a machine-controller of WithSidecarReplicas, for Logs; the first
// is 1.
func ReplicaPart(number int) Part { return Part(fmt.Sprintf("%s-%d", PartSidecar, number)) }

// startReplicas starts all of WithSidecarReplicas, and keeps them running as
// Kubernetes does: one that ends is started again, with a new name. A
// machine-controller that loses its lease, because the API server did not answer or
// because it was slow, ends itself.
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

// keepReplica starts a replica whenever it has ended, until ctx ends.
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
			e.progress("%s: %v", ReplicaPart(number), err)
			ended <- struct{}{}
		}
	}
}

// startReplica starts a replica. Like the Pods of a Deployment, one that comes back is
// another one, and has to wait until its own lease has ended.
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

// KillReplica ends a machine-controller of WithSidecarReplicas with SIGKILL and
// returns when it is gone. It is started again after some seconds; if it was the
// leader, another one leads first.
func (e *Env) KillReplica(number int) {
	p := e.process(ReplicaPart(number))
	if p != nil {
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
}

// PauseReplica stops a machine-controller of WithSidecarReplicas with SIGSTOP, in the
// middle of whatever it does. The function it returns lets it go on; if another one
// leads by then, it finds that out with its next renewal and ends itself. There is
// none if the replica has ended and was not started again yet.
func (e *Env) PauseReplica(number int) (resume func(), ok bool) {
	p := e.process(ReplicaPart(number))
	if p == nil {
		return nil, false
	}
	p.signal(syscall.SIGSTOP)
	return func() { p.signal(syscall.SIGCONT) }, true
}

// Leader returns the number of the replica that the lease names, even if that has ended;
// 0 if there is no lease.
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

// endReplicas ends all of WithSidecarReplicas.
func (e *Env) endReplicas() {
	if e.stopReplicas != nil {
		e.stopReplicas()
	}
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		e.endPart(ReplicaPart(number), stopGrace)
	}
}

// leaseIdentity gives a machine-controller a name of its own in leader election.
// It takes its computer's host name there, which here is the same for all: they
// would all take the lease for theirs. So it reaches the API server through a proxy
// that writes another name into Leases, and reads it back.
type leaseIdentity struct {
	// kubeconfig is the file with which to reach the API server through the proxy.
	kubeconfig string
	// host is the name the controller knows, name the one in the Lease.
	host string
	name atomic.Pointer[string]
}

// become changes the name in the Lease.
func (l *leaseIdentity) become(name string) { l.name.Store(&name) }

// newLeaseIdentity starts the proxy of a part, which reaches the API server of the
// control cluster with this token.
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

// endLeaseServers ends all proxies.
func (e *Env) endLeaseServers() {
	e.mu.Lock()
	servers := e.leaseServers
	e.mu.Unlock()
	for _, server := range servers {
		server.CloseClientConnections()
		server.Close()
	}
}

// proxy to an API server, which it reaches with this token: clients send no credentials
// without TLS.
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
		// While the API server is down, the controllers say what there is to say.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		FlushInterval: -1,
	}
}

func isLease(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/leases") && r.URL.Query().Get("watch") == ""
}

// renamed replaces a holder of the Lease in body by another.
func renamed(body io.ReadCloser, header http.Header, from, to string) (io.ReadCloser, int64) {
	content, err := io.ReadAll(body)
	_ = body.Close()
	if err != nil {
		content = nil // An empty Lease is refused on either side.
	}
	if changed, err := withHolder(content, header.Get("Content-Type"), from, to); err == nil {
		content = changed
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content))
}

// withHolder answers an error for what is no Lease of that holder, such as the
// Status that there is none.
func withHolder(content []byte, contentType, from, to string) ([]byte, error) {
	// client-go's leader election speaks protobuf.
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
		return nil, errors.New("no Lease of " + from)
	}
	lease.Spec.HolderIdentity = &to
	lease.SetGroupVersionKind(*kind)
	var encoded bytes.Buffer
	err = form.Serializer.Encode(lease, &encoded)
	return encoded.Bytes(), err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

// process is one life of a sidecar: the manager's controller and the driver. A crash cuts it off the
// cloud and the API server, and ends the contexts of its driver calls.
type process struct {
	world   *world
	cluster *cluster
	// name is the cluster's name, with a number from the second process on.
	name   string
	driver driver.Driver
	ctx    context.Context
	cancel context.CancelFunc
	clock  *processClock

	mu      sync.Mutex
	manager *manager.Controller
	crashed bool
	// still is an open channel while the process is paused, else nil.
	still chan struct{}
	// fresh is when its watches show the events of its last pause.
	fresh time.Time
}

func (c *cluster) newProcess() *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{world: c.world, cluster: c, ctx: ctx, cancel: cancel, clock: newProcessClock(c.world.clock)}
	started := p.clock.Now()
	sessions := &spi.PluginSPIImpl{
		Config:    spi.Config{Endpoint: endpoint},
		Limiter:   rate.NewLimiter(50, 100),
		Transport: &wire{c, p},
		Clock:     p.clock,
		Jitter:    func() float64 { return 0.5 },
	}
	if c.world.plan.standsStill() {
		sessions.Fence = newFence(p.clock)
		c.world.fences.Go(func() { sessions.Fence.Run(ctx) })
	}
	p.driver = provider.NewProvider(sessions, provider.WithClock(p.clock),
		provider.WithActingSince(func() time.Time { return started }))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	p.name = c.name
	if n := len(c.processes); n > 1 {
		p.name = fmt.Sprintf("%s.%d", c.name, n)
	}
	return p
}

// begin starts the manager's controller.
func (p *process) begin() {
	started, err := manager.Start(kubernetes{p}, observed{p.driver, p})
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	p.manager = started
	crashed := p.crashed
	p.mu.Unlock()
	if crashed {
		started.Kill()
	}
}

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// end ends the process; it returns false if the process had ended.
func (p *process) end(how string) bool {
	p.mu.Lock()
	ended, running := p.crashed, p.manager
	p.crashed = true
	p.mu.Unlock()
	if ended {
		return false
	}
	p.world.log("%s %s", p.name, how)
	p.cancel()
	if running != nil {
		running.Kill()
	}
	p.wake()
	return true
}

// halt begins a pause; it returns false if the process has crashed or its cache is stale from the last pause.
func (p *process) halt(s stillness) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.world.clock.Now()
	if p.crashed || now.Before(p.fresh) {
		return false
	}
	p.still, p.fresh = make(chan struct{}), now.Add(s.length+s.fresh)
	p.clock.stop()
	return true
}

// wake ends a pause.
func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		return
	}
	if !p.crashed {
		p.world.log("%s RESUMES", p.name)
	}
	p.clock.resume()
	close(p.still)
	p.still = nil
}

// standing reports whether the process is paused.
func (p *process) standing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still != nil
}

// awake waits until the process is not paused; it returns false if the process has ended.
func (p *process) awake() bool {
	for {
		p.mu.Lock()
		still, crashed := p.still, p.crashed
		p.mu.Unlock()
		if still == nil {
			return !crashed
		}
		<-still
	}
}

// passes waits for d, and for the end of a pause; it returns false if the process ends first.
func (p *process) passes(d time.Duration) bool {
	return spi.Sleep(p.ctx, p.world.clock, d) == nil && p.awake()
}

var errCrashed = errors.New("the process has crashed")

// kubernetes carries the requests of one process to its API server. Requests that begin during a pause are sent
// after it: the manager's timers cannot be stopped, but their requests can be held back.
type kubernetes struct{ *process }

// RoundTrip implements http.RoundTripper.
func (k kubernetes) RoundTrip(request *http.Request) (*http.Response, error) {
	w, api := k.world, k.cluster.api
	subject := request.Method + " " + request.URL.Path
	rng := random(w.plan.Seed, "api", k.name, subject, w.repeated("api", k.name, subject))
	if !k.passes(between(rng, time.Millisecond, longestWrite)) {
		return nil, errCrashed
	}
	if manager.IsWatch(request) {
		return api.Watch(request, k.shows), nil
	}
	t, f := manager.TargetOf(request), Fault{}
	isWrite := t.Resource == "machines" && request.Method != http.MethodGet
	if isWrite {
		if terminates(request) {
			k.cluster.deleteMistaken(t.Name)
		}
		f = w.befalls(k.cluster.name, opWrite)
	}
	if f.crashBefore {
		k.cluster.crash(k.process, "before a write to "+t.Name)
		return nil, errCrashed
	}
	var response *http.Response
	switch {
	case f.conflict:
		conflict := apierrors.NewConflict(v1alpha1.Resource(t.Resource), t.Name, errors.New("simulated"))
		response = manager.Refusal(request, conflict)
	case f.failed:
		response = manager.Refusal(request, apierrors.NewInternalError(errors.New("simulated")))
	default:
		response = api.Do(request)
	}
	if isWrite {
		k.wrote(t, response.StatusCode)
	}
	if f.crashAfter {
		k.cluster.crash(k.process, "after a write to "+t.Name)
	}
	if !k.passes(between(rng, time.Millisecond, longestWrite)) {
		return nil, errCrashed
	}
	if f.lost {
		return nil, io.ErrUnexpectedEOF
	}
	return response, nil
}

// terminates reports whether the request sets a Machine's phase to Terminating.
func terminates(request *http.Request) bool {
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	raw, err := io.ReadAll(body)
	return err == nil && bytes.Contains(raw, terminating)
}

var terminating = []byte(`"phase":"Terminating"`)

// longestWrite is the longest time of a request to the API server, and of its answer back.
const longestWrite = 5 * time.Millisecond

func (k kubernetes) wrote(t manager.Target, status int) {
	m := k.cluster.machine(t.Name)
	switch {
	case status != http.StatusOK:
		k.world.log("%s %s: a write fails with status %d", k.name, t.Name, status)
	case m == nil:
		k.world.log("%s %s is gone", k.name, t.Name)
		k.world.checkGone(owner{k.cluster.name, t.Name})
	default:
		k.world.log("%s %s is %s: %.60q, %s", k.name, t.Name, m.Status.CurrentStatus.Phase,
			m.Status.LastOperation.Description, m.Spec.ProviderID)
	}
}

// shows waits until a watch may show an event.
func (p *process) shows(e manager.Event, closed <-chan struct{}) bool {
	for due := e.At.Add(p.world.shown(p, e)); ; {
		timer := p.world.clock.NewTimer(due.Sub(p.world.clock.Now()))
		select {
		case <-timer.C():
		case <-p.ctx.Done():
			timer.Stop()
			return false
		case <-closed:
			timer.Stop()
			return false
		}
		p.mu.Lock()
		due = p.fresh
		p.mu.Unlock()
		if !due.After(p.world.clock.Now()) {
			return true
		}
	}
}

// observed is the driver as the manager calls it: it passes the caller on, and checks the answers.
type observed struct {
	driver.Driver
	process *process
}

// CreateMachine implements driver.Driver.
func (o observed) CreateMachine(
	_ context.Context, r *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	return ask(o.process, "CreateMachine", r.Machine, o.Driver.CreateMachine, r)
}

// InitializeMachine implements driver.Driver.
func (o observed) InitializeMachine(
	_ context.Context, r *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return ask(o.process, "InitializeMachine", r.Machine, o.Driver.InitializeMachine, r)
}

// DeleteMachine implements driver.Driver.
func (o observed) DeleteMachine(
	_ context.Context, r *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	return ask(o.process, "DeleteMachine", r.Machine, o.Driver.DeleteMachine, r)
}

// GetMachineStatus implements driver.Driver.
func (o observed) GetMachineStatus(
	_ context.Context, r *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	return ask(o.process, "GetMachineStatus", r.Machine, o.Driver.GetMachineStatus, r)
}

// ListMachines implements driver.Driver.
func (o observed) ListMachines(_ context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	class := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: r.MachineClass.Name}}
	return ask(o.process, "ListMachines", class, o.Driver.ListMachines, r)
}

// ask makes a driver call. Calls that the manager makes at the same moment start one after the other: else
// the scheduler would decide their order.
func ask[Request, Response any](p *process, method string, m *v1alpha1.Machine,
	call func(context.Context, *Request) (*Response, error), request *Request) (*Response, error) {
	w, who := p.world, m.Name+" "+method
	a := w.repeated("answer", p.cluster.name, who)
	if !p.passes(between(random(w.plan.Seed, "call", p.name, who, a), time.Millisecond, 20*time.Millisecond)) {
		return nil, status.Error(codes.Unavailable, errCrashed.Error())
	}
	if m.CreationTimestamp.IsZero() { // the orphan collector passes only the class
		who = callerCollector
	}
	w.log("%s %s %s begins", p.name, m.Name, method)
	response, err := call(context.WithValue(p.ctx, caller{}, who), request)
	if !p.awake() {
		return nil, status.Error(codes.Unavailable, errCrashed.Error())
	}
	code := p.decode(method, m, err)
	if code == codes.ResourceExhausted {
		w.toldExhausted(m)
	}
	p.cluster.restoreLabels(err)
	if isCreationTimedOut(err) && !p.cluster.tooLate(m) {
		w.violated("%s of %s returned CreationTimedOut before the creation timeout was over: %v", method, m.Name, err)
	}
	if response == nil && (code == codes.OK || code == codes.Uninitialized) {
		w.violated("%s of %s returned %s without a response", method, m.Name, code)
		return new(Response), err
	}
	return response, err
}

// decode returns an error's code, as the manager decodes it.
func (p *process) decode(method string, m *v1alpha1.Machine, err error) codes.Code {
	w := p.world
	if err == nil {
		w.log("%s %s %s ends", p.name, m.Name, method)
		return codes.OK
	}
	w.log("%s %s %s: %v", p.name, m.Name, method, err)
	decoded, ok := status.FromError(err)
	if !ok {
		w.violated("the manager cannot decode the error of %s: %v", method, err)
		return codes.Unknown
	}
	w.checkCode(method, decoded.Code(), err)
	return decoded.Code()
}

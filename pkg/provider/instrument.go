// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

var _ driver.Driver = (*Provider)(nil)

// Each exported method wraps the story of the same name in core.go with what every
// driver call needs: a guard against panics (the manager's process would end),
// errors in the manager's form, one log line, and the manager's metrics.

// CreateMachine makes the Machine's server, or adopts the one that is there, and
// waits until it runs and its NICs have addresses. Codes: InvalidArgument,
// ResourceExhausted, Unauthenticated, PermissionDenied, FailedPrecondition,
// Unavailable, Aborted, DeadlineExceeded (the next call goes on), Internal.
func (p *Provider) CreateMachine(ctx context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if request == nil {
		request = &driver.CreateMachineRequest{}
	}
	return observed(ctx, p, operation{"CreateMachine", request.Machine, request.MachineClass}, request, p.createMachine)
}

// InitializeMachine lets the providerSpec's allowedAddresses pass the server's
// NICs. Without allowedAddresses it makes no API call for a server it knows.
// Codes: InvalidArgument, Unauthenticated, PermissionDenied, FailedPrecondition,
// Unavailable, Aborted, DeadlineExceeded, Internal; never NotFound.
func (p *Provider) InitializeMachine(ctx context.Context, request *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if request == nil {
		request = &driver.InitializeMachineRequest{}
	}
	return observed(ctx, p, operation{"InitializeMachine", request.Machine, request.MachineClass}, request, p.initializeMachine)
}

// GetMachineStatus finds the Machine's server. NotFound means that there is none
// for it (without a ProviderID: none that runs), Uninitialized that
// InitializeMachine has something to do; the response is complete then, too.
// Other codes: InvalidArgument, Unauthenticated, PermissionDenied,
// FailedPrecondition, Unavailable, DeadlineExceeded, Internal.
func (p *Provider) GetMachineStatus(ctx context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if request == nil {
		request = &driver.GetMachineStatusRequest{}
	}
	return observed(ctx, p, operation{"GetMachineStatus", request.Machine, request.MachineClass}, request, p.getMachineStatus)
}

// DeleteMachine deletes the Machine's server and waits until it is gone; a server
// that is gone already is a success. A Machine that is being deleted takes every
// server of its name and cluster along. Codes: InvalidArgument, Unauthenticated,
// PermissionDenied, FailedPrecondition (the server is not the machine's),
// Unavailable, Aborted, DeadlineExceeded (the next call goes on), Internal; never
// NotFound.
func (p *Provider) DeleteMachine(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if request == nil {
		request = &driver.DeleteMachineRequest{}
	}
	return observed(ctx, p, operation{"DeleteMachine", request.Machine, request.MachineClass}, request, p.deleteMachine)
}

// ListMachines returns the ProviderIDs and Machine names of the class's servers
// within the cluster: those that carry both of the driver's labels. The manager
// deletes what it does not know of them. Codes: InvalidArgument, Unauthenticated,
// PermissionDenied, Unavailable, DeadlineExceeded, Internal.
func (p *Provider) ListMachines(ctx context.Context, request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if request == nil {
		request = &driver.ListMachinesRequest{}
	}
	return observed(ctx, p, operation{"ListMachines", nil, request.MachineClass}, request, p.listMachines)
}

// GetVolumeIDs returns the IDs of the IaaS volumes behind the PersistentVolumes;
// all others are skipped.
func (p *Provider) GetVolumeIDs(ctx context.Context, request *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	if request == nil {
		request = &driver.GetVolumeIDsRequest{}
	}
	return observed(ctx, p, operation{"GetVolumeIDs", nil, nil}, request, p.getVolumeIDs)
}

// GenerateMachineClassForMigration answers Unimplemented: there is no older
// format of machine classes to migrate from.
func (p *Provider) GenerateMachineClassForMigration(context.Context, *driver.GenerateMachineClassForMigrationRequest) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return nil, status.Error(codes.Unimplemented, "there is no older format of machine classes to migrate from")
}

// WaitUntilServerRunning waits until the server is ACTIVE. It uses the newest
// session that this process opened for the project. Codes: FailedPrecondition
// without one, Internal or ResourceExhausted if the server ends in ERROR, NotFound
// if it is gone, Unavailable if the credentials are refused, DeadlineExceeded.
func (p *Provider) WaitUntilServerRunning(ctx context.Context, projectID, region, serverID string) error {
	_, err := observed(ctx, p, operation{name: "WaitUntilServerRunning"}, struct{}{}, func(ctx context.Context, _ struct{}) (*struct{}, error) {
		return nil, p.waitUntilServerRunning(ctx, projectID, region, serverID)
	})
	return err
}

// WaitUntilServerDeleted waits until the server is gone. It uses the newest
// session that this process opened for the project. Codes: FailedPrecondition
// without one, Unavailable if the credentials are refused, DeadlineExceeded.
func (p *Provider) WaitUntilServerDeleted(ctx context.Context, projectID, region, serverID string) error {
	_, err := observed(ctx, p, operation{name: "WaitUntilServerDeleted"}, struct{}{}, func(ctx context.Context, _ struct{}) (*struct{}, error) {
		return nil, p.waitUntilServerDeleted(ctx, projectID, region, serverID)
	})
	return err
}

// operation is what a call's log line says about its request.
type operation struct {
	name    string
	machine *v1alpha1.Machine
	class   *v1alpha1.MachineClass
}

// observed runs one driver call.
func observed[Request, Response any](ctx context.Context, p *Provider, op operation, request Request,
	run func(context.Context, Request) (*Response, error)) (*Response, error) {
	p.init()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, calls := spi.WithCallCount(ctx)
	start := p.clock.Now()
	response, err := guarded(ctx, request, run)
	op.report(err, p.clock.Since(start), calls.Load())
	return response, managersError(err)
}

// managersError is the error in the form that the manager decodes.
func managersError(err error) error {
	if err == nil {
		return nil
	}
	code, text := classify(err)
	return status.Error(code, text)
}

// guarded turns a panic into an error.
func guarded[Request, Response any](ctx context.Context, request Request,
	run func(context.Context, Request) (*Response, error)) (response *Response, err error) {
	defer recovered(&err)
	return run(ctx, request)
}

// recovered, deferred, replaces err by that of a panic, whose stack goes to the log.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		klog.ErrorS(nil, "A driver call panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		*err = newError(codes.Internal, "the driver failed unexpectedly; its log has the details")
	}
}

// report feeds the metrics and the log.
func (o *operation) report(err error, elapsed time.Duration, calls int64) {
	code := codes.OK
	var about []any
	if err != nil {
		var text string
		code, text = classify(err)
		about = append(about, "message", text)
	}
	var api *APIError
	if errors.As(err, &api) && api.RequestID != "" {
		about = append(about, "requestID", api.RequestID)
	}
	o.measure(code, elapsed)
	o.log(code, elapsed, calls, about)
}

func (o *operation) measure(code codes.Code, elapsed time.Duration) {
	switch code {
	case codes.OK, codes.NotFound, codes.Uninitialized: // answers, not failures
		metrics.DriverAPIRequestDuration.WithLabelValues(StackitProviderName, o.name).Observe(elapsed.Seconds())
	default:
		metrics.DriverFailedAPIRequests.WithLabelValues(StackitProviderName, o.name, code.String()).Inc()
	}
}

func (o *operation) log(code codes.Code, elapsed time.Duration, calls int64, about []any) {
	fields := []any{"outcome", code.String(), "duration", elapsed.Round(time.Millisecond).String(), "apiCalls", calls}
	if o.machine != nil {
		fields = append(fields, "machine", klog.KObj(o.machine), "providerID", o.machine.Spec.ProviderID)
	}
	if o.class != nil {
		fields = append(fields, "machineClass", o.class.Name)
	}
	klog.InfoS(o.name, append(fields, about...)...)
}

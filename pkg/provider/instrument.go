// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

var _ driver.Driver = (*Provider)(nil)

// Each exported method wraps the method of the same name in core.go with the needs of every driver
// call: a guard against panics (the manager's process would end), errors in the manager's form, one
// log line, and the manager's metrics.

// CreateMachine creates the Machine's server or adopts an existing one. It waits until the server
// runs, all NICs have addresses, and the spec's NICs carry the allowedAddresses. Codes:
// InvalidArgument, ResourceExhausted, Unauthenticated, PermissionDenied, FailedPrecondition,
// Unavailable, Aborted, DeadlineExceeded (the next call continues the wait), Internal.
func (p *Provider) CreateMachine(
	ctx context.Context, request *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	request = cmp.Or(request, &driver.CreateMachineRequest{})
	op := operation{"CreateMachine", p.creationDeadline(request.Machine),
		request.Machine, request.MachineClass, request.Secret}
	return observed(ctx, p, op, request, p.createMachine)
}

// InitializeMachine adds the providerSpec's allowedAddresses to the server's NICs, and waits until
// each NIC has an address. It makes no API call if this process has already seen the NICs in that state.
// Codes: InvalidArgument, Unauthenticated, PermissionDenied, FailedPrecondition, Unavailable,
// Aborted, DeadlineExceeded, Internal; never NotFound.
func (p *Provider) InitializeMachine(
	ctx context.Context, request *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	request = cmp.Or(request, &driver.InitializeMachineRequest{})
	op := operation{"InitializeMachine", p.creationDeadline(request.Machine),
		request.Machine, request.MachineClass, request.Secret}
	return observed(ctx, p, op, request, p.initializeMachine)
}

// GetMachineStatus reads the Machine's server. NotFound means that the server is gone or being
// deleted or, for a Machine without a ProviderID, that this process has recorded no running server
// with complete NICs. Uninitialized means that the NICs lack allowedAddresses, so that
// InitializeMachine must run; only this error comes with a response. Other codes: InvalidArgument,
// Unauthenticated, PermissionDenied, FailedPrecondition, Unavailable, DeadlineExceeded, Internal.
func (p *Provider) GetMachineStatus(
	ctx context.Context, request *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	request = cmp.Or(request, &driver.GetMachineStatusRequest{})
	op := operation{"GetMachineStatus", callTimeout, request.Machine, request.MachineClass, request.Secret}
	return observed(ctx, p, op, request, p.getMachineStatus)
}

// DeleteMachine deletes the Machine's server and waits until it is gone; a missing server is a
// success. For a Machine with a deletionTimestamp it deletes every server of the Machine's name and
// cluster, for any other only the server in the ProviderID. For an orphan (a Machine without a
// creationTimestamp) it sends one DELETE and does not wait.
// Codes: InvalidArgument, Unauthenticated, PermissionDenied, FailedPrecondition (the server is not
// the machine's), Unavailable, Aborted, DeadlineExceeded (the next call continues the wait),
// Internal; never NotFound.
func (p *Provider) DeleteMachine(
	ctx context.Context, request *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	request = cmp.Or(request, &driver.DeleteMachineRequest{})
	op := operation{"DeleteMachine", deleteTimeout, request.Machine, request.MachineClass, request.Secret}
	return observed(ctx, p, op, request, p.deleteMachine)
}

// ListMachines maps the ProviderIDs of the class's servers to Machine names. It returns the
// cluster's servers that carry both of the driver's labels; the manager deletes those without a
// Machine. The list is empty if the class belongs to another provider, if its region or labels cannot
// be decoded, or if a cluster label or the class's name is invalid. Codes: InvalidArgument,
// Unauthenticated, PermissionDenied, Unavailable, DeadlineExceeded, Internal.
func (p *Provider) ListMachines(
	ctx context.Context, request *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	request = cmp.Or(request, &driver.ListMachinesRequest{})
	op := operation{"ListMachines", callTimeout, nil, request.MachineClass, request.Secret}
	return observed(ctx, p, op, request, p.listMachines)
}

// GetVolumeIDs returns the IDs of the IaaS volumes behind PersistentVolumes. It knows STACKIT's CSI
// driver, Cinder's CSI driver and the in-tree Cinder plugin; all other PersistentVolumes are
// skipped.
func (p *Provider) GetVolumeIDs(
	ctx context.Context, request *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	request = cmp.Or(request, &driver.GetVolumeIDsRequest{})
	op := operation{"GetVolumeIDs", callTimeout, nil, nil, nil}
	return observed(ctx, p, op, request, p.getVolumeIDs)
}

// GenerateMachineClassForMigration returns Unimplemented: there is no older format of machine
// classes to migrate from.
func (p *Provider) GenerateMachineClassForMigration(
	context.Context, *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return nil, status.Error(codes.Unimplemented, "there is no older format of machine classes to migrate from")
}

// WaitUntilServerRunning waits until the server is ACTIVE. It uses the newest session that this
// process opened for the project. Codes: InvalidArgument (no session yet), Internal or
// ResourceExhausted (the server ended in ERROR), NotFound (the server is gone), Unauthenticated (the
// credentials are refused), DeadlineExceeded.
func (p *Provider) WaitUntilServerRunning(ctx context.Context, projectID, region, serverID string) error {
	op := operation{name: "WaitUntilServerRunning", timeout: p.creationDeadline(nil)}
	_, err := observed(ctx, p, op, struct{}{}, func(ctx context.Context, _ struct{}) (*struct{}, error) {
		return nil, p.waitUntilServerRunning(ctx, projectID, region, serverID)
	})
	return err
}

// WaitUntilServerDeleted waits until the server is gone. It uses the newest session that this
// process opened for the project. Codes: InvalidArgument (no session yet), Unauthenticated (the
// credentials are refused), DeadlineExceeded.
func (p *Provider) WaitUntilServerDeleted(ctx context.Context, projectID, region, serverID string) error {
	op := operation{name: "WaitUntilServerDeleted", timeout: deleteTimeout}
	_, err := observed(ctx, p, op, struct{}{}, func(ctx context.Context, _ struct{}) (*struct{}, error) {
		return nil, p.waitUntilServerDeleted(ctx, projectID, region, serverID)
	})
	return err
}

// operation is a driver call, with its deadline and the subjects of its log line.
type operation struct {
	name    string
	timeout time.Duration
	machine *v1alpha1.Machine
	class   *v1alpha1.MachineClass
	secret  *corev1.Secret
}

// observed runs one driver call.
func observed[Request, Response any](ctx context.Context, p *Provider, op operation, request Request,
	run func(context.Context, Request) (*Response, error)) (*Response, error) {
	p.init()
	ctx, calls := spi.WithCallCount(ctx)
	ctx, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	start := p.clock.Now()
	if op.class != nil {
		p.meters.name(op.class.Name)
	}
	response, err := func() (response *Response, err error) {
		defer recovered(&err)
		return run(ctx, request)
	}()
	elapsed, code := p.clock.Since(start), codes.OK
	var attributes []any
	if err != nil {
		var api *APIError
		told := *classified(err)
		told.Text = redacted(told.Text, secretsIn(op.secret)...)
		text := told.Error()
		code, attributes = told.code(), []any{"message", text}
		if errors.As(err, &api) && api.RequestID != "" {
			attributes = append(attributes, "requestID", api.RequestID)
		}
		err = status.Error(code, text) // the form that the manager decodes
	}
	op.measure(code, elapsed)
	op.log(code, elapsed, calls.Load(), attributes)
	return response, err
}

func (o *operation) measure(code codes.Code, elapsed time.Duration) {
	switch code {
	case codes.OK, codes.NotFound, codes.Uninitialized: // answers, not failures
		metrics.DriverAPIRequestDuration.WithLabelValues(StackitProviderName, o.name).Observe(elapsed.Seconds())
	default:
		metrics.DriverFailedAPIRequests.WithLabelValues(StackitProviderName, o.name, code.String()).Inc()
	}
}

func (o *operation) log(code codes.Code, elapsed time.Duration, calls int64, attributes []any) {
	fields := []any{"outcome", code.String(), "duration", elapsed.Round(time.Millisecond).String(), "apiCalls", calls}
	if o.machine != nil {
		fields = append(fields, "machine", klog.KRef(loggable(o.machine.Namespace), loggable(o.machine.Name)),
			"providerID", loggable(o.machine.Spec.ProviderID))
	}
	if o.class != nil {
		fields = append(fields, "machineClass", loggable(o.class.Name))
	}
	klog.InfoS(o.name, append(fields, attributes...)...)
}

// recovered, when deferred, turns a panic into an error in err, and logs its stack.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		klog.ErrorS(nil, "Driver call panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		*err = newError(ReasonDriverBug, "the driver panicked: the sidecar's log has the stack trace")
	}
}

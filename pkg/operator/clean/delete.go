// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// deletionsAtOnce is how many orphans are deleted side by side: a deletion mostly waits.
	deletionsAtOnce = 10
	// staysFor is how long a server may keep its state after a DELETE was accepted.
	staysFor = 15 * time.Second
	// requestTimeout is how long a request may take, its last looks at all Machines and Nodes
	// included: in a large cluster lists take their time. One look is part of an attempt, and
	// has half of it.
	requestTimeout = time.Minute
	// maxRequests is how often a server that keeps its state is asked to go.
	maxRequests = 3
)

// Outcome is what became of an orphan.
type Outcome string

// The outcomes.
const (
	// Gone means that the server is proved gone.
	Gone Outcome = "gone"
	// Requested means that its deletion was accepted, and that nobody wants to wait for it.
	Requested Outcome = "requested"
	// NotDeleted means that it stays: no DELETE was sent, or all were refused.
	NotDeleted Outcome = "not deleted"
	// Unknown means that a DELETE may have been accepted, and that its end was not seen.
	Unknown Outcome = "unknown"
)

// Deletion is what became of an orphan.
type Deletion struct {
	Orphan  Orphan  `json:"server"`
	Outcome Outcome `json:"outcome"`
	// Reason says why it is not Gone, in one line.
	Reason string `json:"reason,omitempty"`
}

// Delete deletes the orphans for which it is enough what the user says (Allow), waits until
// each is proved gone if wait says so, and reports each as it ends; report is called by one
// goroutine at a time. Request and wait are the driver's, the request as the manager's orphan
// collector makes it, with the driver's own rule of which server is whose. Right before each
// DELETE, repeated ones included, the server, the Machines and the Nodes are read again: one
// that has changed, or is not an orphan any more, stays. The cause of ctx's end is among the
// reasons.
func (c *Plan) Delete(ctx context.Context, says Consent, wait bool, report func(Deletion)) {
	c.Allow(says)
	look := &lastLook{next: c.access.Transport, deletions: map[string]*deletion{}}
	for i := range c.Orphans {
		begun := &deletion{Orphan: &c.Orphans[i], plan: c, wait: wait}
		begun.ctx, begun.cancel = context.WithCancelCause(ctx)
		look.deletions[begun.ID] = begun
	}
	driver := &provider.Provider{SPI: c.access.NewSessions(look)}
	provider.WithOrphanTimeout(requestTimeout)(driver)
	var reporting sync.Mutex
	var group errgroup.Group
	group.SetLimit(deletionsAtOnce)
	for _, orphan := range c.Orphans {
		group.Go(func() error {
			deletion := look.deletions[orphan.ID]
			defer deletion.cancel(nil)
			result := deletion.judge(ctx, deletion.run(driver))
			reporting.Lock()
			defer reporting.Unlock()
			report(result)
			return nil
		})
	}
	_ = group.Wait()
}

// run asks for the deletion and waits until the server is proved gone. That DeleteMachine
// answers OK proves nothing: to the API's DELETE, or to the read before it, the API may have
// answered 404 by mistake. A server that keeps its state is asked to go again.
func (d *deletion) run(driver *provider.Provider) error {
	request, err := d.request()
	if err != nil {
		return err
	}
	if _, err := driver.DeleteMachine(d.ctx, request); err != nil || !d.wait {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- driver.WaitUntilServerDeleted(d.ctx, d.ProjectID, d.Region, d.ID) }()
	for requests := 1; ; {
		select {
		case err := <-gone:
			return err
		case <-d.plan.access.ClockOrReal().After(staysFor):
		}
		server, err := d.in.at.Server(d.ctx, d.ID)
		switch {
		case err != nil || server.IsDeleting(): // the driver's wait decides
			continue
		case requests == maxRequests:
			return status.Error(codes.Aborted, fmt.Sprintf("its deletion was requested %d times, but it is %s", requests, server.Status))
		}
		requests++
		if _, err := driver.DeleteMachine(d.ctx, request); err != nil {
			return err
		}
	}
}

// judge says what became of the orphan: run ended with err, because ctx ended, because the
// last look refused a DELETE, or by itself. Once a DELETE may have been accepted, nothing but
// its proof says what became of the server.
func (d *deletion) judge(ctx context.Context, err error) Deletion {
	result := Deletion{Orphan: *d.Orphan, Outcome: NotDeleted}
	sent, refused := d.sent.Load(), context.Cause(d.ctx)
	if sent {
		result.Outcome = Unknown
	}
	failure, _ := status.FromError(err)
	switch {
	case err == nil && d.wait:
		result.Outcome = Gone
	case err == nil && sent:
		result.Outcome = Requested
	case err == nil:
		result.Outcome, result.Reason = Unknown, "the API did not find it; --wait proves it gone"
	case ctx.Err() != nil && sent:
		result.Reason = fmt.Sprintf("%v: its deletion may have been requested", ended(ctx))
	case ctx.Err() != nil:
		result.Reason = fmt.Sprintf("not begun: %v", ended(ctx))
	case refused != nil && sent:
		result.Reason = fmt.Sprintf("%v; but its deletion may have been requested before", refused)
	case refused != nil:
		result.Reason = refused.Error()
	default:
		result.Reason = failure.Message()
	}
	return result
}

// ended says why a context ended.
func ended(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return "interrupted"
}

// request is the one that the manager's orphan collector would make: a Machine of which only
// name and ProviderID are set. The class may be gone, so one is made of what the server's
// labels say: the driver compares them once more.
func (o *Orphan) request() (*driver.DeleteMachineRequest, error) {
	spec, err := json.Marshal(apis.ProviderSpec{Region: o.Region, Labels: account.ClusterLabels(o.server.Labels)})
	if err != nil {
		return nil, err
	}
	return &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: o.Machine},
			Spec:       v1alpha1.MachineSpec{ProviderID: providerid.Format(o.ProjectID, o.ID)},
		},
		MachineClass: &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: o.Class},
			ProviderSpec: runtime.RawExtension{Raw: spec},
		},
		Secret: o.in.at.Secret,
	}, nil
}

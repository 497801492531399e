// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
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
	// maxRequests is how often a server that keeps its state is asked to go.
	maxRequests = 3
)

// Deletion is what became of an orphan.
type Deletion struct {
	Orphan Orphan `json:"server"`
	// Gone says that the server is proved gone.
	Gone bool `json:"gone"`
	// Reason says why it is not, in one line.
	Reason string `json:"reason,omitempty"`
}

// Delete deletes the orphans, waits until each is proved gone, and reports each as it ends;
// report is called by one goroutine at a time. Request and wait are the driver's, the request
// as the manager's orphan collector makes it, with the driver's own rule of which server is
// whose. Right before each DELETE, repeated ones included, the server and the Machines are
// read again: one that is not an orphan any more stays.
func (c *Plan) Delete(ctx context.Context, report func(Deletion)) {
	look := &lastLook{next: c.operator.Transport, deletions: map[string]*deletion{}}
	for i := range c.Orphans {
		begun := &deletion{Orphan: &c.Orphans[i], plan: c}
		begun.ctx, begun.cancel = context.WithCancelCause(ctx)
		look.deletions[begun.ID] = begun
	}
	driver := &provider.Provider{SPI: c.operator.NewSessions(look)}
	var reporting sync.Mutex
	var group errgroup.Group
	group.SetLimit(deletionsAtOnce)
	for _, orphan := range c.Orphans {
		group.Go(func() error {
			result := Deletion{Orphan: orphan, Gone: true}
			deletion := look.deletions[orphan.ID]
			defer deletion.cancel(nil)
			if err := deletion.explain(ctx, deletion.run(driver)); err != nil {
				result.Gone, result.Reason = false, err.Error()
			}
			reporting.Lock()
			defer reporting.Unlock()
			report(result)
			return nil
		})
	}
	_ = group.Wait()
}

// deletion is that of one orphan.
type deletion struct {
	*Orphan
	plan *Plan
	// ctx ends with the deletion. A last look that refuses a DELETE ends it, too, and is
	// its cause.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// sent says that a DELETE may have been sent.
	sent atomic.Bool
}

// run asks for the deletion and waits until the server is proved gone. That DeleteMachine
// answers OK proves nothing: to the API's DELETE, or to the read before it, the API may have
// answered 404 by mistake. A server that keeps its state is asked to go again.
func (d *deletion) run(driver *provider.Provider) error {
	request, err := d.request()
	if err != nil {
		return err
	}
	if _, err := driver.DeleteMachine(d.ctx, request); err != nil {
		return driverError(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- driver.WaitUntilServerDeleted(d.ctx, d.ProjectID, d.Region, d.ID) }()
	for requests := 1; ; {
		select {
		case err := <-gone:
			return driverError(err)
		case <-d.plan.operator.ClockOrReal().After(staysFor):
		}
		server, err := d.server.at.Server(d.ctx, d.ID)
		switch {
		case err != nil || server.IsDeleting(): // the driver's wait decides
			continue
		case requests == maxRequests:
			return fmt.Errorf("its deletion was requested %d times, but it is %s", requests, server.Status)
		}
		requests++
		if _, err := driver.DeleteMachine(d.ctx, request); err != nil {
			return driverError(err)
		}
	}
}

// driverError says what the driver answered, in one line.
func driverError(err error) error {
	if err == nil {
		return nil
	}
	decoded, _ := status.FromError(err)
	return fmt.Errorf("%s: %s", decoded.Code(), decoded.Message())
}

// explain says why a deletion ended with err: ctx was interrupted, the last look refused a
// DELETE, or err itself.
func (d *deletion) explain(ctx context.Context, err error) error {
	refused, sent := context.Cause(d.ctx), d.sent.Load()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && sent:
		return errors.New("interrupted: its deletion may have been requested")
	case ctx.Err() != nil:
		return errors.New("not begun: it was interrupted")
	case refused != nil && sent:
		return fmt.Errorf("%w; but its deletion may have been requested before", refused)
	case refused != nil:
		return refused
	default:
		return err
	}
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
		Secret: o.server.at.Secret,
	}, nil
}

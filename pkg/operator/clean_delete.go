// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// deletionsAtOnce is how many orphans are deleted side by side: a deletion mostly waits.
const deletionsAtOnce = 10

// Deletion is what became of an orphan.
type Deletion struct {
	Orphan Orphan `json:"server"`
	// Gone says that the server is proved gone.
	Gone bool `json:"gone"`
	// Reason says why it is not, in one line.
	Reason string `json:"reason,omitempty"`
}

// Delete deletes the orphans, waits until each is proved gone, and reports each as it ends;
// report is called by one goroutine at a time. The deletion itself is the driver's, as the
// manager's orphan collector calls it, with the driver's own rule of which server is whose.
// Right before each of its DELETEs, repeated ones included, the server and the Machines are
// read again: one that is not an orphan any more stays.
func (c *Cleanup) Delete(ctx context.Context, report func(Deletion)) {
	driver := provider.NewProvider(c.operator.Sessions)
	var reporting sync.Mutex
	var group errgroup.Group
	group.SetLimit(deletionsAtOnce)
	for _, orphan := range c.Orphans {
		group.Go(func() error {
			result := Deletion{Orphan: orphan, Gone: true}
			if err := c.delete(ctx, driver, &orphan); err != nil {
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

func (c *Cleanup) delete(ctx context.Context, driver driver.Driver, orphan *Orphan) error {
	request, err := orphan.request()
	if err != nil {
		return err
	}
	sent := false
	guarded, stop := spi.WithGuard(ctx, func(ctx context.Context) error {
		err := c.stillOrphan(ctx, orphan)
		sent = sent || err == nil
		return err
	})
	defer stop()
	_, err = driver.DeleteMachine(guarded, request)
	refused := context.Cause(guarded)
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
	}
	decoded, _ := status.FromError(err)
	return fmt.Errorf("%s: %s", decoded.Code(), decoded.Message())
}

// stillOrphan reads the server, and then the Machines, again. A server that the API does not
// find may be there all the same: it is judged as it was, and the driver proves it gone.
func (c *Cleanup) stillOrphan(ctx context.Context, orphan *Orphan) error {
	account := orphan.server.account
	server := &orphan.server.Server
	seen, err := account.server(ctx, orphan.ID)
	if err == nil {
		server = seen
	} else if !provider.IsNotFound(err) {
		return apiFailure(account.Origin, err)
	}
	if !carries(server.Labels, c.options.labels()) {
		return fmt.Errorf("left alone: its label is not %s any more", c.options.label())
	}
	machines, err := c.operator.machines(ctx, c.namespaces...)
	if err != nil {
		return err
	}
	if kept := c.keeps(server, machines); kept != nil {
		return fmt.Errorf("left alone: %s", kept.Reason)
	}
	return nil
}

// request is the one that the manager's orphan collector would make: a Machine of which only
// name and ProviderID are set. The class may be gone, so one is made of what the server's
// labels say: the driver compares them once more.
func (o *Orphan) request() (*driver.DeleteMachineRequest, error) {
	spec, err := json.Marshal(apis.ProviderSpec{Region: o.Region, Labels: clusterLabels(o.server.Labels)})
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
		Secret: o.server.account.Secret,
	}, nil
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// acceptTimeout limits the wait for a server that is not DELETING.
	acceptTimeout = time.Minute
	// goneTimeout limits the wait for a server that is DELETING; the driver's own limit is not longer.
	goneTimeout = 10 * time.Minute
	// othersTimeout limits the wait for a list that shows other servers of the project; othersInterval is its poll
	// interval.
	othersTimeout, othersInterval = time.Minute, 5 * time.Second
)

// Delete deletes the servers in ToDelete, and calls report for each server once its outcome is
// known. Calls of report do not overlap.
func (p *Plan) Delete(ctx context.Context, report func(*Server)) {
	var reporting sync.Mutex
	inParallel(p.ToDelete(), func(_ int, server *Server) {
		p.delete(ctx, server)
		reporting.Lock()
		defer reporting.Unlock()
		report(server)
	})
}

// delete checks the server again, sends the DELETE, and waits until the server is proved gone. The HTTP layer retries a
// failed DELETE for the 5 s that the driver gives an orphan.
func (p *Plan) delete(ctx context.Context, server *Server) {
	now, err := read(ctx, server.At, server.ID)
	switch {
	case ctx.Err() != nil:
		server.end(Unknown, "interrupted, no DELETE was sent")
		return
	case err != nil:
		server.end(Unknown, "the server could not be read again, no DELETE was sent: %v", server.At.Failure(err))
		return
	}
	if reason := p.recheck(ctx, server.Shown, now); reason != "" {
		server.end(Refused, "%s", reason)
		return
	}
	// A driver per deletion, so that its wait uses the session that this deletion opens.
	driver := &provider.Provider{SPI: p.access.Sessions}
	_, sent := driver.DeleteMachine(ctx, server.request())
	if answer, ok := status.FromError(sent); ok && answer.Code() == codes.FailedPrecondition {
		// The driver's ownership check.
		server.end(Refused, "%s", answer.Message())
		return
	}
	waited := server.waitGone(ctx, driver, acceptTimeout)
	if waited != nil {
		if now, err := server.At.Server(ctx, server.ID); err == nil && !now.IsDeleting() {
			waited = cmp.Or(sent, waited)
		} else {
			waited = server.waitGone(ctx, driver, goneTimeout)
		}
	}
	server.endOf(ctx, waited)
}

// recheck checks a server again before its deletion. It returns why it must not be deleted, or that it has changed
// since before; "" if it may be deleted.
func (p *Plan) recheck(ctx context.Context, before *provider.Server, now *observation) string {
	if now.Name != before.Name || !now.CreatedAt.Equal(before.CreatedAt) ||
		!maps.Equal(now.Labels, before.Labels) || !maps.Equal(now.Metadata, before.Metadata) {
		return "its name, creation time, labels or metadata changed since it was shown: run the command again"
	}
	known, err := p.facts(ctx)
	if err != nil {
		return err.Error()
	}
	return p.refusal(now, known)
}

func (s *Server) waitGone(ctx context.Context, driver *provider.Provider, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return driver.WaitUntilServerDeleted(ctx, s.At.Session.ProjectID, s.At.Region, s.ID)
}

// endOf sets the outcome of a deletion. A nil err means that the driver's wait found the server gone. That counts only
// once a list shows other servers of the project: the API may show an empty list for longer than the wait takes.
func (s *Server) endOf(ctx context.Context, err error) {
	if ctx.Err() != nil {
		s.end(Unknown, "interrupted, a DELETE may have been accepted")
		return
	}
	if err == nil {
		err = s.awaitOthers(ctx)
	}
	if err == nil {
		s.end(Gone, "")
		return
	}
	failure := err.Error()
	if answer, ok := status.FromError(err); ok {
		failure = answer.Message()
	}
	switch server, err := s.At.Server(ctx, s.ID); {
	case err == nil:
		s.end(StillThere, "it is %s, and its deletion is not retried: %s", server.Status, failure)
	case provider.IsNotFound(err):
		s.end(Unknown, "a read did not find the server, but that does not prove that it is gone: %s", failure)
	default:
		s.end(Unknown, "%v; %s", s.At.Failure(err), failure)
	}
}

// awaitOthers waits until a list shows other servers of the project, and not this one: lists may be old. It returns an
// error if none does within othersTimeout.
func (s *Server) awaitOthers(ctx context.Context) error {
	failure := fmt.Errorf("the API shows no server at all in %s: check again later", s.At)
	isThis := func(server provider.Server) bool { return server.ID == s.ID }
	err := wait.PollUntilContextTimeout(ctx, othersInterval, othersTimeout, true, func(ctx context.Context) (bool, error) {
		servers, err := s.At.Servers(ctx, nil)
		switch {
		case err != nil:
			if ctx.Err() == nil { // else this read was cut off: keep the failure of the reads before it
				failure = s.At.Failure(err)
			}
		case slices.ContainsFunc(servers, isThis):
			failure = errors.New("a list still shows the server")
			return false, nil
		}
		return len(servers) > 0, nil
	})
	if wait.Interrupted(err) {
		return failure
	}
	return err
}

// request builds the request of the manager's orphan collector, for which the driver reads this one server, sends one
// DELETE and waits for seconds. The class may be gone, so it is built from the server's labels; the driver compares
// them again.
func (s *Server) request() *driver.DeleteMachineRequest {
	cluster := account.ClusterLabels(s.Shown.Labels)
	spec, _ := json.Marshal(apis.ProviderSpec{Region: s.At.Region, Labels: cluster}) // cannot fail: strings only
	return &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: s.Shown.Labels[provider.StackitMachineLabel]},
			Spec:       v1alpha1.MachineSpec{ProviderID: providerid.Format(s.At.Session.ProjectID, s.ID)},
		},
		MachineClass: &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: s.Shown.Labels[provider.StackitMachineClassLabel]},
			ProviderSpec: runtime.RawExtension{Raw: spec},
		},
		Secret: s.At.Secret,
	}
}

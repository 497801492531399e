// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package deleteserver deletes the servers whose IDs the user gives, if no Machine and no Node uses
// them. It never selects servers itself: it is used while the manager does not run (migrations,
// restores), when a cluster's orphans cannot be proved as a whole. The rules are in Evidence.Refusal.
package deleteserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
)

// Outcome is the result for one server. Before its deletion, "" means that the server may be deleted.
type Outcome string

// The outcomes.
const (
	// Gone means that the server is proved gone.
	Gone Outcome = "gone"
	// StillThere means that the API still shows the server.
	StillThere Outcome = "still there"
	// Refused means that no DELETE was sent. Reason has the cause.
	Refused Outcome = "refused"
	// NotFound means that no searched project and region has the server.
	NotFound Outcome = "not found"
	// Unknown means that the result could not be determined. Reason has the cause.
	Unknown Outcome = "unknown"
)

// Server is a server that the user named, and its outcome.
type Server struct {
	ID string
	// At is the account in which the server was found, Evidence is what was read of it then; At is nil if it
	// was not found.
	At       *account.Account
	Evidence Evidence

	Outcome Outcome
	// Reason describes in one line why the server is not Gone; "" if it is Gone or may be deleted.
	Reason string
}

func (s *Server) end(outcome Outcome, format string, args ...any) {
	s.Outcome, s.Reason = outcome, fmt.Sprintf(format, args...)
}

// Deletion judges and deletes the servers of one run. New creates it.
type Deletion struct {
	access   *account.Access
	accounts []*account.Account // several may share a project and region, with different keys
}

// New returns a Deletion for the accounts of the namespace's classes, or those that the user named. access must have
// Control and Target. problems are the reasons why other accounts cannot be searched; if there is no account, they are
// the error.
func New(ctx context.Context, access *account.Access) (d *Deletion, problems []error, err error) {
	accounts, problems := access.Accounts(ctx, access.Namespace)
	if len(accounts) == 0 {
		return nil, nil, errors.Join(problems...)
	}
	return &Deletion{access, accounts}, problems, nil
}

// Judge finds a server, and decides whether it may be deleted: Outcome is "" if so. It changes nothing. It returns an
// error if it cannot read the Machines or MachineClasses of all namespaces, the Nodes of the target cluster, or the
// other servers of the server's cluster.
func (d *Deletion) Judge(ctx context.Context, id string) (*Server, error) {
	server := &Server{ID: id}
	var failures []error
	var searched []string
	for _, at := range d.accounts {
		searched = append(searched, at.String())
		shown, err := at.Server(ctx, id)
		if err == nil {
			server.At, server.Evidence.Server = at, shown
			break
		}
		if !provider.IsNotFound(err) {
			failures = append(failures, at.Failure(err))
		}
	}
	switch {
	case server.At == nil && len(failures) > 0:
		server.end(Unknown, "%v", errors.Join(failures...))
		return server, nil
	case server.At == nil:
		server.end(NotFound, "no server with this ID in %s", strings.Join(slices.Compact(searched), ", "))
		return server, nil
	}
	var err error
	evidence := &server.Evidence
	if evidence.Addresses, evidence.Date, err = server.At.Addresses(ctx, id); err != nil {
		server.end(Refused, "its addresses cannot be read: %v", server.At.Failure(err))
		return server, nil
	}
	if err := d.readOthers(ctx, evidence); err != nil {
		return nil, err
	}
	if reason := evidence.Refusal(); reason != "" {
		server.end(Refused, "%s", reason)
	}
	return server, nil
}

// readOthers reads what may use the server, Machines and Nodes last: they are made while the others are read.
func (d *Deletion) readOthers(ctx context.Context, e *Evidence) (err error) {
	labels := account.ClusterLabels(e.Server.Labels)
	for _, at := range d.accounts {
		servers, err := at.Servers(ctx, labels)
		if err != nil {
			return at.Failure(err)
		}
		for i := range servers {
			if account.Carries(servers[i].Labels, labels) {
				e.Siblings = append(e.Siblings, servers[i].ID)
			}
		}
	}
	if e.Classes, err = d.access.Classes(ctx, metav1.NamespaceAll); err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := d.access.Target.List(ctx, nodes); err != nil {
		return fmt.Errorf("listing the Nodes of the target cluster: %w", err)
	}
	e.Nodes = nodes.Items
	if e.Machines, err = d.access.Machines(ctx, metav1.NamespaceAll); err != nil {
		return fmt.Errorf("cannot identify orphans without the Machines of all namespaces: %w", err)
	}
	return nil
}

// Delete judges the server once more, sends the DELETE, waits until the server is proved gone, and sets the Outcome. A
// server that has changed since it was judged is refused. The HTTP layer retries a failed DELETE for the 5 s that the
// driver gives an orphan.
func (d *Deletion) Delete(ctx context.Context, server *Server) {
	before := server.Evidence.Server
	again, err := d.Judge(ctx, server.ID)
	switch {
	case ctx.Err() != nil:
		server.end(Unknown, "interrupted, no DELETE was sent")
		return
	case err != nil:
		server.end(Refused, "it could not be judged again: %v", err)
		return
	case again.Outcome != "":
		server.end(again.Outcome, "%s", again.Reason)
		return
	}
	if now := again.Evidence.Server; now.Name != before.Name || !now.CreatedAt.Equal(before.CreatedAt) ||
		!maps.Equal(now.Labels, before.Labels) || !maps.Equal(now.Metadata, before.Metadata) {
		server.end(Refused, "its name, creation time, labels or metadata changed since it was shown")
		return
	}
	// A driver per deletion, so that its wait uses the session that this deletion opens.
	driver := &provider.Provider{SPI: d.access.Sessions}
	_, sent := driver.DeleteMachine(ctx, server.request())
	if answer, ok := status.FromError(sent); ok && answer.Code() == codes.FailedPrecondition {
		server.end(Refused, "%s", answer.Message()) // by the driver's ownership check
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

func (s *Server) waitGone(ctx context.Context, driver *provider.Provider, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return driver.WaitUntilServerDeleted(ctx, s.At.Session.ProjectID, s.At.Region, s.ID)
}

// endOf sets the outcome of a deletion. A nil err means that the driver's wait found the server gone.
func (s *Server) endOf(ctx context.Context, err error) {
	if ctx.Err() != nil {
		s.end(Unknown, "interrupted, a DELETE may have been accepted")
		return
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
		s.end(StillThere, "it is %s: %s", server.Status, failure)
	case provider.IsNotFound(err):
		s.end(Unknown, "a read did not find the server, but that does not prove that it is gone: %s", failure)
	default:
		s.end(Unknown, "%v; %s", s.At.Failure(err), failure)
	}
}

// request builds the request of the manager's orphan collector, for which the driver reads this one server, sends one
// DELETE and waits for seconds. The class may be gone, so it is built from the server's labels; the driver compares
// them again.
func (s *Server) request() *driver.DeleteMachineRequest {
	labels := s.Evidence.Server.Labels
	spec, _ := json.Marshal(apis.ProviderSpec{Region: s.At.Region, Labels: account.ClusterLabels(labels)}) // cannot fail
	return &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: labels[provider.StackitMachineLabel]},
			Spec:       v1alpha1.MachineSpec{ProviderID: providerid.Format(s.At.Session.ProjectID, s.ID)},
		},
		MachineClass: &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: labels[provider.StackitMachineClassLabel]},
			ProviderSpec: runtime.RawExtension{Raw: spec},
		},
		Secret: s.At.Secret,
	}
}

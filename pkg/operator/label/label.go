// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package label puts the manager's labels on servers that Machines name by ProviderID and that
// lack them, as those that came from OpenStack do. rules.go says on which.
package label

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Make finds the servers that lack labels. It changes nothing. It fails if the Machines, the
// classes or a project's servers cannot be read.
func Make(ctx context.Context, o *account.Access) (*Plan, error) {
	if o.Control == nil {
		return nil, errors.New("the cluster with the Machines must be asked, and there is none")
	}
	classes, err := o.InspectedClasses(ctx, o.Namespace)
	if err != nil {
		return nil, err
	}
	accounts, problems := o.Accounts(ctx)
	if len(accounts) == 0 {
		return nil, errors.Join(problems...)
	}
	servers := map[string]*provider.Server{}
	for _, at := range accounts {
		listed, err := at.Servers(ctx, nil)
		if err != nil {
			return nil, at.Failure(err)
		}
		for i := range listed {
			servers[listed[i].ID] = &listed[i]
		}
	}
	machines, err := o.Machines(ctx)
	if apierrors.IsForbidden(err) {
		machines, err = o.Machines(ctx, o.Namespace)
	}
	if err != nil {
		return nil, err
	}
	plan := &Plan{Servers: []Server{}, access: o, owners: account.NewOwners(machines)}
	for i := range machines {
		if one := newServer(&machines[i], classes, accounts); one != nil && one.Namespace == o.Namespace {
			plan.judge(ctx, one, servers[one.ID])
			plan.Servers = append(plan.Servers, *one)
		}
	}
	slices.SortFunc(plan.Servers, func(a, b Server) int { return cmp.Compare(a.Machine, b.Machine) })
	return plan, nil
}

// newServer is that of a Machine; nil if nobody labels it: the Machine is being deleted, waits for
// its first server, or is another provider's.
func newServer(machine *v1alpha1.Machine, classes []*account.Class, accounts []*account.Account) *Server {
	one := &Server{Namespace: machine.Namespace, Machine: machine.Name, Class: machine.Spec.Class.Name, ProviderID: machine.Spec.ProviderID, machine: machine}
	if at := slices.IndexFunc(classes, func(class *account.Class) bool { return class.Name == one.Class }); at >= 0 {
		one.class = classes[at]
	}
	if machine.DeletionTimestamp != nil || one.ProviderID == "" && !provider.CameFromOpenStack(machine) ||
		one.class != nil && account.IsForeign(one.class.MachineClass) {
		return nil
	}
	if ids := account.IDsIn(one.ProviderID); len(ids) > 0 {
		one.ID = ids[len(ids)-1]
	}
	if one.at = accountOf(accounts, one.Class); one.at != nil {
		one.ProjectID, one.Region = one.at.Session.ProjectID, one.at.Region
	}
	return one
}

// accountOf is where the driver works for a class; nil if its credentials cannot be used. An
// account that the user names is that of all classes.
func accountOf(accounts []*account.Account, class string) *account.Account {
	for _, at := range accounts {
		if len(at.Classes) == 0 || slices.ContainsFunc(at.Classes, func(own *v1alpha1.MachineClass) bool { return own.Name == class }) {
			return at
		}
	}
	return nil
}

// Apply puts the missing labels on the servers, one after the other, and reports each. Right
// before, the Machine and the server are read again. After an answer that does not show the
// labels as they should be, no other server is changed.
func (p *Plan) Apply(ctx context.Context, report func(Server)) {
	stopped := ""
	for i := range p.Servers {
		one := &p.Servers[i]
		if one.Outcome != Missing {
			continue
		}
		switch {
		case ctx.Err() != nil:
			one.end(Unknown, "not begun: interrupted")
		case stopped != "":
			one.end(Refused, "not begun: see server "+stopped)
		default:
			p.apply(ctx, one)
		}
		if one.Outcome == Wrong {
			stopped = one.ID
		}
		report(*one)
	}
}

func (p *Plan) apply(ctx context.Context, one *Server) {
	var machine v1alpha1.Machine
	if err := p.access.Control.Get(ctx, client.ObjectKeyFromObject(one.machine), &machine); err != nil {
		one.end(Unknown, fmt.Sprintf("reading the Machine: %v", err))
		return
	}
	if machine.Spec.ProviderID != one.ProviderID || machine.DeletionTimestamp != nil {
		one.end(Refused, "the Machine has changed since it was read: run this again")
		return
	}
	server, err := one.at.Server(ctx, one.ID)
	if err != nil {
		one.end(Unknown, one.at.Failure(err).Error())
		return
	}
	if p.judge(ctx, one, server); one.Outcome != Missing {
		return
	}
	want := maps.Clone(server.Labels)
	maps.Copy(want, one.Labels)
	answer, err := provider.UpdateServerLabels(ctx, one.at.Session, one.Region, one.ID, sendable(want))
	var api *provider.APIError
	switch {
	case err == nil:
		one.end(compare(want, answer.Labels))
	case errors.As(err, &api) && api.StatusCode/100 == 4:
		one.end(Refused, one.at.Failure(err).Error())
	default:
		one.end(Unknown, one.at.Failure(err).Error()+": run this again")
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package clean deletes one cluster's servers that no Machine names. rules.go says which, and
// what the user must say first.
package clean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// Make finds the orphans of one cluster. It changes nothing. It fails if anything cannot be
// read that could name a server: a list of classes, Machines or Nodes, a class with the
// label, its Secret.
func Make(ctx context.Context, o *account.Access, options Options) (*Plan, error) {
	if o.Control == nil {
		return nil, errors.New("the cluster with the Machines must be asked, and there is none")
	}
	plan := &Plan{access: o, options: options, Orphans: []Orphan{}, Kept: []Kept{}, Places: []*Place{}}
	if err := plan.chooseNamespaces(ctx); err != nil {
		return nil, err
	}
	classes, err := plan.classes(ctx)
	if err != nil {
		return nil, err
	}
	own, err := plan.own(classes)
	if err != nil {
		return nil, err
	}
	accounts, err := accountsToClean(ctx, o, own)
	if err != nil {
		return nil, err
	}
	servers, err := plan.servers(ctx, accounts)
	if err != nil {
		return nil, err
	}
	// Last: a Machine is there before its server, so that no new server passes for an orphan.
	machines, err := o.Machines(ctx, plan.namespaces...)
	if err != nil {
		return nil, err
	}
	wants, err := plan.wants(ctx, classes, machines)
	if err != nil {
		return nil, err
	}
	known, err := plan.factsOf(ctx, machines)
	if err != nil {
		return nil, err
	}
	if err := plan.checkEmpty(ctx, servers, own, machines); err != nil {
		return nil, err
	}
	plan.sort(servers, known)
	for _, place := range plan.Places {
		plan.judgePlace(place, wants)
	}
	return plan, nil
}

// chooseNamespaces asks for the Machines of all namespaces; where that is forbidden, those
// named must do, and a Machine elsewhere cannot be seen.
func (c *Plan) chooseNamespaces(ctx context.Context) error {
	err := c.access.Control.List(ctx, &v1alpha1.MachineList{}, client.Limit(1))
	switch {
	case err == nil:
		return nil
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("listing Machines: %w", err)
	case len(c.options.Namespaces) == 0:
		return fmt.Errorf("listing Machines: %w; name the namespaces that have this cluster's with --namespaces", err)
	}
	c.namespaces = c.options.Namespaces
	return nil
}

// classes returns all MachineClasses that can be read.
func (c *Plan) classes(ctx context.Context) ([]*account.Class, error) {
	classes, err := c.access.InspectedClasses(ctx)
	if apierrors.IsForbidden(err) && len(c.options.Namespaces) > 0 {
		return c.access.InspectedClasses(ctx, c.options.Namespaces...)
	}
	return classes, err
}

// own returns the MachineClasses that carry the cluster's label. A class whose labels cannot
// be read might be one of them: it is an error.
func (c *Plan) own(classes []*account.Class) ([]*v1alpha1.MachineClass, error) {
	var found []*v1alpha1.MachineClass
	for _, class := range classes {
		switch {
		case account.IsForeign(class.MachineClass):
		case class.Inputs.ClusterUnknown:
			return nil, fmt.Errorf("MachineClass %s/%s: its providerSpec.labels cannot be read, it might be one of the cluster's: repair it first", class.Namespace, class.Name)
		case class.Inputs.ClusterLabels[c.options.ClusterKey] == c.options.ClusterValue:
			found = append(found, class.MachineClass)
		}
	}
	return found, nil
}

// accountsToClean returns the account that is named, else those of the classes.
func accountsToClean(ctx context.Context, o *account.Access, classes []*v1alpha1.MachineClass) ([]*account.Account, error) {
	secret, origin, err := o.NamedSecret(ctx)
	if err != nil {
		return nil, err
	}
	if secret != nil {
		named, err := o.Open(secret, "", origin)
		return []*account.Account{named}, err
	}
	if len(classes) == 0 {
		return nil, errors.New("no MachineClass carries the label: is this the cluster with its Machines? If the classes were deleted, name the credentials with --secret or -f, or --project-id, --region and --service-account-key-path")
	}
	accounts, problems := o.AccountsOf(ctx, classes)
	return accounts, errors.Join(problems...)
}

// factsOf reads the Nodes of the target cluster, if one is named.
func (c *Plan) factsOf(ctx context.Context, machines []v1alpha1.Machine) (*facts, error) {
	known := &facts{owners: account.NewOwners(machines)}
	if c.access.Target == nil {
		return known, nil
	}
	nodes, err := c.access.Nodes(ctx)
	known.nodes = nodes
	return known, err
}

// servers lists the cluster's servers in each project and region.
func (c *Plan) servers(ctx context.Context, accounts []*account.Account) ([]located, error) {
	var all []located
	for _, at := range accounts {
		same := slices.IndexFunc(c.Places, func(known *Place) bool {
			return known.at.Session.ProjectID == at.Session.ProjectID && known.Region == at.Region
		})
		if same >= 0 { // with another key
			c.Places[same].classes = append(c.Places[same].classes, at.Classes...)
			continue
		}
		place := &Place{ProjectID: at.Session.ProjectID, Region: at.Region, at: at, classes: slices.Clone(at.Classes)}
		c.Places = append(c.Places, place)
		servers, err := at.Servers(ctx, c.options.labels())
		if err != nil {
			return nil, at.Failure(err)
		}
		for _, server := range servers {
			if account.Carries(server.Labels, c.options.labels()) { // the API's selection is not relied on
				all = append(all, located{server, place})
			}
		}
	}
	return all, nil
}

// checkEmpty fails where no server was listed, but there should be some: nobody carries the
// label, which may be mistyped, or a Machine names a server with it. An API is known to show
// an empty project for some seconds.
func (c *Plan) checkEmpty(ctx context.Context, servers []located, own []*v1alpha1.MachineClass, machines []v1alpha1.Machine) error {
	if len(servers) == 0 && len(own) == 0 {
		return fmt.Errorf("neither a MachineClass nor a server carries %s (looked at: %s): is it written as on the servers?",
			c.options.label(), report.Some(c.Looked()))
	}
	for _, place := range c.Places {
		if slices.ContainsFunc(servers, func(server located) bool { return server.in == place }) {
			continue
		}
		classes := place.classes
		if len(classes) == 0 {
			classes = own
		}
		if err := c.checkEmptyPlace(ctx, place, classes, machines); err != nil {
			return err
		}
	}
	return nil
}

// mostNamed is how many servers that Machines name are read where a list is empty.
const mostNamed = 3

// checkEmptyPlace reads some of the servers that Machines of the classes name in a place.
func (c *Plan) checkEmptyPlace(ctx context.Context, place *Place, classes []*v1alpha1.MachineClass, machines []v1alpha1.Machine) error {
	read := 0
	for i := range machines {
		machine := &machines[i]
		id, err := providerid.Parse(machine.Spec.ProviderID, place.ProjectID)
		if err != nil || read == mostNamed || !slices.ContainsFunc(classes, func(class *v1alpha1.MachineClass) bool {
			return class.Name == machine.Spec.Class.Name && class.Namespace == machine.Namespace
		}) {
			continue
		}
		read++
		server, err := place.at.Server(ctx, id)
		switch {
		case provider.IsNotFound(err):
		case err != nil:
			return place.at.Failure(err)
		case account.Carries(server.Labels, c.options.labels()):
			return fmt.Errorf("the list of servers with %s in %v is empty, but server %s, which Machine %s/%s names, is there: run this again",
				c.options.label(), place, id, machine.Namespace, machine.Name)
		}
	}
	return nil
}

// Looked says where was looked, with whose credentials, and how many of the cluster's servers
// are there.
func (c *Plan) Looked() (all []string) {
	for _, place := range c.Places {
		all = append(all, fmt.Sprintf("%v, %s, by %s", place, report.Count(place.Servers, "server"), place.at.Origin))
	}
	return all
}

// sort puts the servers among the orphans or the kept, and counts them by place.
func (c *Plan) sort(servers []located, known *facts) {
	slices.SortFunc(servers, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Labels[provider.StackitMachineClassLabel], b.Labels[provider.StackitMachineClassLabel]),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, server := range servers {
		c.count(&server, known)
		if kept := c.keeps(&server.Server, known); kept != nil {
			kept.ProjectID, kept.Region = server.in.ProjectID, server.in.Region
			c.Kept = append(c.Kept, *kept)
			continue
		}
		c.Orphans = append(c.Orphans, Orphan{
			ID: server.ID, Name: server.Name, State: server.Status, CreatedAt: server.CreatedAt,
			Class: server.Labels[provider.StackitMachineClassLabel], Machine: server.Labels[provider.StackitMachineLabel],
			ProjectID: server.in.ProjectID, Region: server.in.Region, server: server.Server, in: server.in,
		})
	}
	for _, id := range c.options.ServerIDs {
		if !slices.ContainsFunc(servers, func(server located) bool { return server.ID == id }) {
			c.Kept = append(c.Kept, Kept{ID: id, Reason: fmt.Sprintf("it is no server with the label %s", c.options.label())})
		}
	}
}

// Recheck makes the plan again, as after a question that somebody has thought about: it fails
// if the deletion of an orphan now takes more than the user says.
func (c *Plan) Recheck(ctx context.Context, says Consent) error {
	again, err := Make(ctx, c.access, c.options)
	if err != nil {
		return err
	}
	again.Allow(says)
	for _, kept := range again.Kept {
		if kept.Needs > says && slices.ContainsFunc(c.Orphans, func(orphan Orphan) bool { return orphan.ID == kept.ID }) {
			return fmt.Errorf("server %s must not be deleted any more as it was said: %s; run this again", kept.ID, kept.Reason)
		}
	}
	return nil
}

// Allow leaves only those orphans to be deleted for which it is enough what the user says.
// The others are withheld.
func (c *Plan) Allow(says Consent) {
	c.Orphans = slices.DeleteFunc(c.Orphans, func(orphan Orphan) bool {
		needs, reason := orphan.needs()
		if needs <= says {
			return false
		}
		c.Kept = append(c.Kept, Kept{
			ID: orphan.ID, Name: orphan.Name, ProjectID: orphan.ProjectID, Region: orphan.Region,
			Reason: reason, Withheld: !orphan.server.IsDeleting(), Needs: needs,
		})
		return true
	})
}

// Needs returns the most that any orphan needs.
func (c *Plan) Needs() Consent {
	most := Flag
	for i := range c.Orphans {
		needs, _ := c.Orphans[i].needs()
		most = max(most, needs)
	}
	return most
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

const subjectOpenStack = "from OpenStack"

// examineOpenStack tells of the Machines that came from OpenStack, and of the NICs and volumes
// that Gardener's OpenStack provider made and that nobody deletes with a server: those with the
// name of such a Machine, and those of a cluster here that no Machine is named like. It only
// informs: nothing of it is an order to delete.
func (d *Doctor) examineOpenStack(ctx context.Context) {
	if d.owners == nil {
		return
	}
	var came []string
	for i := range d.machines {
		if machine := &d.machines[i]; provider.CameFromOpenStack(machine) {
			came = append(came, machine.Namespace+"/"+machine.Name)
		}
	}
	if len(came) > 0 {
		d.hint(subjectOpenStack, fmt.Sprintf("%s: %s", report.Count(len(came), "Machine"), report.Some(came)),
			"\"mcm-stackit list machines\" shows their servers; \"mcm-stackit label\" labels those that have a ProviderID of the driver's form; to delete them the service account needs more permissions (pkg/provider/apis/README.md)")
	}
	d.looking("NICs and volumes from OpenStack")
	defer func() { d.place = place{} }()
	known := d.openStack(ctx)
	for _, in := range d.accounts {
		if _, read := d.servers[in]; !read {
			continue
		}
		d.place = d.placeOf(in)
		found, err := attachables(ctx, in)
		switch {
		case isRefused(err) && len(came) == 0:
			continue // nobody needs it, and the reads above say that it is refused
		case isRefused(err):
			d.wrong(subjectOpenStack, "their NICs and volumes: "+report.OneLine(in.Failure(err).Error()), "give the service account the permissions for them (pkg/provider/apis/README.md): no such Machine can be deleted without")
			continue
		case err != nil:
			d.unknown(subjectOpenStack, "their NICs and volumes: "+report.OneLine(in.Failure(err).Error()), "")
			continue
		}
		d.sortAttachables(known.At(in, d.servers[in]), found)
	}
}

func attachables(ctx context.Context, in *account.Account) ([]account.Attachable, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return in.Attachables(ctx)
}

// openStack is what Machines, classes and MachineDeployments tell: the last say which names
// Machines here have had, and are not needed for the rest.
func (d *Doctor) openStack(ctx context.Context) *account.OpenStack {
	classes := make([]*account.Class, len(d.classes))
	for i := range d.classes {
		classes[i] = &d.classes[i]
	}
	deployments, err := d.MachineDeployments(ctx, d.Namespace)
	if err != nil {
		d.unread("MachineDeployments", err)
	}
	return account.NewOpenStack(d.machines, classes, deployments, d.accounts)
}

// sortAttachables reports what was found in an account: what is a Machine's, or nobody's.
func (d *Doctor) sortAttachables(known *account.OpenStackPlace, found []account.Attachable) {
	var own, leftOver []string
	for i := range found {
		one := &found[i]
		text := fmt.Sprintf("%s %s (%s)", one.Kind, one.Name, one.ID)
		switch {
		case known.MachineOf(one) != nil:
			own = append(own, text)
		case known.IsLeftOver(one):
			leftOver = append(leftOver, text)
		}
	}
	if len(own) > 0 {
		d.hint(subjectOpenStack, "NICs and volumes with their names: "+report.Some(own), "nothing: the driver deletes them with their Machines")
	}
	if len(leftOver) > 0 {
		d.hint(subjectOpenStack, "NICs and volumes of a cluster here by their labels or names, of no server and no Machine: "+report.Some(leftOver),
			"nobody deletes them: look whose each is; \"mcm-stackit list openstack\" shows all")
	}
}

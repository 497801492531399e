// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
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
	byName := map[string]*v1alpha1.Machine{}
	for i := range d.machines {
		machine := &d.machines[i]
		byName[machine.Name] = machine
		if provider.CameFromOpenStack(machine) {
			came = append(came, machine.Namespace+"/"+machine.Name)
		}
	}
	if len(came) > 0 {
		d.hint(subjectOpenStack, fmt.Sprintf("%s: %s", finding.Count(len(came), "Machine"), finding.Some(came)),
			"\"mcm-stackit list machines\" shows their servers; \"mcm-stackit label\" labels those that have a ProviderID of the driver's form; to delete them the service account needs more permissions (pkg/provider/apis/README.md)")
	}
	d.looking("NICs and volumes from OpenStack")
	defer func() { d.place = place{} }()
	for _, in := range d.accounts {
		if _, read := d.servers[in]; !read {
			continue
		}
		d.place = d.placeOf(in)
		found, err := d.attachables(ctx, in)
		if err != nil {
			d.unknown(subjectOpenStack, "their NICs and volumes: "+finding.OneLine(in.Failure(err).Error()), "")
			continue
		}
		d.sortAttachables(in, found, byName)
	}
}

// sortAttachables reports what was found in an account: what is a Machine's, or nobody's.
func (d *Doctor) sortAttachables(in *account.Account, found []*attachable, machines map[string]*v1alpha1.Machine) {
	var own, leftOver []string
	for _, one := range found {
		machine := machines[one.name]
		switch {
		case machine != nil && provider.CameFromOpenStack(machine) && d.isByName(machine, one):
			own = append(own, one.text())
		case machine == nil && !one.inUse && d.isOfClusterHere(in, one):
			leftOver = append(leftOver, one.text())
		}
	}
	if len(own) > 0 {
		d.hint(subjectOpenStack, "NICs and volumes with their names: "+finding.Some(own), "nothing: the driver deletes them with their Machines")
	}
	if len(leftOver) > 0 {
		d.hint(subjectOpenStack, "NICs and volumes with the label of a cluster here, of no server and no Machine's name: "+finding.Some(leftOver),
			"nobody deletes them: look whose each is")
	}
}

// attachable is a NIC or a volume.
type attachable struct {
	kind, id, name string
	inUse          bool
	labels         map[string]string
}

func (a *attachable) text() string { return fmt.Sprintf("%s %s (%s)", a.kind, a.name, a.id) }

// attachables lists the NICs and volumes of an account.
func (d *Doctor) attachables(ctx context.Context, in *account.Account) ([]*attachable, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	volumes, err := account.Read(ctx, in, provider.NewClient(in.Session, in.Region).ListVolumes)
	if err != nil {
		return nil, err
	}
	nics, err := account.Read(ctx, in, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.ListProjectNICs(ctx, in.Session, in.Region)
	})
	if err != nil {
		return nil, err
	}
	var all []*attachable
	for _, volume := range volumes {
		all = append(all, &attachable{"volume", volume.ID, volume.Name, volume.ServerID != "", volume.Labels})
	}
	for _, nic := range nics {
		all = append(all, &attachable{"NIC", nic.ID, nic.Name, nic.ServerID != "" || nic.IsNetworks(), nic.Labels})
	}
	return all, nil
}

// isByName says whether the driver takes a NIC or volume for a Machine's.
func (d *Doctor) isByName(machine *v1alpha1.Machine, one *attachable) bool {
	for i := range d.classes {
		if class := &d.classes[i]; class.Namespace == machine.Namespace && class.Name == machine.Spec.Class.Name {
			return !class.Inputs.ClusterUnknown && provider.IsByName(machine.Name, class.Inputs.ClusterLabels, one.name, one.labels, nil)
		}
	}
	return false
}

// isOfClusterHere says whether a NIC or volume carries the cluster label of a class of the account: its
// name alone would prove nothing.
func (d *Doctor) isOfClusterHere(in *account.Account, one *attachable) bool {
	for i := range d.classes {
		class := &d.classes[i]
		if class.Inputs.Secret.ProjectID == in.Session.ProjectID && account.Carries(one.labels, class.Inputs.ClusterLabels) {
			return true
		}
	}
	return false
}

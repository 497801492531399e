// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// The kinds of an Attachable.
const (
	KindNIC    = "NIC"
	KindVolume = "volume"
)

// Attachable is a NIC or a boot volume: Gardener's OpenStack provider makes them for a Machine,
// with its name, and the cloud does not delete them with the server.
type Attachable struct {
	// Kind is KindNIC or KindVolume.
	Kind     string
	ID, Name string
	// NetworkID is a NIC's.
	NetworkID string
	// ServerID is the server that has it; "" for none.
	ServerID string
	Labels   map[string]string
}

// Attachables lists the NICs of the account, without the networks' own, and the volumes from which a
// server may boot.
func (a *Account) Attachables(ctx context.Context) ([]Attachable, error) {
	volumes, err := Read(ctx, a, provider.NewClient(a.Session, a.Region).ListVolumes)
	if err != nil {
		return nil, err
	}
	nics, err := Read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.ListProjectNICs(ctx, a.Session, a.Region)
	})
	if err != nil {
		return nil, err
	}
	var all []Attachable
	for i := range volumes {
		if volume := &volumes[i]; volume.MayBoot() {
			all = append(all, Attachable{Kind: KindVolume, ID: volume.ID, Name: volume.Name, ServerID: volume.ServerID, Labels: volume.Labels})
		}
	}
	for i := range nics {
		if nic := &nics[i]; !nic.IsNetworks() {
			all = append(all, Attachable{Kind: KindNIC, ID: nic.ID, Name: nic.Name, NetworkID: nic.NetworkID, ServerID: nic.ServerID, Labels: nic.Labels})
		}
	}
	return all, nil
}

// OpenStack is what a control cluster knows of Machines that came from OpenStack.
type OpenStack struct {
	machines    map[string][]*v1alpha1.Machine
	classes     []*Class
	deployments []v1alpha1.MachineDeployment
	accounts    []*Account
}

// NewOpenStack returns what is known by the Machines, classes and MachineDeployments, as far as
// they may be read. The accounts say where classes have their servers.
func NewOpenStack(machines []v1alpha1.Machine, classes []*Class, deployments []v1alpha1.MachineDeployment, accounts []*Account) *OpenStack {
	known := &OpenStack{machines: map[string][]*v1alpha1.Machine{}, classes: classes, deployments: deployments, accounts: accounts}
	for i := range machines {
		known.machines[machines[i].Name] = append(known.machines[machines[i].Name], &machines[i])
	}
	return known
}

// OpenStackPlace classifies the NICs and volumes of a project and region.
type OpenStackPlace struct {
	*OpenStack

	at *Account
	// names are those of the servers there, by ID, as far as they were read.
	names map[string]string
}

// At returns what is known of the account's project and region, with the servers there.
func (o *OpenStack) At(at *Account, servers []provider.Server) *OpenStackPlace {
	names := map[string]string{}
	for i := range servers {
		names[servers[i].ID] = servers[i].Name
	}
	return &OpenStackPlace{o, at, names}
}

// MachineOf returns the Machine from OpenStack with which the driver deletes a NIC or volume;
// nil if there is none.
func (o *OpenStackPlace) MachineOf(one *Attachable) *v1alpha1.Machine {
	for _, machine := range o.machines[one.Name] {
		class := o.classOf(machine)
		if provider.CameFromOpenStack(machine) && class != nil && !class.Inputs.ClusterUnknown &&
			o.mayBeHere(class.Namespace, class.Name) && one.isInNetworkOf(class) && !o.isElsewhere(one, machine) &&
			provider.IsByName(machine.Name, class.Inputs.Spec.Labels, one.Name, one.Labels, nil) {
			return machine
		}
	}
	return nil
}

// mayBeHere says whether a class has its servers here, as far as that is known: it is not of
// accounts that the user named, and of classes of other namespaces.
func (o *OpenStackPlace) mayBeHere(namespace, class string) bool {
	known := false
	for _, account := range o.accounts {
		if !slices.ContainsFunc(account.Classes, func(c *v1alpha1.MachineClass) bool { return c.Namespace == namespace && c.Name == class }) {
			continue
		}
		if account.Session.ProjectID == o.at.Session.ProjectID && account.Region == o.at.Region {
			return true
		}
		known = true
	}
	return !known
}

// isInNetworkOf says whether it may be in the class's network: the Secret may name that, too, and
// need not have been read.
func (a *Attachable) isInNetworkOf(class *Class) bool {
	networking := class.Inputs.Spec.Networking
	return a.Kind == KindVolume || networking == nil || a.NetworkID == networking.NetworkID
}

// isElsewhere says whether a server has it that is not known to be the Machine's: by the
// ProviderID or, without one, by the server's name.
func (o *OpenStackPlace) isElsewhere(one *Attachable, machine *v1alpha1.Machine) bool {
	if one.ServerID == "" {
		return false
	}
	if machine.Spec.ProviderID != "" {
		return !strings.HasSuffix(machine.Spec.ProviderID, "/"+one.ServerID)
	}
	name, read := o.names[one.ServerID]
	return !read || name != machine.Name
}

func (o *OpenStack) classOf(machine *v1alpha1.Machine) *Class {
	at := slices.IndexFunc(o.classes, func(class *Class) bool {
		return class.Namespace == machine.Namespace && class.Name == machine.Spec.Class.Name
	})
	if at < 0 {
		return nil
	}
	return o.classes[at]
}

// IsLeftOver says whether a NIC or volume seems to be of a cluster here and of nobody: no server
// has it, no Machine its name, no class names it, and its labels name the cluster of a class, or
// its name is one of a Machine of a MachineDeployment. Nobody deletes it, and nothing proves that
// somebody may.
func (o *OpenStackPlace) IsLeftOver(one *Attachable) bool {
	if one.ServerID != "" || o.isMachine(one.Name) || o.isMachine(one.Labels[provider.StackitMachineLabel]) {
		return false
	}
	isOfCluster := func(class *Class) bool {
		labels := class.Inputs.ClusterLabels
		return !class.Inputs.ClusterUnknown && !provider.IsOfAnotherCluster(labels, one.Labels) &&
			(Carries(one.Labels, labels) || provider.HasClusterTag(one.Labels, labels) || o.isNamedForMachineOf(class, one.Name))
	}
	isNamed := func(class *Class) bool { return class.names(one.ID) }
	return slices.ContainsFunc(o.classes, isOfCluster) && !slices.ContainsFunc(o.classes, isNamed)
}

// isMachine says whether a Machine that may have its server here is called so.
func (o *OpenStackPlace) isMachine(name string) bool {
	return slices.ContainsFunc(o.machines[name], func(machine *v1alpha1.Machine) bool {
		id := machine.Spec.ProviderID
		_, hasServer := o.names[id[strings.LastIndex(id, "/")+1:]]
		return hasServer || o.mayBeHere(machine.Namespace, machine.Spec.Class.Name)
	})
}

// isNamedForMachineOf says whether a name is one of a Machine that a MachineDeployment would make
// of this class, here.
func (o *OpenStackPlace) isNamedForMachineOf(class *Class, name string) bool {
	return slices.ContainsFunc(o.deployments, func(deployment v1alpha1.MachineDeployment) bool {
		rest, begins := strings.CutPrefix(name, deployment.Name)
		return begins && machineSuffix.MatchString(rest) && deployment.Namespace == class.Namespace &&
			deployment.Spec.Template.Spec.Class.Name == class.Name && o.mayBeHere(class.Namespace, class.Name)
	})
}

// names says whether the class names a NIC or volume that its servers are to have.
func (c *Class) names(id string) bool {
	spec := c.Inputs.Spec
	return slices.Contains(spec.Volumes, id) ||
		spec.Networking != nil && slices.Contains(spec.Networking.NICIDs, id) ||
		spec.BootVolume != nil && spec.BootVolume.Source != nil && spec.BootVolume.Source.ID == id
}

// machineSuffix is what a Machine's name has after its MachineDeployment's: the decimal digits of
// the template's hash, each as another letter or digit (v0.62.1 deployment_sync.go:301,
// k8s.io/apimachinery rand.SafeEncodeString), and five of the letters and digits of that package.
var machineSuffix = regexp.MustCompile(`^-[bcdf456789]{1,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

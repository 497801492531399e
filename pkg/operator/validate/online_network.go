// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// detachFirst says why a thing that exists already must be free.
const detachFirst = "detach it: a NIC or volume of a class serves one machine at a time"

func (k *onlineCheck) checkNetworking(ctx context.Context) {
	if k.spec.Networking == nil || !k.accepts("networking") {
		return
	}
	if id := k.spec.Networking.NetworkID; id != "" && validation.IsUUID(id) {
		named(ctx, k, "networking.networkId", account.Network, id)
	}
	for i, id := range k.spec.Networking.NICIDs {
		path := fmt.Sprintf("networking.nicIds[%d]", i)
		if nic, found := named(ctx, k, path, account.NIC, id); found && nic.GetDevice() != "" {
			k.checkOwner(ctx, path, "NIC "+id, nic.GetDevice())
		}
	}
}

func (k *onlineCheck) checkVolumes(ctx context.Context) {
	for i, id := range k.spec.Volumes {
		if path := fmt.Sprintf("volumes[%d]", i); k.accepts(path) {
			k.checkVolume(ctx, path, id)
		}
	}
}

// checkVolume asks for a volume that exists already.
func (k *onlineCheck) checkVolume(ctx context.Context, path, id string) {
	volume, found := named(ctx, k, path, account.Volume, id)
	if !found {
		return
	}
	if volume.GetServerId() != "" {
		k.checkOwner(ctx, path, "volume "+id, volume.GetServerId())
		return
	}
	k.isAvailable(path, "volume "+id, volume.GetStatus())
}

// checkOwner reports a thing that is attached to a server of others than this class.
func (k *onlineCheck) checkOwner(ctx context.Context, path, thing, serverID string) {
	path = "providerSpec." + path
	server, err := ask(ctx, k.catalogue, account.Server, serverID)
	switch {
	case err != nil && !provider.IsNotFound(err):
		k.failed(path, thing+" is attached to server "+serverID+", which", account.Server.Permission, err)
	case err == nil && k.owns(server):
		k.fine(k.object, path, fmt.Sprintf("%s is attached to server %s of this class", thing, serverID))
	default:
		k.wrong(k.object, path, fmt.Sprintf("%s is attached to server %s, which is none of this class's", thing, serverID), detachFirst)
	}
}

// owns says whether the driver would find a server as that of a Machine of this class.
func (k *onlineCheck) owns(server *provider.Server) bool {
	return server.Labels[provider.StackitMachineClassLabel] == k.name &&
		provider.FoundByName(server.Labels[provider.StackitMachineLabel], k.name, k.spec.Labels, server)
}

// checkSecurityGroups asks for UUIDs singly, for names by one list.
func (k *onlineCheck) checkSecurityGroups(ctx context.Context) {
	for i, group := range k.spec.SecurityGroups {
		path := fmt.Sprintf("securityGroups[%d]", i)
		switch {
		case !k.accepts(path):
		case validation.IsUUID(group):
			named(ctx, k, path, account.SecurityGroup, group)
		default:
			k.checkSecurityGroupName(ctx, path, group)
		}
	}
}

func (k *onlineCheck) checkSecurityGroupName(ctx context.Context, path, name string) {
	list, err := ask(ctx, k.catalogue, account.SecurityGroups, "")
	if err != nil {
		k.failed("providerSpec."+path, "security group "+name, account.SecurityGroups.Permission, err)
		return
	}
	var names []string
	count := 0
	for _, group := range list.GetItems() {
		names = append(names, group.Name)
		if group.Name == name {
			count++
		}
	}
	path = "providerSpec." + path
	switch count {
	case 0:
		k.wrong(k.object, path, "security group "+name+" is not there", k.didYouMean(name, names))
	case 1:
		k.fine(k.object, path, "security group "+name+" is there")
	default:
		k.unknown(k.object, path, fmt.Sprintf("%d security groups are called %s: which one is used cannot be told", count, name), "name it by its UUID")
	}
}

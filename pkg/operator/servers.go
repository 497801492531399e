// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// read makes one read of the API, when its turn comes among the session's reads.
func read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := spi.WaitForRead(ctx, clock.RealClock{}, account.Session.Reads); err != nil {
		var none T
		return none, err
	}
	return call(ctx)
}

// servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// machines lists the Machines of the namespaces; of all namespaces if none is named.
func (o *Operator) machines(ctx context.Context, namespaces ...string) ([]v1alpha1.Machine, error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []v1alpha1.Machine
	for _, namespace := range namespaces {
		var list v1alpha1.MachineList
		if err := o.Control.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing Machines: %w", err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// names says whether a Machine is about a server: by its ProviderID, or by its name on the
// server's label. A ProviderID that cannot be read names nothing.
func names(machine *v1alpha1.Machine, server *provider.Server, projectID string) bool {
	if id, err := providerid.Parse(machine.Spec.ProviderID, projectID); err == nil && id == server.ID {
		return true
	}
	return server.Labels[provider.StackitMachineLabel] == machine.Name
}

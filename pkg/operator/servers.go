// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
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

// names says whether a Machine is about a server: by its ProviderID, of whatever form, or by
// its name on the server's label.
func names(machine *v1alpha1.Machine, server *provider.Server) bool {
	return slices.Contains(idsIn(machine.Spec.ProviderID), server.ID) ||
		server.Labels[provider.StackitMachineLabel] == machine.Name
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// idsIn returns the IDs in a ProviderID, among them the server's, also where the driver would
// refuse the form: who looks for servers that nobody needs must not overlook one.
func idsIn(providerID string) []string {
	return uuid.FindAllString(strings.ToLower(providerID), -1)
}

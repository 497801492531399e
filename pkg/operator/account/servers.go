// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Read makes one read of the API, when its turn comes among the session's reads. The read
// timeout begins then.
func Read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := spi.WaitForRead(ctx, clock.RealClock{}, account.Session.Reads); err != nil {
		var none T
		return none, err
	}
	if account.readTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, account.readTimeout)
		defer cancel()
	}
	return call(ctx)
}

// Servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) Servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// Server reads one of the account's servers.
func (a *Account) Server(ctx context.Context, id string) (*provider.Server, error) {
	return Read(ctx, a, func(ctx context.Context) (*provider.Server, error) { return a.server(ctx, id) })
}

// Failure is a failed call of the API as the manager would be told of it.
func (a *Account) Failure(err error) error {
	code, text := provider.Classify(err)
	return fmt.Errorf("%s: %v: %s", a.Origin, code, text)
}

// Addresses reads the addresses of all servers of the account's project and region.
func (a *Account) Addresses(ctx context.Context) (map[string][]string, error) {
	nics, err := Read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.ListProjectNICs(ctx, a.Session, a.Region)
	})
	if err != nil {
		return nil, err
	}
	byServer := map[string][]string{}
	for i := range nics {
		if server := nics[i].ServerID; server != "" {
			byServer[server] = append(byServer[server], nics[i].Addresses()...)
		}
	}
	return byServer, nil
}

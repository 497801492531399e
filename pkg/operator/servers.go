// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// read makes one read of the API, when its turn comes among the session's reads. The read
// timeout begins then.
func read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
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

// servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// server reads one of the account's servers.
func (a *Account) server(ctx context.Context, id string) (*provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return read(ctx, a, func(ctx context.Context) (*provider.Server, error) { return client.GetServer(ctx, id) })
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Read makes one read of the API, when its turn comes among the session's reads. The request
// timeout begins then.
func Read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := spi.WaitForRead(ctx, clock.RealClock{}, account.Session.Reads); err != nil {
		var none T
		return none, err
	}
	if account.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, account.timeout)
		defer cancel()
	}
	return call(ctx)
}

// Ask makes a read that the driver's client does not have, or whose answer is looked at; response is
// nil if there was none. what names it in errors, which are as those of the driver's client.
func Ask[T any](ctx context.Context, account *Account, what string, call func(context.Context) (T, error)) (value T, response *http.Response, err error) {
	value, err = Read(runtime.WithCaptureHTTPResponse(ctx, &response), account, call)
	if err != nil {
		err = provider.NewAPIError("reading "+what, response, err)
	}
	return value, response, err
}

// Status is that of the API's answer to a call that failed; 0 without one.
func Status(err error) int {
	var api *provider.APIError
	if !errors.As(err, &api) {
		return 0
	}
	return api.StatusCode
}

// Servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) Servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// Server reads one of the account's servers.
func (a *Account) Server(ctx context.Context, id string) (*provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) (*provider.Server, error) { return client.GetServer(ctx, id) })
}

// ServerNICs lists the NICs of one of the account's servers.
func (a *Account) ServerNICs(ctx context.Context, id string) ([]provider.NIC, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) { return client.ListServerNICs(ctx, id) })
}

// Failure is a failed call of the API as the manager would be told of it.
func (a *Account) Failure(err error) error {
	_, text := provider.Classify(err)
	return fmt.Errorf("%s: %s", a.Origin, text)
}

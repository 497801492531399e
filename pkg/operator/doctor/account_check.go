// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// readTimeout is how long a read of the API may take, retries included.
	readTimeout = 20 * time.Second
	// keyExpiresSoon is how long before its end a key is worth replacing.
	keyExpiresSoon = 14 * 24 * time.Hour
	// Access tokens are asked for with the local time, and the driver allows the API
	// server's clock and its own to differ by 10 s.
	clockHint, clockWrong = 5 * time.Second, 30 * time.Second
)

// accountCheck is one account that the Doctor looks at.
type accountCheck struct {
	*Doctor
	*account.Account
	// refused are the reads of the project that were refused, as long as no other was
	// answered.
	refused  []refusal
	answered bool
}

// refusal is a read that was refused.
type refusal struct {
	account.Need
	subject string
	err     error
}

// timedAnswer is what became of a read of the API.
type timedAnswer struct {
	err error
	// date is the clock of who answered, the zero time without an answer; the read lasted
	// from start to end.
	date, start, end time.Time
}

func askTimed[T any](ctx context.Context, p *accountCheck, read account.APIRead[T], id string) (result T, got timedAnswer) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var response *http.Response
	result, got.err = account.Read(runtime.WithCaptureHTTPResponse(ctx, &response), p.Account, func(ctx context.Context) (T, error) {
		got.start = p.Now()
		return read.Call(p.Account, ctx, id)
	})
	got.end = p.Now()
	if response != nil {
		got.date = spi.Date(response.Header)
	}
	if got.err == nil {
		return result, got
	}
	if failure := tokenFailure(got.err); failure != nil {
		got.date = failure.Date
	}
	got.err = provider.NewAPIError(read.Doing(id), response, got.err)
	return result, got
}

// statusOf is the status code of the API's answer; 0 without one.
func statusOf(err error) int {
	var api *provider.APIError
	if errors.As(err, &api) {
		return api.StatusCode
	}
	return 0
}

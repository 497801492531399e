// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// catalogue is what the API has in an account. Each thing is read once, however many classes
// name it.
type catalogue struct {
	account *account.Account
	// progress is told what is being read.
	progress func(text string)
	answers  map[string]answer
	// outage is the error after which nothing more is asked: the API cannot be reached, or
	// refuses the credentials.
	outage error
}

// answer is the API's to a call.
type answer struct {
	value any
	err   error
}

// readTimeout is how long a read may take, with its retries.
const readTimeout = time.Minute

var errNoAnswer = errors.New("the answer is empty")

// ask makes a read of a thing, or of a list without an id, unless it was made before. An
// error is an *APIError.
func ask[T any](ctx context.Context, c *catalogue, read account.APIRead[*T], id string) (*T, error) {
	what := read.Doing(id)
	if known, ok := c.answers[what]; ok {
		value, _ := known.value.(*T)
		return value, known.err
	}
	if c.outage != nil {
		return nil, c.outage
	}
	c.progress(what)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	value, err := read.Of(ctx, c.account, id)
	if err == nil && value == nil {
		err = errNoAnswer
	}
	var api *provider.APIError
	if err != nil && !errors.As(err, &api) {
		err = provider.NewAPIError(what, nil, err)
	}
	if errors.As(err, &api) && isOutage(api) {
		c.outage = err
	}
	c.answers[what] = answer{value, err}
	return value, err
}

// isOutage says whether the next call would fail, too: no answer came, or no call is allowed
// to these credentials. An answer that cannot be read is about its call alone.
func isOutage(err *provider.APIError) bool {
	var request *url.Error
	code, _ := provider.Classify(err)
	return errors.As(err, &request) || code == codes.Unauthenticated || code == codes.Aborted || code == codes.DeadlineExceeded
}

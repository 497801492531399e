// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestGuard(t *testing.T) {
	const attempts = 3 // of which the first two are answered 503
	for name, refused := range map[string]int{"lets all attempts pass": 0, "refuses the first": 1, "refuses a repeated one": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newVirtualRig(t)
				session := r.session()
				r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusServiceUnavailable, Count: attempts - 1})
				stranger := errors.New("somebody else's")
				asked := 0
				ctx, stop := WithGuard(t.Context(), func(ctx context.Context) error {
					asked++
					if sent := r.cloud.CallCounts()["DeleteServer"]; sent != asked-1 {
						t.Errorf("asked for the %d. time after %d attempts", asked, sent)
					}
					if err := list(ctx, session); err != nil {
						t.Errorf("reading: %v", err)
					}
					if asked == refused {
						return stranger
					}
					return nil
				})
				defer stop()

				if err := list(ctx, session); err != nil || asked > 0 {
					t.Errorf("a read: %v, asked %d times", err, asked)
				}
				_ = session.API.DeleteServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, testServer).Execute()
				sent := r.cloud.CallCounts()["DeleteServer"]
				if refused == 0 {
					if sent != attempts || asked != attempts || ctx.Err() != nil {
						t.Errorf("%d attempts, asked %d times, the context: %v", sent, asked, ctx.Err())
					}
					return
				}
				if sent != refused-1 || asked != refused || !errors.Is(context.Cause(ctx), stranger) {
					t.Errorf("%d attempts, asked %d times, the context's cause: %v", sent, asked, context.Cause(ctx))
				}
			})
		})
	}
}

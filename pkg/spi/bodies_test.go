// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLargeBodiesWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := &PluginSPIImpl{Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}}
		take := func(project string, size int) (func(), error) {
			t.Helper()
			session, err := sessions.Session(Credentials{ProjectID: project})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return session.TakeBody(ctx, size)
		}
		mustTake := func(project string, size int) func() {
			t.Helper()
			done, err := take(project, size)
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		start := time.Now()
		done := mustTake("a", 100*maxBodies) // one that is larger than all may be passes, alone
		mustTake("a", smallBody)
		if time.Since(start) > 0 {
			t.Error("the first ones waited")
		}
		_, err := take("b", smallBody+1)
		var notSent *NotSentError
		if !errors.As(err, &notSent) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %s, want a NotSentError at the deadline", err, time.Since(start))
		}
		time.AfterFunc(time.Second, done)
		for range maxBodies / bodyCopies / (1 << 20) {
			defer mustTake("b", 1<<20)()
		}
		if waited := time.Since(start); waited != time.Minute+time.Second {
			t.Errorf("they waited until %s, want until the first one was done", waited)
		}
		if _, err := take("b", 1<<20); err == nil {
			t.Error("one too many passes")
		}
	})
}

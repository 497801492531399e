// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const readTakes = 3 * time.Second

// slowReads takes a list for every reader; a list and a single read take a while.
func slowReads(list func(context.Context) (string, error)) *reads[string, string] {
	return newReads[string, string](clock.RealClock{}, 0, rate.NewLimiter(rate.Inf, 1), list)
}

func slowly(ctx context.Context) (string, error) {
	select {
	case <-time.After(readTakes):
		return "listed", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func anyQuestion() *question[string, string] {
	return &question[string, string]{
		single: func(ctx context.Context) (string, error) { _, err := slowly(ctx); return "read alone", err },
		find:   func(list string) (string, bool) { return list, true },
	}
}

// What was true when the read began is all that an answer tells.
func TestAnAnswerTellsWhenItsReadBegan(t *testing.T) {
	for name, few := range map[string]int{"by a list": 0, "alone": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := slowReads(slowly)
				r.schedule.few = few
				asked := time.Now()
				answer := r.ask(t.Context(), anyQuestion())
				if answer.err != nil || !answer.began.Equal(asked) {
					t.Errorf("%+v, want a read that began %s ago", answer, readTakes)
				}
			})
		})
	}
}

func TestAListThatNobodyWaitsForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		ended := make(chan time.Time, 1)
		r := slowReads(func(ctx context.Context) (string, error) {
			if lists++; lists > 1 {
				return slowly(ctx)
			}
			<-ctx.Done()
			ended <- time.Now()
			return "", ctx.Err()
		})
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		long, cancelLong := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelLong()
		go r.ask(short, anyQuestion())
		if answer := r.ask(long, anyQuestion()); answer.err == nil {
			t.Errorf("%+v of a list that ended", answer)
		}
		if after := (<-ended).Sub(start); after != 2*time.Second {
			t.Errorf("the list ended after %s, want when the last reader left", after)
		}
		if answer := r.ask(t.Context(), anyQuestion()); answer.err != nil {
			t.Errorf("the next reader is told %v", answer.err)
		}
	})
}

func TestAListThatPanicsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := slowReads(func(context.Context) (string, error) { panic("s3cr3t") })
		if answer := r.ask(t.Context(), anyQuestion()); answer.value != "read alone" {
			t.Errorf("%+v, want what a read of its own tells", answer)
		}
		_, err := r.listSafely(t.Context())
		if code, text := judge(err); code != codes.Internal || strings.Contains(text, "s3cr3t") {
			t.Errorf("%s: %s", code, text)
		}
	})
}

// Where the API itself is out of order, nobody tries alone.
func TestWhatAFailedListSaysOfSingleReads(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"a server that cannot be decoded": {&APIError{Err: fmt.Errorf("%w: invalid JSON", errUnreadable)}, true},
		"lists are forbidden":             {&APIError{StatusCode: http.StatusForbidden}, true},
		"the network is not there":        {&APIError{StatusCode: http.StatusNotFound}, true},
		"a panic":                         {newError(codes.Internal, "..."), true},
		"refused credentials":             {&APIError{StatusCode: http.StatusUnauthorized}, false},
		"too many requests":               {&APIError{StatusCode: http.StatusTooManyRequests}, false},
		"out of order":                    {&APIError{StatusCode: http.StatusServiceUnavailable}, false},
		"not to be reached":               {&APIError{Err: io.ErrUnexpectedEOF}, false},
	} {
		if got := aboutListOnly(row.err); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

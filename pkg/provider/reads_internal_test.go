// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

// Look-ups do without lists of the project only once these have failed for ten minutes on end.
func TestWhenListsOfTheProjectFailForLong(t *testing.T) {
	tooLarge := &APIError{Call: callListServers, StatusCode: http.StatusRequestEntityTooLarge}
	tooMany := &APIError{Call: callListServers, StatusCode: http.StatusTooManyRequests}
	tooSlow := &APIError{Call: callListServers, Err: context.DeadlineExceeded}
	errLeft := fmt.Errorf("waiting for a read: %w", context.Canceled)
	left, leave := context.WithCancel(t.Context())
	leave()
	refused := &APIError{Call: callListServers, StatusCode: http.StatusUnauthorized}
	type list struct {
		minute float64
		err    error
	}
	for name, row := range map[string]struct {
		lists []list
		want  bool
	}{
		"none was asked for":                {nil, false},
		"they work":                         {[]list{{0, nil}, {11, nil}}, false},
		"one failed":                        {[]list{{0, tooLarge}}, false},
		"they fail for nine minutes":        {[]list{{0, tooLarge}, {5, tooLarge}, {9, tooLarge}}, false},
		"they fail for ten minutes":         {[]list{{0, tooLarge}, {5, tooLarge}, {10, tooLarge}}, true},
		"one works in between":              {[]list{{0, tooLarge}, {5, nil}, {6, tooLarge}, {11, tooLarge}}, false},
		"one works at last":                 {[]list{{0, tooLarge}, {5, tooLarge}, {10, tooLarge}, {11, nil}}, false},
		"nobody asks in between":            {[]list{{0, tooLarge}, {10, tooLarge}}, false},
		"nobody asks in between, then some": {[]list{{0, tooLarge}, {10, tooLarge}, {15, tooLarge}, {20, tooLarge}}, true},
		"callers leave in between":          {[]list{{0, tooLarge}, {5, errLeft}, {9, tooLarge}, {10, tooLarge}}, true},
		"they take too long":                {[]list{{0, tooSlow}, {5, tooSlow}, {10, tooSlow}}, true},
		"too many calls":                    {[]list{{0, tooMany}, {5, tooMany}, {10, tooMany}}, false},
		"refused credentials":               {[]list{{0, refused}, {5, refused}, {10, refused}}, false},
		"too many calls at last":            {[]list{{0, tooLarge}, {5, tooLarge}, {10, tooMany}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(begin)
			lists := &projectLists{clock: clock}
			for _, list := range row.lists {
				clock.SetTime(at(60 * list.minute))
				ctx := t.Context()
				if errors.Is(list.err, errLeft) {
					ctx = left
				}
				lists.note(ctx, list.err)
			}
			if got := lists.failLong(); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}

// Reads run in goroutines of their own, where nothing else would keep the process from ending.
func TestAReadThatPanicsFails(t *testing.T) {
	_, err := guarded(func(context.Context) (int, error) { panic("a bug") })(t.Context())
	if err == nil || ReasonIn(err.Error()) != ReasonDriverBug {
		t.Errorf("got %v, want %s", err, ReasonDriverBug)
	}
}

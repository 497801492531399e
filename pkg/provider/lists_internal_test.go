// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

var errOutage = errors.New("503")

// scope is a lister over lists and GETs that take a time, and fail while their error is set. A test
// makes it in a bubble (testing/synctest).
type scope struct {
	*lister[Server]
	epoch time.Time
	takes time.Duration

	mu          sync.Mutex
	lists, gets script
}

// script is what reads of a kind answer, and when they began.
type script struct {
	err           error
	began         []string
	inFlight, max int
}

func newScope(t *testing.T) *scope {
	t.Helper()
	s := &scope{epoch: time.Now()}
	r := &readers{process: &process{clock: clock.RealClock{}}, turn: func(ctx context.Context) error { return ctx.Err() }}
	s.lister = newLister(r, listInterval, func(context.Context) ([]Server, error) { return nil, s.answer(&s.lists) })
	t.Cleanup(func() {
		if s.lists.max > 1 {
			t.Errorf("%d lists in flight", s.lists.max)
		}
	})
	return s
}

func (s *scope) answer(reads *script) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads.began = append(reads.began, time.Since(s.epoch).String())
	reads.inFlight++
	reads.max = max(reads.max, reads.inFlight)
	s.mu.Unlock()
	<-time.After(s.takes)
	s.mu.Lock()
	reads.inFlight--
	return reads.err
}

// from sets what reads answer from then on.
func (s *scope) from(after time.Duration, reads *script, err error) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		reads.err = err
	})
}

// poll reads as a tracked server does: from a list, or by a GET if it is told to.
func (s *scope) poll(ctx context.Context, due time.Time) error {
	all := s.next(ctx, due, ownGet)
	if all.isSingle {
		return s.single(ctx, all, ownGet, func(context.Context) error { return s.answer(&s.gets) })
	}
	return all.err
}

// wantTimes compares when reads began.
func wantTimes(t *testing.T, reads *script, want string) {
	t.Helper()
	synctest.Wait()
	if got := strings.Join(reads.began, " "); got != want {
		t.Errorf("reads began at %s, want %s", got, want)
	}
}

func TestACallerGetsAListThatBeganAfterItAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		s.takes = 2 * time.Second
		for _, after := range []time.Duration{0, time.Second, 2*time.Second - 1, 2100 * time.Millisecond} {
			time.AfterFunc(after, func() {
				asked := time.Now()
				if all := s.next(t.Context(), time.Time{}, listsOnly); all.began.Before(asked) || all.err != nil {
					t.Errorf("asked at %s, the list began at %s: %v", asked, all.began, all.err)
				}
			})
		}
		<-time.After(time.Minute)
		wantTimes(t, &s.lists, "0s 2s 4s")
		if s.running {
			t.Error("the goroutine runs though no caller waits")
		}
	})
}

func TestAListAnswersThoseThatAreNotDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		for _, after := range []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond} { // the interval is 250 ms
			time.AfterFunc(after, func() { s.next(t.Context(), time.Time{}, listsOnly) })
		}
		<-time.After(200 * time.Millisecond)
		all := s.next(t.Context(), time.Now().Add(time.Minute), listsOnly)
		if at := all.began.Sub(s.epoch); at != listInterval {
			t.Errorf("the list began at %s, want %s", at, listInterval)
		}
		s.next(t.Context(), s.epoch.Add(20*time.Second), listsOnly)
		<-time.After(time.Minute)
		wantTimes(t, &s.lists, "0s 250ms 500ms")
	})
}

func TestAListThatFailsAnswersOnlyThoseThatAreDue(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want time.Duration // until the caller that is due at 10 s is answered
	}{
		"an outage":       {errOutage, 10 * time.Second},
		"a refused token": {&APIError{StatusCode: 401}, 0},
		"too many calls":  {&APIError{StatusCode: 429}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScope(t)
				s.lists.err = row.err
				s.from(5*time.Second, &s.lists, nil)
				var later sync.WaitGroup
				later.Go(func() {
					all := s.next(t.Context(), s.epoch.Add(10*time.Second), listsOnly)
					if at := time.Since(s.epoch); at != row.want || (all.err == nil) != (row.want > 0) {
						t.Errorf("a caller that is due at 10 s is told %v at %s, want %s", all.err, at, row.want)
					}
				})
				synctest.Wait() // it waits before the list begins
				if all := s.next(t.Context(), time.Time{}, listsOnly); !errors.Is(all.err, row.err) || time.Since(s.epoch) != 0 {
					t.Errorf("a caller that is due is told %v at %s", all.err, time.Since(s.epoch))
				}
				later.Wait()
			})
		})
	}
}

func TestListsThatFailBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		for _, row := range []struct {
			lists int
			err   error
		}{{8, errOutage}, {1, nil}, {3, errOutage}} {
			s.lists.err = row.err
			for range row.lists {
				s.next(t.Context(), time.Time{}, listsOnly)
			}
		}
		wantTimes(t, &s.lists, "0s 1s 3s 7s 15s 31s 1m1s 1m31s 2m1s 2m1.25s 2m2.25s 2m4.25s")
	})
}

// Another list may work at once where a token or a limit of calls was what failed.
func TestAnErrorOfTheSessionPutsNoListOff(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		synctest.Test(t, func(t *testing.T) {
			s := newScope(t)
			s.lists.err = &APIError{StatusCode: status}
			for range 3 {
				s.next(t.Context(), time.Time{}, listsOnly)
			}
			wantTimes(t, &s.lists, "0s 250ms 500ms")
		})
	}
}

// While lists fail a few callers read by themselves at a time, and each of them gets its turn.
func TestFewGETsTakeThePlaceOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		s.lists.err, s.takes = errOutage, 100*time.Millisecond
		const callers = 2*maxSingles + 2
		for range callers {
			go func() {
				if err := s.poll(t.Context(), time.Time{}); err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
			}()
		}
		<-time.After(time.Second)
		synctest.Wait()
		if s.gets.max != maxSingles || len(s.gets.began) != callers || s.singles != 0 {
			t.Errorf("%d GETs at a time, %d in all, %d counted; want %d, %d, 0",
				s.gets.max, len(s.gets.began), s.singles, maxSingles, callers)
		}
		wantTimes(t, &s.lists, "0s")
	})
}

// If GETs fail, too, lists and GETs take turns, each later than the one before.
func TestListsAndGETsTakeTurns(t *testing.T) {
	for name, callers := range map[string]int{"a lone caller": 1, "many callers": 8} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScope(t)
				s.lists.err, s.gets.err = errOutage, errOutage
				s.fails[ownGet] = true
				ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
				defer cancel()
				for range callers {
					go func() {
						for i := 0; i < 100 && ctx.Err() == nil; i++ {
							_ = s.poll(ctx, time.Time{})
						}
					}()
				}
				<-time.After(80 * time.Second)
				wantTimes(t, &s.lists, "0s 3s 15s 1m1s")
				wantTimes(t, &s.gets, "1s 7s 31s")
			})
		})
	}
}

// A caller whose GETs fail waits for no other list after one that failed.
func TestAListThatFailsAnswersCallersWhoseGETsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		s.lists.err, s.fails[ownGet] = errOutage, true
		const due = 10 * time.Millisecond // all wait by then
		for range 3 {
			go func() {
				if all := s.next(t.Context(), s.epoch.Add(due), ownGet); !errors.Is(all.err, errOutage) ||
					time.Since(s.epoch) != due {
					t.Errorf("a caller is told %v at %s", all.err, time.Since(s.epoch))
				}
			}()
		}
		<-time.After(time.Minute)
		wantTimes(t, &s.lists, "10ms")
	})
}

// What says nothing about other GETs keeps no caller from a GET.
func TestWhichErrorsOfAGETAreThoseOfOthers(t *testing.T) {
	notFound := &APIError{Call: callGetServer, StatusCode: 404, Message: "not found", isOfIaaS: true}
	for name, row := range map[string]struct {
		err           error
		before, after bool // whether the last GET failed
	}{
		"OK":                     {nil, true, false},
		"503":                    {&APIError{StatusCode: 503}, false, true},
		"a 404 about the server": {notFound, true, false},
		"it cannot be decoded":   {&APIError{StatusCode: 200, Err: errUnreadable}, true, false},
		"401":                    {&APIError{StatusCode: 401}, false, false},
		"429, after 503":         {&APIError{StatusCode: 429}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScope(t)
				s.fails[ownGet] = row.before
				_ = s.single(t.Context(), nil, ownGet, func(context.Context) error { return row.err })
				if s.fails[ownGet] != row.after || s.fails[ownList] {
					t.Errorf("GETs fail: %t, small lists: %t; want %t, false", s.fails[ownGet], s.fails[ownList], row.after)
				}
			})
		})
	}
}

func TestACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		s.lists.err, s.takes = errOutage, time.Second
		due := time.Now().Add(10 * time.Millisecond) // all wait by then
		leaves, leave := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, leave)
		go func() { // while the list is in flight
			if all := s.next(leaves, due, listsOnly); !errors.Is(all.err, context.Canceled) || time.Since(s.epoch) >= s.takes {
				t.Errorf("a caller that leaves is told %v at %s", all.err, time.Since(s.epoch))
			}
		}()
		go s.next(leaves, time.Now().Add(time.Minute), listsOnly) // it would wait on after the list that fails
		if all := s.next(t.Context(), due, listsOnly); !errors.Is(all.err, errOutage) {
			t.Errorf("the caller that stays is told %v", all.err)
		}
		<-time.After(2 * time.Minute)
		wantTimes(t, &s.lists, "10ms")
		granted := s.join(time.Time{}, ownGet) // it is alone, and leaves without a look at the answer
		synctest.Wait()
		if s.singles != 1 {
			t.Fatalf("%d GETs, want 1", s.singles)
		}
		s.leave(granted)
		synctest.Wait()
		if s.singles != 0 || len(s.waiting) != 0 || s.running {
			t.Errorf("%d GETs, %d waiting, running: %t; want none", s.singles, len(s.waiting), s.running)
		}
	})
}

// The API's answers must not choose how many series there are.
func TestAListNamesAtMost1000Classes(t *testing.T) {
	servers := make([]Server, 1100)
	for i := range servers {
		servers[i].Labels = map[string]string{StackitMachineLabel: "m1", StackitMachineClassLabel: fmt.Sprintf("class-%d", i)}
	}
	if classes := countKinds(servers, nil); len(classes) != maxClasses {
		t.Errorf("a list of 1,100 classes makes series of %d, want %d", len(classes), maxClasses)
	}
}

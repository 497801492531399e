// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package coalesce_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// shelf is what the readers of a test read: numbered things, some of which lists do not
// show. It counts what is read, and when.
type shelf struct {
	*coalesce.Group[[]int, int]
	// takes is how long a read takes, hangs is which single reads never end.
	takes    time.Duration
	hangs    func(id int) bool
	listTime func(list int) time.Duration
	listErr  func(list int) error
	// singleErr is what a single read ends with.
	singleErr func(id int) error
	unlisted  func(id int) bool

	mu      sync.Mutex
	start   time.Time
	lists   []time.Duration
	singles []time.Duration
	active  int
	most    int
}

// soon lets readers that come one after another become due at the same moment.
const soon = 10 * time.Millisecond

var errSessionWide, errBroken = errors.New("session-wide"), errors.New("out of order")

var policy = coalesce.Policy{
	Singles: 4, Window: 250 * time.Millisecond, Patience: 5 * time.Second,
	Backoff: time.Second, MaxBackoff: 30 * time.Second, Timeout: 2 * time.Minute,
	Shared: func(err error) bool { return errors.Is(err, errSessionWide) },
	Turn:   func(context.Context) error { return nil }, Recovered: func(*error) {},
}

func newShelf(policy coalesce.Policy) *shelf {
	s := &shelf{
		takes: 50 * time.Millisecond, start: time.Now(),
		listErr: func(int) error { return nil }, singleErr: func(int) error { return nil },
		unlisted: func(int) bool { return false },
	}
	s.listTime = func(int) time.Duration { return s.takes }
	s.Group = coalesce.New[[]int, int](clock.RealClock{}, policy, s.list)
	return s
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *shelf) list(ctx context.Context) ([]int, error) {
	s.mu.Lock()
	s.lists = append(s.lists, time.Since(s.start))
	n := len(s.lists)
	s.mu.Unlock()
	if err := wait(ctx, s.listTime(n)); err != nil {
		return nil, err
	}
	var all []int
	for id := range 1000 {
		if !s.unlisted(id) {
			all = append(all, id)
		}
	}
	return all, s.listErr(n)
}

func (s *shelf) request(id int, notBefore time.Time) coalesce.Request[[]int, int] {
	return coalesce.Request[[]int, int]{
		NotBefore: notBefore,
		Single: func(ctx context.Context) (int, error) {
			s.mu.Lock()
			s.singles = append(s.singles, time.Since(s.start))
			s.active++
			s.most = max(s.most, s.active)
			s.mu.Unlock()
			takes := s.takes
			if s.hangs != nil && s.hangs(id) {
				takes = time.Hour
			}
			err := wait(ctx, takes)
			s.mu.Lock()
			s.active--
			s.mu.Unlock()
			if err == nil {
				err = s.singleErr(id)
			}
			return id, err
		},
		Pick: func(list []int, _ time.Time) (int, bool) { return id, slices.Contains(list, id) },
	}
}

func upTo(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// wave is readers that ask together.
type wave struct {
	at, due time.Duration // since the beginning, and since they ask
	ids     []int
	by      way
	leave   time.Duration // since they ask; 0 is never
	within  time.Duration // since they ask; 0 is 2 s after they are due
	err     error
}

// way is how a wave may be served.
type way int

const (
	both way = iota
	single
	list
	smallList // or a list that the reader makes for itself
)

// ask lets the wave's readers ask, and waits until all are served.
func (s *shelf) ask(t *testing.T, w wave) {
	t.Helper()
	<-time.After(w.at)
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if w.leave > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.leave)
	}
	defer cancel()
	asked := time.Now()
	var all sync.WaitGroup
	for _, id := range w.ids {
		all.Go(func() {
			request := s.request(id, asked.Add(w.due))
			switch w.by {
			case single:
				request.Pick = nil
			case list:
				request.Single = nil
			case smallList:
				request.Lists = true
			case both:
			}
			result := s.Read(ctx, request)
			if !errors.Is(result.Err, w.err) || result.Err == nil && result.Value != id {
				t.Errorf("reader %d is told %+v, want %v", id, result, w.err)
			}
			if result.Err == nil && result.Began.Before(asked) {
				t.Errorf("reader %d is told what a read shows that began before it asked", id)
			}
			if took := time.Since(asked); took > cmp.Or(w.within, w.due+2*time.Second) {
				t.Errorf("reader %d is served after %s", id, took)
			}
		})
	}
	all.Wait()
}

// every repeats a wave n times, so far apart.
func every(apart time.Duration, n int, w wave) []wave {
	waves := make([]wave, n)
	for i := range waves {
		waves[i], waves[i].at = w, time.Duration(i)*apart
	}
	return waves
}

func TestHowReadersAreServed(t *testing.T) {
	const minute, ms = time.Minute, time.Millisecond
	five, left := upTo(5), context.DeadlineExceeded
	broken := func(int) error { return errBroken }
	firstListTakes := func(d time.Duration) func(s *shelf) {
		return func(s *shelf) {
			s.listTime = func(list int) time.Duration {
				if list == 1 {
					return d
				}
				return s.takes
			}
		}
	}
	for name, row := range map[string]struct {
		change         func(*shelf)
		waves          []wave
		lists, singles int
	}{
		"one":  {nil, []wave{{due: time.Second, ids: upTo(1)}}, 0, 1},
		"four": {nil, []wave{{due: time.Second, ids: upTo(4)}}, 0, 4},
		"five": {nil, []wave{{due: time.Second, ids: five}}, 1, 0},
		"500":  {nil, []wave{{due: time.Second, ids: upTo(500)}}, 1, 0},
		"a list does not show them": {func(s *shelf) { s.unlisted = func(id int) bool { return id < 100 } },
			[]wave{{ids: upTo(100)}}, 1, 100},
		"there is no list": {func(s *shelf) { s.Group = coalesce.New[[]int, int](clock.RealClock{}, policy, nil) },
			[]wave{{ids: upTo(10)}}, 0, 10},
		"who is not due is served by a list": {nil, []wave{{due: minute, ids: []int{900}, within: 2 * time.Second},
			{due: time.Second, ids: five}}, 1, 0},
		"who comes during a list gets the next": {func(s *shelf) { s.takes = 400 * ms },
			[]wave{{due: soon, ids: five}, {at: 100 * ms, due: soon, ids: []int{10, 11, 12, 13, 14}}}, 2, 0},
		"lists keep the window": {nil, []wave{{due: soon, ids: five},
			{at: soon + 55*ms, due: soon, ids: five, within: 300 * ms}}, 2, 0},
		"a reader that no list serves": {nil, []wave{{ids: []int{7, 7, 7, 7, 7}, by: single}}, 0, 5},
		"a queue for the turn lets batches grow": {func(s *shelf) {
			slow := policy
			slow.Turn = func(ctx context.Context) error { return wait(ctx, time.Second) }
			s.Group = coalesce.New[[]int, int](clock.RealClock{}, slow, s.list)
		}, every(50*ms, 10, wave{due: soon, ids: []int{1}}), 1, 0},

		"single reads fail, lists work": {func(s *shelf) { s.singleErr = broken },
			every(20*time.Second, 10, wave{due: time.Second, ids: []int{1, 2}}), 10, 2},
		"single reads hang, lists work": {func(s *shelf) { s.hangs = func(int) bool { return true } },
			every(20*time.Second, 10, wave{due: time.Second, ids: []int{1, 2}, within: 2*time.Second + policy.Patience}), 10, 2},
		"single reads go on once one succeeds": {func(s *shelf) {
			s.singleErr = func(id int) error { return map[int]error{1: errBroken}[id] }
		}, []wave{{ids: []int{1}}, {at: minute, ids: []int{2}, by: single}, {at: 2 * minute, ids: []int{3}}}, 1, 3},
		"a list that fails is told to whom only lists serve": {func(s *shelf) {
			s.listErr = func(list int) error { return map[int]error{1: errBroken}[list] }
		}, []wave{{ids: []int{1}, by: list, err: errBroken}, {at: soon + 50*ms, ids: []int{1}, by: list}}, 2, 0},
		"lists go on once one succeeds": {func(s *shelf) {
			s.listErr = func(n int) error { return map[bool]error{true: errBroken}[n <= 3] }
			s.singleErr = func(int) error { return map[bool]error{true: errBroken}[time.Since(s.start) > minute] }
		}, append(every(10*time.Second, 6, wave{due: soon, ids: five}),
			wave{at: 2 * minute, ids: []int{1}}), 7, 16}, // a failed single read finds lists that work
		"neither a single read nor a list shows it": {func(s *shelf) {
			s.unlisted, s.singleErr = func(id int) bool { return id == 1 }, broken
		}, []wave{{due: soon, ids: []int{1}, leave: time.Minute, err: errBroken}}, 1, 1},
		"the error of a single read is none of lists": {func(s *shelf) {
			s.unlisted, s.singleErr = func(id int) bool { return id == 1 }, broken
		}, []wave{{due: soon, ids: []int{1}, err: errBroken, within: minute}, {due: soon, ids: []int{2, 3, 4, 10, 11}},
			{at: 2 * soon, ids: []int{7}, by: list}}, 2, 1},
		"an error of the whole session": {func(s *shelf) { s.listErr = func(int) error { return errSessionWide } },
			[]wave{{due: soon, ids: upTo(10), err: errSessionWide}}, 1, 0},

		"lists of all kinds fail, other reads go on": {func(s *shelf) {
			s.listErr = func(int) error { return errBroken }
			s.singleErr = func(id int) error { return map[int]error{1: errBroken}[id] }
		}, append(every(time.Second, 60, wave{due: 500 * ms, ids: []int{1}, by: smallList, err: errBroken, within: minute}),
			every(2*time.Second, 30, wave{ids: []int{2, 3}, within: time.Second})...), 4, 64},
		"what fails that began before a backoff makes it no longer": {func(s *shelf) {
			s.listErr = func(n int) error { return map[int]error{1: errBroken}[n] }
			s.singleErr = broken
		}, []wave{{ids: []int{1}, by: list, err: errBroken}, {at: 100 * ms, ids: upTo(4), by: single, err: errBroken},
			{at: 200 * ms, ids: []int{5}, by: list}}, 2, 4},
		"a late list lets nothing begin beside the next": {func(s *shelf) {
			s.listTime = func(n int) time.Duration { return map[int]time.Duration{1: 10 * time.Second, 2: 4900 * ms}[n] }
			s.takes, s.hangs = time.Hour, func(int) bool { return true }
		}, []wave{{due: soon, ids: five, within: minute}, {at: 7 * time.Second, ids: upTo(10), within: minute},
			{at: 10500 * ms, ids: upTo(10), within: minute}}, 3, 4},

		"four single reads hang": {func(s *shelf) { s.hangs = func(id int) bool { return id < 4 } }, []wave{
			{due: soon, ids: upTo(4), by: single, leave: minute, err: left, within: minute},
			{at: time.Second, due: soon, ids: []int{10, 11, 12}, within: policy.Patience + time.Second}}, 1, 4},
		"a list hangs": {firstListTakes(time.Hour), []wave{
			{due: soon, ids: five, within: policy.Patience + time.Second},
			{at: time.Second, due: soon, ids: []int{10, 11, 12, 13, 14}, within: policy.Patience + time.Second}}, 1, 10},
		"a late list serves who waits": {func(s *shelf) {
			firstListTakes(10 * time.Second)(s)
			s.takes, s.hangs = time.Hour, func(int) bool { return true }
		}, []wave{{due: soon, ids: five, within: soon + 10*time.Second}}, 1, 4},
		"a late list tells its error": {func(s *shelf) { s.takes = time.Hour },
			[]wave{{ids: []int{1}, by: list, err: left, within: policy.Timeout}}, 7, 0},
		"what nobody waits for ends": {firstListTakes(time.Hour), []wave{
			{due: soon, ids: five, leave: time.Second, err: left}, {at: time.Second + soon, due: soon, ids: five}}, 2, 0},
		"a reader that leaves disturbs no other": {func(s *shelf) { s.takes = time.Second }, []wave{
			{due: soon, ids: []int{99}, leave: 500 * ms, err: left}, {due: soon, ids: five, within: soon + time.Second}}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(policy)
				if row.change != nil {
					row.change(s)
				}
				var all sync.WaitGroup
				for _, w := range row.waves {
					all.Go(func() { s.ask(t, w) })
				}
				all.Wait()
				synctest.Wait() // it ends the test, too, if a goroutine is left that never does
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.lists) != row.lists || len(s.singles) != row.singles {
					t.Errorf("%d lists and %d single reads, want %d and %d", len(s.lists), len(s.singles), row.lists, row.singles)
				}
				if s.hangs == nil && s.most > policy.Singles {
					t.Errorf("%d single reads were under way at a time", s.most)
				}
				for i := 1; i < len(s.lists); i++ {
					if s.lists[i]-s.lists[i-1] < policy.Window {
						t.Errorf("lists at %v, want them %s apart", s.lists, policy.Window)
					}
				}
			})
		})
	}
}

// While lists fail nobody starves, and the next list waits longer each time.
func TestAfterAFailedListItsReadersReadOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := policy
		limited.Turn = rate.NewLimiter(8, 1).Wait
		s := newShelf(limited)
		s.listErr = func(int) error { return errors.New("out of order") }
		stop := time.Now().Add(5 * time.Minute)
		var all sync.WaitGroup
		var mu sync.Mutex
		slowest := time.Duration(0)
		for id := range 100 {
			all.Go(func() {
				for time.Now().Before(stop) {
					asked := time.Now()
					if result := s.Read(t.Context(), s.request(id, asked.Add(time.Second))); result.Err != nil {
						t.Errorf("reader %d: %v", id, result.Err)
					}
					mu.Lock()
					slowest = max(slowest, time.Since(asked))
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(s.lists) > 15 {
			t.Errorf("%d lists in 5 minutes: %v", len(s.lists), s.lists)
		}
		if slowest > 20*time.Second { // 100 of them, 8 a second
			t.Errorf("one waited for %s", slowest)
		}
	})
}

// One read is tried after each backoff, by both ways in turns, and nobody waits for the next
// one without an answer.
func TestWhileNothingWorksOneReadIsTriedAtATime(t *testing.T) {
	for name, listsRecover := range map[string]bool{"then lists work": true, "then single reads work": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(policy)
				const outage = 5 * time.Minute
				s.listErr = func(int) error {
					if listsRecover && time.Since(s.start) > outage {
						return nil
					}
					return errBroken
				}
				s.singleErr = func(int) error {
					if !listsRecover && time.Since(s.start) > outage {
						return nil
					}
					return errBroken
				}
				time.AfterFunc(outage, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					if tried := len(s.lists) + len(s.singles); tried > 25 {
						t.Errorf("%d reads in %s: %v %v", tried, outage, s.lists, s.singles)
					}
				})
				var all sync.WaitGroup
				for id := range 20 {
					all.Go(func() {
						for time.Since(s.start) < 2*outage {
							asked := time.Now()
							result := s.Read(t.Context(), s.request(id, asked.Add(time.Second)))
							if waited := time.Since(asked); waited > time.Second+2*policy.MaxBackoff {
								t.Errorf("reader %d waited for %s", id, waited)
							}
							if result.Err == nil {
								break
							}
						}
						if at := time.Since(s.start); at > outage+2*policy.MaxBackoff+10*time.Second {
							t.Errorf("reader %d is served after %s", id, at)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// Who needs a read of its own is not kept waiting by many who do not.
func TestListsStarveNoSingleRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := policy
		limited.Turn = rate.NewLimiter(8, 1).Wait
		s := newShelf(limited)
		s.listTime = func(int) time.Duration { return 1200 * time.Millisecond }
		stop := make(chan struct{})
		var pollers, alone sync.WaitGroup
		for id := range 20 {
			pollers.Go(func() {
				for due := time.Now(); ; {
					select {
					case <-stop:
						return
					default:
					}
					due = s.Read(t.Context(), s.request(id, due)).Began.Add(time.Second)
				}
			})
		}
		<-time.After(5 * time.Second)
		asked := time.Now()
		for id := range 30 {
			alone.Go(func() {
				request := s.request(100+id, time.Time{})
				request.Pick = nil
				s.Read(t.Context(), request)
			})
		}
		alone.Wait()
		if took := time.Since(asked); took > 10*time.Second {
			t.Errorf("the last of 30 single reads came after %s", took)
		}
		close(stop)
		pollers.Wait()
	})
}

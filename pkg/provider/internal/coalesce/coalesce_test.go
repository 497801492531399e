// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package coalesce_test

import (
	"context"
	"errors"
	"fmt"
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
	singles []single
	active  int
	most    int
}

type single struct {
	id int
	at time.Duration
}

// soon lets readers that come one after another become due at the same moment.
const soon = 10 * time.Millisecond

var errEverybodys = errors.New("everybody's")

var policy = coalesce.Policy{
	Singles: 4, Window: 250 * time.Millisecond, Patience: 5 * time.Second,
	Backoff: time.Second, MaxBackoff: 30 * time.Second, Timeout: 2 * time.Minute,
	Shared: func(err error) bool { return errors.Is(err, errEverybodys) },
	Turn:   func(context.Context) error { return nil },
}

func newShelf(policy coalesce.Policy) *shelf {
	s := &shelf{
		takes: 50 * time.Millisecond, start: time.Now(), hangs: func(int) bool { return false },
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
			s.singles = append(s.singles, single{id, time.Since(s.start)})
			s.active++
			s.most = max(s.most, s.active)
			s.mu.Unlock()
			takes := s.takes
			if s.hangs(id) {
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

// longest is for how long a reader waits: none of these tests takes half of it.
const longest = time.Hour

// read lets as many readers as there are IDs read at once, each of them due after the
// delay, and returns when they got their results.
func (s *shelf) read(t *testing.T, delay time.Duration, ids ...int) map[int]time.Duration {
	t.Helper()
	took := map[int]time.Duration{}
	var mu sync.Mutex
	var all sync.WaitGroup
	due := time.Now().Add(delay)
	for _, id := range ids {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), longest)
			defer cancel()
			asked := time.Now()
			result := s.Read(ctx, s.request(id, due))
			if result.Err != nil || result.Value != id {
				t.Errorf("reader %d is told %+v", id, result)
			}
			if result.Began.Before(asked) {
				t.Errorf("reader %d is told what a read shows that began before it asked", id)
			}
			mu.Lock()
			defer mu.Unlock()
			took[id] = time.Since(s.start)
		})
	}
	all.Wait()
	return took
}

// bubble runs a test of its own in virtual time: a row of a table.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func upTo(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

func (s *shelf) want(t *testing.T, lists, singles int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lists) != lists || len(s.singles) != singles {
		t.Errorf("%d lists and %d single reads, want %d and %d", len(s.lists), len(s.singles), lists, singles)
	}
}

func TestFewAreReadOneByOneAndManyByOneList(t *testing.T) {
	for name, row := range map[string]struct {
		readers        int
		change         func(*shelf)
		lists, singles int
	}{
		"one":                       {1, nil, 0, 1},
		"four":                      {4, nil, 0, 4},
		"five":                      {5, nil, 1, 0},
		"500":                       {500, nil, 1, 0},
		"a list does not show them": {100, func(s *shelf) { s.unlisted = func(id int) bool { return id < 100 } }, 1, 100},
		"there is no list": {10, func(s *shelf) {
			s.Group = coalesce.New[[]int, int](clock.RealClock{}, policy, nil)
		}, 0, 10},
	} {
		bubble(t, name, func(t *testing.T) {
			s := newShelf(policy)
			if row.change != nil {
				row.change(s)
			}
			s.read(t, time.Second, upTo(row.readers)...)
			s.want(t, row.lists, row.singles)
			if s.most > policy.Singles {
				t.Errorf("%d single reads were under way at a time", s.most)
			}
		})
	}
}

func TestAListServesThoseWhoAreNotDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		var later sync.WaitGroup
		later.Go(func() {
			if took := s.read(t, time.Minute, 900); took[900] > 2*time.Second {
				t.Errorf("served after %s, want by the list of the others", took[900])
			}
		})
		s.read(t, time.Second, upTo(5)...)
		later.Wait()
		s.want(t, 1, 0)
	})
}

func TestWhoComesDuringAListGetsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.takes = 400 * time.Millisecond
		var later sync.WaitGroup
		later.Go(func() {
			<-time.After(100 * time.Millisecond)
			s.read(t, soon, 10, 11, 12, 13, 14)
		})
		s.read(t, soon, upTo(5)...)
		later.Wait()
		s.want(t, 2, 0)
	})
}

func TestListsKeepTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.read(t, soon, upTo(5)...)
		s.read(t, soon, upTo(5)...)
		if s.want(t, 2, 0); len(s.lists) == 2 && s.lists[1]-s.lists[0] != policy.Window {
			t.Errorf("lists at %v, want them %s apart", s.lists, policy.Window)
		}
	})
}

func TestAReaderWithoutPickIsReadByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		request := s.request(7, time.Time{})
		request.Pick = nil
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { s.Read(t.Context(), request) })
		}
		all.Wait()
		s.want(t, 0, 5)
	})
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
				ctx, cancel := context.WithTimeout(t.Context(), longest)
				defer cancel()
				for time.Now().Before(stop) {
					asked := time.Now()
					if result := s.Read(ctx, s.request(id, asked.Add(time.Second))); result.Err != nil {
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

var errBroken = errors.New("out of order")

// Nobody is told of a failed single read while lists work, and few single reads are tried.
func TestWhileSingleReadsFailListsServeAll(t *testing.T) {
	for name, broken := range map[string]func(*shelf){
		"they fail": func(s *shelf) { s.singleErr = func(int) error { return errBroken } },
		"they hang": func(s *shelf) { s.hangs = func(int) bool { return true } },
	} {
		bubble(t, name, func(t *testing.T) {
			s := newShelf(policy)
			broken(s)
			for range 10 {
				s.read(t, time.Second, 1, 2)
			}
			s.want(t, 10, 2)
			if len(s.lists) == 0 || s.lists[0] > time.Second+policy.Patience+time.Second {
				t.Errorf("lists began at %v, want the first a second after the patience with single reads", s.lists)
			}
		})
	}
}

func TestSingleReadsGoOnOnceOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.singleErr = func(int) error { return errBroken }
		s.read(t, soon, 1)
		s.singleErr = func(int) error { return nil }
		request := s.request(2, time.Time{})
		request.Pick = nil // no list serves it
		s.Read(t.Context(), request)
		s.read(t, soon, 3)
		s.want(t, 1, 3)
	})
}

// One read is tried after each backoff, by both ways in turns, and nobody waits for the next
// one without an answer.
func TestWhileNothingWorksOneReadIsTriedAtATime(t *testing.T) {
	for name, listsRecover := range map[string]bool{"then lists work": true, "then single reads work": false} {
		bubble(t, name, func(t *testing.T) {
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
	}
}

// A request without a read of its own waits for a list, alone, too.
func TestWhatOnlyListsServeIsServedByLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listErr = func(list int) error {
			if list == 1 {
				return errBroken
			}
			return nil
		}
		request := s.request(1, time.Time{})
		request.Single = nil
		for _, want := range []error{errBroken, nil} {
			if result := s.Read(t.Context(), request); !errors.Is(result.Err, want) {
				t.Errorf("told %v, want %v", result.Err, want)
			}
		}
		s.want(t, 2, 0)
	})
}

func TestListsGoOnOnceOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listErr = func(list int) error {
			if list <= 3 {
				return errors.New("out of order")
			}
			return nil
		}
		for range 10 {
			s.read(t, soon, upTo(5)...)
			<-time.After(10 * time.Second)
		}
		s.want(t, 10, 15)
		// Nothing is left of their failures: a failed single read finds lists that work.
		s.singleErr = func(int) error { return errBroken }
		s.read(t, soon, 1)
		s.want(t, 11, 16)
	})
}

func TestAnErrorThatIsEverybodysEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listErr = func(int) error { return errEverybodys }
		var all sync.WaitGroup
		for id := range 10 {
			all.Go(func() {
				if result := s.Read(t.Context(), s.request(id, s.start.Add(soon))); !errors.Is(result.Err, errEverybodys) {
					t.Errorf("reader %d is told %+v", id, result)
				}
			})
		}
		all.Wait()
		s.want(t, 1, 0)
	})
}

func TestAHangingReadHoldsUpNobodyForLong(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*shelf)
		ids    []int
	}{
		"four single reads": {func(s *shelf) { s.hangs = func(id int) bool { return id < 4 } }, []int{10, 11, 12}},
		"a list":            {func(s *shelf) { s.listTime = func(int) time.Duration { return time.Hour } }, []int{10, 11, 12, 13, 14}},
	} {
		bubble(t, name, func(t *testing.T) {
			s := newShelf(policy)
			row.change(s)
			ctx, cancel := context.WithCancel(t.Context())
			var hanging sync.WaitGroup
			for id := range 4 {
				hanging.Go(func() { s.Read(ctx, s.request(id, s.start.Add(soon))) })
			}
			<-time.After(time.Second)
			for id, at := range s.read(t, soon, row.ids...) {
				if at > time.Second+policy.Patience+time.Second {
					t.Errorf("reader %d is served after %s", id, at)
				}
			}
			cancel()
			hanging.Wait()
		})
	}
}

// What takes long still serves who waits for it.
func TestALateListServesWhoStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listTime = func(list int) time.Duration {
			if list == 1 {
				return 10 * time.Second
			}
			return time.Hour
		}
		s.hangs = func(int) bool { return true }
		for id, at := range s.read(t, soon, upTo(5)...) {
			if at != soon+10*time.Second {
				t.Errorf("reader %d is served after %s, want by the list that took 10 s", id, at)
			}
		}
	})
}

// A list that holds up nobody any more still tells its error to whom only lists serve.
func TestALateListTellsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listTime = func(int) time.Duration { return time.Hour }
		request := s.request(1, time.Time{})
		request.Single = nil
		began := time.Now()
		result := s.Read(t.Context(), request)
		if took := time.Since(began); !errors.Is(result.Err, context.DeadlineExceeded) || took != policy.Timeout {
			t.Errorf("told %v after %s, want the end of the first list after %s", result.Err, took, policy.Timeout)
		}
	})
}

// A queue for the turn makes batches grow.
func TestWhatComesWhileTheGroupWaitsForItsTurnIsReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := policy
		slow.Turn = func(ctx context.Context) error { return wait(ctx, time.Second) }
		s := newShelf(slow)
		var all sync.WaitGroup
		for id := range 10 {
			all.Go(func() {
				<-time.After(time.Duration(id) * 50 * time.Millisecond)
				s.read(t, soon, id)
			})
		}
		all.Wait()
		s.want(t, 1, 0)
	})
}

func TestWhatNobodyWaitsForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.listTime = func(list int) time.Duration {
			if list == 1 {
				return time.Hour
			}
			return s.takes
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for id := range 5 {
			all.Go(func() {
				if result := s.Read(ctx, s.request(id, s.start.Add(soon))); !errors.Is(result.Err, context.DeadlineExceeded) {
					t.Errorf("reader %d is told %+v", id, result)
				}
			})
		}
		all.Wait()
		synctest.Wait() // it ends the test, too, if a goroutine is left that never does
		s.read(t, soon, upTo(5)...)
		s.want(t, 2, 0)
	})
}

// A reader that leaves disturbs no other.
func TestAReaderThatLeavesDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.takes = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		go s.Read(ctx, s.request(99, s.start.Add(soon)))
		for id, at := range s.read(t, soon, upTo(5)...) {
			if at != soon+time.Second {
				t.Errorf("reader %d is served after %s", id, at)
			}
		}
		s.want(t, 1, 0)
	})
}

// BenchmarkRead is what one list costs that serves so many who wait.
func BenchmarkRead(b *testing.B) {
	for _, readers := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			busy := policy
			busy.Singles, busy.Window = 0, 0
			group := coalesce.New[[]int, int](clock.RealClock{}, busy, func(context.Context) ([]int, error) { return upTo(readers), nil })
			b.ReportAllocs()
			for b.Loop() {
				var all sync.WaitGroup
				due := time.Now().Add(time.Duration(readers) * 10 * time.Microsecond)
				for id := range readers {
					all.Go(func() {
						result := group.Read(b.Context(), coalesce.Request[[]int, int]{NotBefore: due,
							Pick: func(list []int, _ time.Time) (int, bool) { return list[id], true }})
						if result.Err != nil || result.Value != id {
							b.Errorf("reader %d is told %+v", id, result)
						}
					})
				}
				all.Wait()
			}
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

// Lists work: that the read of one thing failed is no answer to who asks for a list.
func TestAListIsNotAnsweredWithTheErrorOfASingleRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(policy)
		s.unlisted = func(id int) bool { return id == 1 }
		s.singleErr = func(int) error { return errors.New("the read of thing 1 failed") }
		var others sync.WaitGroup
		for id := range 6 { // enough for a list, which does not show 1
			others.Go(func() { s.Read(t.Context(), s.request(id, s.start.Add(soon))) })
		}
		<-time.After(2 * soon)
		onlyList := s.request(7, time.Time{})
		onlyList.Single = nil
		if result := s.Read(t.Context(), onlyList); result.Err != nil {
			t.Errorf("the answer is %v", result.Err)
		}
		others.Wait()
	})
}

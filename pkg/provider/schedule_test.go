// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// plan is a schedule at a time that the test sets.
type plan struct {
	*testing.T
	schedule
	now time.Time
}

func newPlan(t *testing.T, few int) *plan {
	t.Helper()
	return &plan{T: t, now: time.Unix(1e9, 0), schedule: schedule{few: few, pace: rate.NewLimiter(rate.Inf, 1)}}
}

func (p *plan) join(readers ...*reader) []*reader {
	for _, r := range readers {
		p.add(r, p.now)
	}
	return readers
}

func (p *plan) waiting(n int) []*reader {
	var readers []*reader
	for range n {
		readers = append(readers, p.join(&reader{due: p.now.Add(tick), waits: true})...)
	}
	return readers
}

func (p *plan) wantList() {
	p.Helper()
	if next := p.next(p.now); !next.list {
		p.Fatalf("the next step is %+v, want a list", next)
	}
}

func (p *plan) wantAlone(r *reader) {
	p.Helper()
	if next := p.next(p.now); next.alone != r {
		p.Fatalf("the next step is %+v, want that %p reads alone", next, r)
	}
}

func (p *plan) wantWait(wait time.Duration) {
	p.Helper()
	if next := p.next(p.now); next.list || next.alone != nil || next.wait != wait {
		p.Fatalf("the next step is %+v, want to wait for %s", next, wait)
	}
}

// answered ends the list under way; missed are those it does not show.
func (p *plan) answered(missed ...*reader) {
	for _, r := range p.served(p.began) {
		gone := true
		for _, other := range missed {
			gone = gone && other != r
		}
		if gone {
			p.remove(r)
		} else {
			p.miss(r, p.now)
		}
	}
	p.listing = false
}

func (p *plan) pass(d time.Duration) { p.now = p.now.Add(d) }

func TestNobodyWaits(t *testing.T) {
	newPlan(t, 4).wantWait(forever)
}

func TestTheFirstReaderIsServedAtOnce(t *testing.T) {
	p := newPlan(t, 4)
	p.wantAlone(p.join(&reader{lookUp: true})[0])
	p.wantWait(forever)
}

func TestAReaderThatComesLaterGetsTheNextRead(t *testing.T) {
	p := newPlan(t, 4)
	first := p.join(&reader{lookUp: true})[0]
	p.wantAlone(first)
	p.pass(10 * time.Millisecond)
	second := p.join(&reader{lookUp: true})[0]
	p.wantWait(gap - 10*time.Millisecond)
	p.remove(first)
	p.pass(gap)
	p.wantAlone(second)
}

func TestTwoLookUpsShareAList(t *testing.T) {
	p := newPlan(t, 4)
	p.join(&reader{lookUp: true}, &reader{lookUp: true})
	p.wantList()
	p.wantWait(forever)
}

// After the usual time of a boot they ask every half tick.
func TestInACrowdWaitsShareAListATick(t *testing.T) {
	p := newPlan(t, 4)
	for readers, wait := range map[int]time.Duration{crowd - 1: quickTick, crowd: tick} {
		p.join(&reader{lookUp: true}, &reader{lookUp: true})
		p.wantList()
		p.answered()
		for range readers {
			p.join(&reader{due: p.now.Add(quickTick), waits: true})
		}
		p.wantWait(wait)
		p.pass(wait)
		p.wantList()
		p.answered()
		p.pass(tick)
	}
}

func TestFewWhoAskOftenShareAList(t *testing.T) {
	p := newPlan(t, 4)
	p.wantAlone(p.join(&reader{})[0])
	p.readers = nil
	p.pass(quickTick)
	p.join(&reader{}, &reader{}, &reader{})
	p.wantList()
}

func TestFewAreReadOneByOneAndManyTogether(t *testing.T) {
	p := newPlan(t, 4)
	readers := p.waiting(4)
	p.wantWait(tick)
	p.pass(tick)
	for _, r := range readers {
		p.wantAlone(r)
	}
	p.wantWait(forever)
	p.join(&reader{})
	p.pass(gap)
	p.wantList()
}

func TestAListServesThoseWhoseTickIsAhead(t *testing.T) {
	p := newPlan(t, 4)
	p.waiting(10)
	p.pass(tick / 2)
	p.waiting(10)
	p.pass(tick / 2)
	p.wantList()
	late := p.waiting(1)[0]
	if got := len(p.served(p.began)); got != 21 {
		t.Errorf("the list serves %d readers, want those that came by then: 21", got)
	}
	p.pass(time.Millisecond)
	p.waiting(1)
	if got := len(p.served(p.began)); got != 21 {
		t.Errorf("the list serves %d readers, also one that came after it began", got)
	}
	p.answered()
	p.remove(late)
	p.wantWait(tick)
}

func TestNoListWhileOneIsUnderWay(t *testing.T) {
	p := newPlan(t, 0)
	p.join(&reader{lookUp: true})
	p.wantList()
	p.pass(time.Minute)
	p.join(&reader{lookUp: true})
	p.wantWait(forever)
	p.answered()
	p.wantList()
}

func TestWhoAsksForOneThingDoesNotWaitForAListThatHangs(t *testing.T) {
	p := newPlan(t, 0)
	lookUp := p.join(&reader{lookUp: true})[0]
	p.wantList()
	p.pass(listPatience - tick/2)
	waiters := p.waiting(maxAlone + 1)
	p.wantWait(tick) // its own tick comes later than the end of its patience
	hasty := p.join(&reader{})[0]
	p.wantWait(tick / 2)
	p.pass(tick)
	p.wantAlone(hasty)
	for _, r := range waiters[:maxAlone-1] {
		p.wantAlone(r)
	}
	p.wantWait(forever)
	p.answered(waiters...)
	if slices.Contains(p.readers, lookUp) {
		t.Error("the look-up is not answered by the list")
	}
}

func TestListsKeepTheGap(t *testing.T) {
	p := newPlan(t, 0)
	p.join(&reader{})
	p.wantList()
	p.answered()
	p.pass(gap / 2)
	p.join(&reader{})
	p.wantWait(gap - gap/2)
	p.pass(gap - gap/2)
	p.wantList()
}

func TestPatientReadersWaitForTheTickOfMany(t *testing.T) {
	p := newPlan(t, 4)
	p.waiting(10)
	p.pass(tick)
	p.wantList()
	p.answered()
	p.pass(gap)
	p.waiting(10)
	p.join(&reader{patient: true, lookUp: true})
	p.wantWait(tick - gap)

	alone := newPlan(t, 4)
	alone.wantAlone(alone.join(&reader{patient: true, lookUp: true})[0])
}

func TestWhatAListDoesNotShowIsReadAlone(t *testing.T) {
	p := newPlan(t, 0)
	waiters := p.waiting(10)
	p.pass(tick)
	p.wantList()
	hasty := &reader{due: p.now}
	p.add(hasty, p.now)
	p.answered(append(waiters, hasty)...)
	p.wantAlone(hasty)
	for _, r := range waiters[:maxAlone-1] {
		p.wantAlone(r)
	}
	p.wantWait(tick) // the others are not more than that at a time
	p.remove(hasty)
	p.wantAlone(waiters[maxAlone-1])
	p.pass(tick)
	p.wantList() // which may show those that still wait
	if got := len(p.served(p.began)); got != 10-maxAlone {
		t.Errorf("the list serves %d readers, want %d", got, 10-maxAlone)
	}
}

func TestWhoWantsAReadOfItsOwnTakesNoList(t *testing.T) {
	p := newPlan(t, 0)
	own := p.join(&reader{own: true}, &reader{})[0]
	p.wantList()
	p.wantAlone(own)

	p = newPlan(t, 0)
	p.join(&reader{own: true}, &reader{})
	p.wantList()
	if got := len(p.served(p.began)); got != 1 {
		t.Errorf("the list serves %d readers, want the one that takes it", got)
	}
}

func TestThePaceBoundsAllReads(t *testing.T) {
	p := newPlan(t, 4)
	p.pace = rate.NewLimiter(10, 1)
	readers := p.join(&reader{}, &reader{}, &reader{})
	for _, r := range readers {
		p.wantAlone(r)
		p.wantWaitOrDone(r == readers[2])
		p.pass(paced)
	}
}

func (p *plan) wantWaitOrDone(done bool) {
	p.Helper()
	if done {
		p.wantWait(forever)
		return
	}
	p.wantWait(paced)
}

// paced is the wait for the next of ten reads a second, rounded up.
const paced = 100*time.Millisecond + time.Microsecond

// Many scopes ask the pace at once; those it refuses take nothing from it.
func TestRefusedReadersTakeNothingFromThePace(t *testing.T) {
	p := newPlan(t, 4)
	p.pace = rate.NewLimiter(10, 1)
	p.pace.AllowN(p.now, 1)
	var scopes sync.WaitGroup
	for range 8 {
		scopes.Go(func() {
			for range 1000 {
				wait := forever
				p.allow(p.now.Add(paced/2), &wait)
			}
		})
	}
	scopes.Wait()
	p.pass(paced)
	p.wantAlone(p.join(&reader{})[0])
}

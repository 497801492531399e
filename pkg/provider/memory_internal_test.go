// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const testSettle = 30 * time.Second

// notebook is a memory, and the clock that it reads.
type notebook struct {
	*memory
	clock *clocktesting.FakePassiveClock
}

func newNotebook() notebook {
	clock := clocktesting.NewFakePassiveClock(epoch)
	return notebook{newMemory(clock, testSettle), clock}
}

func (n notebook) pass(d time.Duration) { n.clock.SetTime(n.clock.Now().Add(d)) }

// refOf returns a Machine of the default place.
func refOf(machine string) *machineRef {
	return &machineRef{
		machineKey: machineKey{"ns", machine}, place: place{"https://api", "project", "eu01"}, uid: "uid of " + machine,
		created: epoch,
	}
}

// with returns a copy of the reference, changed.
func with(ref *machineRef, change func(*machineRef)) *machineRef {
	changed := *ref
	change(&changed)
	return &changed
}

var places = map[string]func(*machineRef){
	"endpoint": func(ref *machineRef) { ref.endpoint = "https://other" },
	"project":  func(ref *machineRef) { ref.project = "other" },
	"region":   func(ref *machineRef) { ref.region = "eu02" },
}

func TestClaim(t *testing.T) {
	m1 := refOf("m1")
	again := with(m1, func(ref *machineRef) { ref.uid, ref.created = "another uid", epoch.Add(time.Minute) })
	fails := errors.New("ERROR")
	posted := func(n notebook) { // a POST from 0 s to 10 s
		_ = n.claim(m1, "a", apis.Choice{}, epoch)
		n.pass(10 * time.Second)
	}
	accepted := func(n notebook) { posted(n); n.accepted(m1, "s1") }
	lost := func(n notebook) { posted(n); n.lost(m1) }
	refused := func(n notebook) { posted(n); n.refused(m1) }
	const atEnd, atSettle = 10 * time.Second, 10*time.Second + testSettle
	for name, row := range map[string]struct {
		before      func(n notebook)
		ref         *machineRef
		lookupBegan time.Duration
		want        bool
	}{
		"the first POST":                              {func(notebook) {}, m1, 0, true},
		"a POST is in flight":                         {posted, m1, time.Hour - 1, false},
		"a POST is in flight, of a predecessor":       {posted, again, time.Hour - 1, false},
		"refused: looked at its end":                  {refused, m1, atEnd, true},
		"refused: looked before its end":              {refused, m1, atEnd - 1, false},
		"refused: looked before its end, predecessor": {refused, again, atEnd - 1, false},
		"lost: looked settle later":                   {lost, m1, atSettle, true},
		"lost: looked within settle":                  {lost, m1, atSettle - 1, false},
		"lost: looked within settle, predecessor":     {lost, again, atSettle - 1, false},
		"it has a server":                             {accepted, m1, time.Hour - 1, false},
		"a predecessor has a server":                  {accepted, again, time.Hour - 1, false},
		"it adopted a server":                         {func(n notebook) { n.adopt(m1, "s1") }, m1, time.Hour - 1, false},
		"server failed, within settle": {func(n notebook) { accepted(n); n.failed(m1, "s1", fails) }, m1,
			atSettle - 1, false},
		"server failed, settle later": {func(n notebook) { accepted(n); n.failed(m1, "s1", fails) }, m1,
			atSettle, true},
		"server dropped, within settle": {func(n notebook) { accepted(n); n.drop(m1, "s1") }, m1,
			atSettle - 1, false},
		"another server dropped": {func(n notebook) { accepted(n); n.drop(m1, "s2") }, m1,
			time.Hour - 1, false},
		"answer named another's, within settle": {func(n notebook) { accepted(n); n.disown(m1, "s1") }, m1,
			atSettle - 1, false},
		"answer named another's, settle later": {func(n notebook) { accepted(n); n.disown(m1, "s1") }, m1, atSettle, true},
		"never read and gone, within settle": {func(n notebook) { accepted(n); n.serverGone(m1, "s1") }, m1,
			atSettle - 1, false},
		"never read and gone, settle later": {func(n notebook) { accepted(n); n.serverGone(m1, "s1") }, m1, atSettle, true},
		"read and gone": {
			func(n notebook) { accepted(n); n.adopt(m1, "s1"); n.serverGone(m1, "s1") }, m1, atEnd, true},
		"read and gone, looked before the POST ended": {
			func(n notebook) { accepted(n); n.adopt(m1, "s1"); n.serverGone(m1, "s1") }, m1, atEnd - 1, false},
		"another server gone": {func(n notebook) { lost(n); n.serverGone(m1, "s2") }, m1, atSettle - 1, false},
		"lost, proved none too early": {func(n notebook) { lost(n); n.provedNone(m1, epoch.Add(atSettle-1)) }, m1,
			atSettle - 1, false},
		"lost, proved none": {func(n notebook) { lost(n); n.provedNone(m1, epoch.Add(atSettle)) }, m1,
			atEnd, true},
		"lost, and the Machine was deleted": {func(n notebook) { lost(n); n.forget(m1) }, m1, 0, true},
		"another Machine's POST is lost":    {lost, refOf("m2"), 0, true},
		"lost, forgotten by an older Machine": {func(n notebook) {
			_ = n.claim(again, "a", apis.Choice{}, epoch)
			n.lost(again)
			n.forget(m1)
		}, again, testSettle - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNotebook()
			row.before(n)
			n.clock.SetTime(epoch.Add(time.Hour - 1))
			if got := n.claim(row.ref, "a", apis.Choice{}, epoch.Add(row.lookupBegan)) == nil; got != row.want {
				t.Fatalf("claim is %t, want %t", got, row.want)
			}
			if again := n.claim(row.ref, "a", apis.Choice{}, n.clock.Now()) == nil; row.want && again {
				t.Error("a second claim beside a POST in flight")
			}
		})
	}
}

// A record of another endpoint, project or region has a server that a call here cannot see.
func TestARecordBelongsToOnePlace(t *testing.T) {
	for name, move := range places {
		t.Run(name, func(t *testing.T) {
			m1 := refOf("m1")
			moved := with(m1, move)
			for state, end := range map[string]func(n notebook){
				"in flight": func(notebook) {},
				"lost":      func(n notebook) { n.lost(m1) },
				"accepted":  func(n notebook) { n.accepted(m1, "s1") },
			} {
				n := newNotebook()
				_ = n.claim(m1, "a", apis.Choice{}, epoch)
				end(n)
				n.pass(testSettle)
				if other, is := n.elsewhere(moved); !is || other != m1.place {
					t.Errorf("%s: elsewhere is %v, %t", state, other, is)
				}
				n.accepted(moved, "s2")
				n.adopt(moved, "s2")
				claimed := n.claim(moved, "a", apis.Choice{}, n.clock.Now())
				if claimed == nil || n.get(moved).serverID != "" || !n.certain(moved).IsZero() || n.get(m1).serverID == "s2" {
					t.Errorf("%s: a call changes the record of another place: %+v", state, n.get(m1))
				}
			}
			n := newNotebook()
			_ = n.claim(m1, "a", apis.Choice{}, epoch)
			n.refused(m1)
			if _, is := n.elsewhere(moved); is || n.claim(moved, "a", apis.Choice{}, epoch) != nil {
				t.Error("a record without a server keeps its place")
			}
			n.serverGone(m1, "s1")
			if !n.wasGone(m1, "s1") || n.wasGone(moved, "s1") {
				t.Error("a server that is gone is so in all places, or in none")
			}
		})
	}
}

// A server that is proved gone counts as gone for settle, unless a GET shows it.
func TestGoneCountsForSettle(t *testing.T) {
	m1, n := refOf("m1"), newNotebook()
	n.serverGone(m1, "s1")
	n.serverGone(m1, "s2")
	n.shown(m1, "s2")
	n.pass(testSettle)
	if !n.wasGone(m1, "s1") || n.wasGone(m1, "s2") {
		t.Error("want s1 gone at settle, and not s2, which a GET has shown")
	}
	if n.pass(1); n.wasGone(m1, "s1") {
		t.Error("gone after settle")
	}
}

// A deletion that hangs for hours is as long as that, and it ends once.
func TestADeletionLastsSinceTheFirstDELETE(t *testing.T) {
	m1, n := refOf("m1"), newNotebook()
	n.deleteAccepted(m1, "s1")
	n.pass(2 * recordLifetime)
	n.meet(m1) // drops what is old
	n.deleteAccepted(m1, "s1")
	if got := n.serverGone(m1, "s1"); !got.Equal(epoch) {
		t.Errorf("it began at %s, want %s", got, epoch)
	}
	if got := n.serverGone(m1, "s1"); !got.IsZero() {
		t.Errorf("it ended twice, the second began at %s", got)
	}
	n.pass(deletionLifetime)
	n.meet(m1)
	if len(n.deleted) != 0 {
		t.Errorf("%d deletions after a day, want none", len(n.deleted))
	}
}

// Nothing but use keeps an entry: the memory of a process that runs for months stays small.
func TestTheMemoryShrinks(t *testing.T) {
	n := newNotebook()
	const machines = 100
	for i := range machines {
		ref := refOf(fmt.Sprint("m", i))
		_ = n.claim(ref, "a", apis.Choice{}, epoch)
		n.lost(ref)
		n.serverGone(ref, fmt.Sprint("s", i))
	}
	n.pass(recordLifetime)
	n.get(refOf("m1")) // a read is a use
	n.drop(refOf("m2"), "")
	if len(n.records) != machines || len(n.gone) != machines {
		t.Errorf("after an hour: %d records, %d gone; want %d of each", len(n.records), len(n.gone), machines)
	}
	n.pass(recordLifetime / 10)
	n.drop(refOf("m2"), "")
	first, second := n.get(refOf("m1")), n.get(refOf("m2"))
	if !first.hasOpenPost() || !second.hasOpenPost() || len(n.records) != 2 || len(n.gone) != 0 {
		t.Errorf("after more than an hour: %d records, %d gone; want the two in use", len(n.records), len(n.gone))
	}
}

// An account that may create, but not see, must not fill a project; what was surely not created counts for nothing.
func TestAClassWhoseServersNoReadShowsWaits(t *testing.T) {
	n := newNotebook()
	n.neverSeen(refOf("m1"), "a")
	ask := func(machine string) error { return n.claim(refOf(machine), "a", apis.Choice{}, n.clock.Now()) }
	for i, minutes := range []int{1, 2, 4, 8, 16, 16} {
		n.pass(time.Duration(minutes)*time.Minute - time.Second)
		machine := "m" + strconv.Itoa(i+2)
		if err := ask(machine); !errors.Is(err, errUnseen) {
			t.Errorf("a POST %d is allowed too early: %v", i, err)
		}
		n.pass(time.Second)
		for range 3 { // refused
			if err := ask(machine); err != nil {
				t.Errorf("POST %d after %d minutes: %v", i, minutes, err)
			}
			n.refused(refOf(machine))
		}
		if err := ask(machine); err != nil {
			t.Errorf("POST %d: %v", i, err)
		}
		n.accepted(refOf(machine), "s")
		if err := ask("other"); !errors.Is(err, errUnseen) {
			t.Errorf("another Machine's POST is allowed beside POST %d: %v", i, err)
		}
		if err := n.claim(refOf("other-class"), "b", apis.Choice{}, n.clock.Now()); i == 0 && err != nil {
			t.Errorf("another class waits, too: %v", err)
		}
	}
	n.saw(refOf("m1").place, Server{Labels: map[string]string{StackitMachineClassLabel: "a"}})
	if err := ask("other"); err != nil {
		t.Errorf("a read shows a server of the class: %v", err)
	}
}

func TestAMachineOfWhichLittleIsKnownMayHaveHadAServer(t *testing.T) {
	n := newNotebook()
	// By the API server's clock.
	ahead := with(refOf("m1"), func(ref *machineRef) { ref.created = epoch.Add(clockSkew - time.Second) })
	n.meet(ahead)
	if !n.neverHadServer(ahead) {
		t.Error("it may have had one")
	}
	_ = n.claim(ahead, "a", apis.Choice{}, epoch)
	n.lost(ahead)
	if n.neverHadServer(ahead) {
		t.Error("it had none after a POST that was lost")
	}
	n.pass(recordLifetime + time.Second)
	n.meet(refOf("other")) // drops what is old
	if n.meet(ahead); n.neverHadServer(ahead) {
		t.Error("it had none, though all that was known is forgotten")
	}
}

// Only a POST of which nothing was written made no server for sure, and only once it has ended.
func TestAPOSTThatWasNotSentCountsForNothing(t *testing.T) {
	m1 := refOf("m1")
	moved := with(refOf("m1"), func(ref *machineRef) { ref.uid, ref.region = "another", "eu02" })
	for name, row := range map[string]struct {
		end  func(n notebook)
		want bool
	}{
		"not sent":                    {func(n notebook) { n.unsent(m1) }, true},
		"in flight":                   {func(notebook) {}, false},
		"refused":                     {func(n notebook) { n.refused(m1) }, false},
		"lost":                        {func(n notebook) { n.lost(m1) }, false},
		"lost, and none proved":       {func(n notebook) { n.lost(m1); n.provedNone(m1, epoch.Add(testSettle)) }, false},
		"accepted":                    {func(n notebook) { n.accepted(m1, "s1") }, false},
		"accepted, and gone":          {func(n notebook) { n.accepted(m1, "s1"); n.serverGone(m1, "s1") }, false},
		"not sent, and one was found": {func(n notebook) { n.found(m1); n.unsent(m1) }, false},
		"in flight, and the next Machine is elsewhere": {func(n notebook) {
			_ = n.claim(moved, "a", apis.Choice{}, epoch)
			n.unsent(moved)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNotebook()
			if err := n.claim(m1, "a", apis.Choice{}, epoch); err != nil {
				t.Fatal(err)
			}
			row.end(n)
			asked := with(m1, func(ref *machineRef) { ref.created = epoch })
			if got := n.neverHadServer(asked); got != row.want {
				t.Errorf("got %t that no server can exist, want %t", got, row.want)
			}
		})
	}
}

// A server that runs hours after its DELETE was accepted, and that its Machine keeps, is not to go.
func TestAnAdoptedServerWasNotDeleted(t *testing.T) {
	n, m1 := newNotebook(), refOf("m1")
	n.deleteAccepted(m1, "s1")
	if !n.wasDeleted(m1, "s1") {
		t.Error("its DELETE is not remembered")
	}
	n.adopt(m1, "s1")
	if n.wasDeleted(m1, "s1") {
		t.Error("its DELETE is remembered after it was adopted")
	}
}

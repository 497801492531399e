// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/ledger"
)

const settle = 30 * time.Second

var key = ledger.Key{Endpoint: "https://iaas", Namespace: "ns", Machine: "m1", UID: "u1", Place: ledger.Place{ProjectID: "p", Region: "eu01"}}

func newLedger() *ledger.Ledger { return ledger.New(clock.RealClock{}, settle) }

// post lets a POST begin, and end ten seconds later.
func post(t *testing.T, l *ledger.Ledger, end func(ledger.Key)) {
	t.Helper()
	if !l.Claim(key, l.Get(key)) {
		t.Fatal("the POST cannot be claimed")
	}
	<-time.After(10 * time.Second)
	end(key)
}

// What an open POST leaves in doubt, until settle after its end.
func TestNoPostBefore(t *testing.T) {
	accepted := func(l *ledger.Ledger, server string) func(ledger.Key) {
		return func(key ledger.Key) { l.Accepted(key, server) }
	}
	for name, row := range map[string]struct {
		happens func(*testing.T, *ledger.Ledger)
		// after is how long after the beginning it is certain; 0 is at any time.
		after time.Duration
	}{
		"nothing happened": {func(*testing.T, *ledger.Ledger) {}, 0},
		"a POST is under way": {func(t *testing.T, l *ledger.Ledger) {
			if !l.Claim(key, l.Get(key)) {
				t.Fatal("the POST cannot be claimed")
			}
			<-time.After(time.Minute)
		}, time.Minute + settle},
		"it was refused": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.Refused)
		}, 0},
		"it was accepted": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, accepted(l, "s1"))
		}, 10*time.Second + settle},
		"its outcome is unknown": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
		}, 10*time.Second + settle},
		"it was accepted and the server is gone": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, accepted(l, "s1"))
			l.Adopt(key, "s1")
			l.ServerGone(key, "s1")
		}, 0},
		"it was accepted and no read ever showed the server": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, accepted(l, "s1"))
			l.ServerGone(key, "s1")
		}, 10*time.Second + settle},
		"another server was found than it made": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			l.Adopt(key, "s0")
		}, 10*time.Second + settle},
		"the server that was found is gone, but not what the POST made": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			l.Adopt(key, "s0")
			l.ServerGone(key, "s0")
		}, 10*time.Second + settle},
		"of two the server of the second is gone": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			post(t, l, accepted(l, "s2"))
			l.Adopt(key, "s2")
			l.ServerGone(key, "s2")
		}, 10*time.Second + settle},
		"of two unknown ones the last counts": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			post(t, l, l.OutcomeUnknown)
		}, 20*time.Second + settle},
		"a refused one after an unknown one closes only itself": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			post(t, l, l.Refused)
		}, 10*time.Second + settle},
		"its answer named somebody else's server": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, accepted(l, "s1"))
			l.NotOurs(key, "s1")
			l.ServerGone(key, "s1")
		}, 10*time.Second + settle},
		"look-ups proved too early that there is none": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			l.ProvedNone(key, time.Now().Add(settle-time.Second))
		}, 10*time.Second + settle},
		"look-ups proved that there is none": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			l.ProvedNone(key, time.Now().Add(settle))
		}, 0},
		"the machine was deleted": {func(t *testing.T, l *ledger.Ledger) {
			post(t, l, l.OutcomeUnknown)
			l.Forget(key)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger()
				want := time.Time{}
				if row.after > 0 {
					want = time.Now().Add(row.after)
				}
				row.happens(t, l)
				entry := l.Get(key)
				if got := entry.NoPostBefore(); !got.Equal(want) {
					t.Errorf("certain at %s, want %s", got, want)
				}
				// A look-up that began before may end after.
				<-time.After(time.Minute)
				if entry = l.Get(key); row.after > 0 && row.after < time.Minute && !entry.NoPostBefore().Equal(want) {
					t.Errorf("a minute later it was certain at %s, want %s", entry.NoPostBefore(), want)
				}
			})
		})
	}
}

func TestClaim(t *testing.T) {
	for name, row := range map[string]struct {
		happens func(*ledger.Ledger)
		want    bool
	}{
		"nothing since":                {func(*ledger.Ledger) {}, true},
		"NICs were read since":         {func(l *ledger.Ledger) { l.SawAddresses(key, "s1", []string{"10.0.0.1"}) }, true},
		"another POST is under way":    {func(l *ledger.Ledger) { l.Claim(key, l.Get(key)) }, false},
		"another POST was refused":     {func(l *ledger.Ledger) { l.Claim(key, l.Get(key)); l.Refused(key) }, false},
		"another POST was lost":        {func(l *ledger.Ledger) { l.Claim(key, l.Get(key)); l.OutcomeUnknown(key) }, false},
		"a server was adopted":         {func(l *ledger.Ledger) { l.Adopt(key, "s2") }, false},
		"the machine's server is gone": {func(l *ledger.Ledger) { l.ServerGone(key, "s1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.Adopt(key, "s1")
			seen := l.Get(key)
			row.happens(l)
			if got := l.Claim(key, seen); got != row.want {
				t.Errorf("claimed: %t, want %t", got, row.want)
			}
			if row.want && l.Claim(key, l.Get(key)) {
				t.Error("a second POST is claimed while the first is under way")
			}
		})
	}
}

// What an entry knows of the machine's server: it goes with the server.
func TestWhatAnEntryKnows(t *testing.T) {
	type known struct {
		server           string
		unread           bool
		addresses        int
		allowed          string
		fault, ofAnother bool
	}
	other := key
	other.UID = "u2"
	accepted := func(l *ledger.Ledger) { l.Claim(key, l.Get(key)); l.Accepted(key, "s1") }
	failed := func(l *ledger.Ledger) { accepted(l); l.Failed(key, "s1", errors.New("no host")) }
	adopt := func(l *ledger.Ledger) { l.Adopt(key, "s1") }
	seen := func(l *ledger.Ledger, server string) {
		l.SawAddresses(key, server, []string{"10.0.0.1"})
		l.SawAllowed(key, server, "100.64.0.0/12")
	}
	adopted := func(l *ledger.Ledger) { adopt(l); seen(l, "s1") }
	all := known{server: "s1", addresses: 1, allowed: "100.64.0.0/12"}
	for name, row := range map[string]struct {
		happens func(*ledger.Ledger)
		of      ledger.Key
		want    known
	}{
		"its answer named it": {accepted, key, known{server: "s1", unread: true}},
		"it was read":         {func(l *ledger.Ledger) { accepted(l); adopt(l) }, key, known{server: "s1"}},
		"its NICs were read":  {adopted, key, all},
		"it is adopted again": {func(l *ledger.Ledger) { adopted(l); adopt(l) }, key, all},
		"NICs of another":     {func(l *ledger.Ledger) { adopt(l); seen(l, "s2") }, key, known{server: "s1"}},
		"it is gone":          {func(l *ledger.Ledger) { adopted(l); l.ServerGone(key, "s1") }, key, known{}},
		"another is adopted":  {func(l *ledger.Ledger) { adopted(l); l.Adopt(key, "s2") }, key, known{server: "s2"}},
		"another was made": {func(l *ledger.Ledger) { l.Adopt(key, "s2"); accepted(l) }, key,
			known{server: "s1", unread: true}},
		"machine is deleted":      {func(l *ledger.Ledger) { adopted(l); l.Forget(key) }, key, known{}},
		"it failed":               {failed, key, known{fault: true}},
		"one failed, one is used": {func(l *ledger.Ledger) { failed(l); adopt(l) }, key, known{server: "s1"}},
		"another Machine asks":    {adopt, other, known{server: "s1", ofAnother: true}},
		"another has its own":     {func(l *ledger.Ledger) { adopt(l); l.Adopt(other, "s2") }, other, known{server: "s2"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			row.happens(l)
			e := l.Get(row.of)
			e.ServerID = "another" // it is a copy
			e = l.Get(row.of)
			got := known{e.ServerID, e.Unread, len(e.Addresses), e.Allowed, e.Fault != nil, e.OfAnother}
			if got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// Servers that are gone are known for settle, beyond the end of the machine's entry: lists may show them still.
func TestServersThatAreGoneAreKnownForSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		for _, server := range []string{"s1", "shown"} {
			l.ServerGone(key, server)
		}
		l.ServerShown(key, "shown") // by a GET
		l.Forget(key)
		for _, isGone := range []bool{true, false} {
			<-time.After(settle)
			if l.Gone(key, "s1") != isGone || l.Gone(key, "s2") || l.Gone(key, "shown") {
				t.Errorf("s1 is known as gone: %t, want %t, and no other one", l.Gone(key, "s1"), isGone)
			}
		}
	})
}

// A machine whose server is, or may be, in one place gets none in another.
func TestAMachineHasOnePlace(t *testing.T) {
	claim := func(l *ledger.Ledger) { l.Claim(key, l.Get(key)) }
	for name, row := range map[string]struct {
		happens func(*ledger.Ledger)
		uid     string
		want    bool
	}{
		"nothing":                       {func(*ledger.Ledger) {}, "u1", false},
		"a server":                      {func(l *ledger.Ledger) { l.Adopt(key, "s1") }, "u1", true},
		"the request has no UID":        {func(l *ledger.Ledger) { l.Adopt(key, "s1") }, "", true},
		"a server of another Machine":   {func(l *ledger.Ledger) { l.Adopt(key, "s1") }, "u2", false},
		"a POST under way":              {claim, "u1", true},
		"a POST that was lost":          {func(l *ledger.Ledger) { claim(l); l.OutcomeUnknown(key) }, "u1", true},
		"a POST that was refused":       {func(l *ledger.Ledger) { claim(l); l.Refused(key) }, "u1", false},
		"a server that is gone":         {func(l *ledger.Ledger) { l.Adopt(key, "s1"); l.ServerGone(key, "s1") }, "u1", false},
		"a server that ended in ERROR":  {func(l *ledger.Ledger) { claim(l); l.Accepted(key, "s1"); l.Failed(key, "s1", nil) }, "u1", true},
		"the Machine was deleted there": {func(l *ledger.Ledger) { l.Adopt(key, "s1"); l.Forget(key) }, "u1", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			row.happens(l)
			elsewhere := key
			elsewhere.UID, elsewhere.ProjectID = row.uid, "q"
			entry := l.Get(elsewhere)
			if found := entry.Elsewhere != nil && *entry.Elsewhere == key.Place; found != row.want || entry.ServerID != "" {
				t.Errorf("%+v, want it to be elsewhere: %t", entry, row.want)
			}
			if claimed := l.Claim(elsewhere, entry); claimed == row.want {
				t.Errorf("a POST elsewhere can be claimed: %t", claimed)
			}
			if entry := l.Get(key); row.want && entry.Elsewhere != nil {
				t.Errorf("%+v, which lost its place", entry)
			}
		})
	}
}

func TestMachinesAreApart(t *testing.T) {
	l := newLedger()
	l.Adopt(key, "s1")
	for _, change := range []func(*ledger.Key){
		func(key *ledger.Key) { key.Endpoint = "https://other" },
		func(key *ledger.Key) { key.Namespace = "other" },
		func(key *ledger.Key) { key.Machine = "m2" },
	} {
		other := key
		change(&other)
		if entry := l.Get(other); entry.ServerID != "" || entry.Elsewhere != nil {
			t.Errorf("%+v: %+v", other, entry)
		}
	}
}

func TestEntriesThatNobodyUsesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.Adopt(key, "s1")
		for range 13 {
			<-time.After(50 * time.Minute)
			if entry := l.Get(key); entry.ServerID == "" {
				t.Fatal("it was forgotten while it was in use")
			}
		}
		<-time.After(65 * time.Minute)
		l.Adopt(ledger.Key{Machine: "other"}, "s")
		if entry := l.Get(key); entry.ServerID != "" {
			t.Errorf("%+v is kept", entry)
		}
	})
}

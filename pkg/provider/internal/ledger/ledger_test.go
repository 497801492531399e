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

var key = ledger.Key{Endpoint: "https://iaas", Namespace: "ns", Machine: "m1", UID: "u1",
	Created: time.Unix(1767787200, 0), Place: ledger.Place{ProjectID: "p", Region: "eu01"}}

func newLedger() *ledger.Ledger { return ledger.New(clock.RealClock{}, settle) }

// step is what happens to the Machine's entry.
type step func(*ledger.Ledger)

type steps []step

func (s steps) happen(l *ledger.Ledger) {
	for _, step := range s {
		step(l)
	}
}

// post is a POST that ends after ten seconds.
func post(end step) step {
	return func(l *ledger.Ledger) { steps{posting, waited(10 * time.Second), end}.happen(l) }
}

func posting(l *ledger.Ledger) {
	if !l.Claim(key, l.Get(key)) {
		panic("the POST cannot be claimed")
	}
}

var (
	refused = post(func(l *ledger.Ledger) { l.Refused(key) })
	lost    = post(func(l *ledger.Ledger) { l.OutcomeUnknown(key) })
)

func accepted(server string) step { return post(func(l *ledger.Ledger) { l.Accepted(key, server) }) }

func adopted(server string) step { return func(l *ledger.Ledger) { l.Adopt(key, server) } }

func failed(server string) step {
	return func(l *ledger.Ledger) { l.Failed(key, server, errors.New("no host")) }
}

func gone(server string) step { return func(l *ledger.Ledger) { l.ServerGone(key, server) } }

func notOurs(server string) step { return func(l *ledger.Ledger) { l.NotOurs(key, server) } }

// nicsRead is that somebody read the server's NICs.
func nicsRead(server string) step {
	return func(l *ledger.Ledger) {
		l.SawAddresses(key, server, []string{"10.0.0.1"})
		l.SawAllowed(key, server, "100.64.0.0/12")
	}
}

// provedNone is that look-ups proved that there is no server; the last one begins later.
func provedNone(later time.Duration) step {
	return func(l *ledger.Ledger) { l.ProvedNone(key, time.Now().Add(later)) }
}

func forgotten(l *ledger.Ledger) { l.Forget(key) }

func waited(d time.Duration) step { return func(*ledger.Ledger) { <-time.After(d) } }

// bubble runs a row of a table in virtual time.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// What an open POST leaves in doubt, until settle after its end.
func TestNoPostBefore(t *testing.T) {
	const first, second = 10*time.Second + settle, 20*time.Second + settle // after the ends of two POSTs
	for name, row := range map[string]struct {
		steps steps
		// after is how long after the beginning it is certain; 0 is at any time.
		after time.Duration
	}{
		"nothing happened":                                   {nil, 0},
		"a POST is under way":                                {steps{posting, waited(time.Minute)}, time.Minute + settle},
		"it was refused":                                     {steps{refused}, 0},
		"it was accepted":                                    {steps{accepted("s1")}, first},
		"its outcome is unknown":                             {steps{lost}, first},
		"it was accepted and the server is gone":             {steps{accepted("s1"), adopted("s1"), gone("s1")}, 0},
		"it was accepted and no read ever showed the server": {steps{accepted("s1"), gone("s1")}, first},
		"another server was found than it made":              {steps{lost, adopted("s0")}, first},
		"the server found is gone, not what the POST made":   {steps{lost, adopted("s0"), gone("s0")}, first},
		"of two the server of the second is gone":            {steps{lost, accepted("s2"), adopted("s2"), gone("s2")}, first},
		"of two unknown ones the last counts":                {steps{lost, lost}, second},
		"a refused one after an unknown one closes itself":   {steps{lost, refused}, first},
		"its answer named somebody else's server":            {steps{accepted("s1"), notOurs("s1"), gone("s1")}, first},
		"look-ups proved too early that there is none":       {steps{lost, provedNone(settle - time.Second)}, first},
		"look-ups proved that there is none":                 {steps{lost, provedNone(settle)}, 0},
		"the machine was deleted":                            {steps{lost, forgotten}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			l := newLedger()
			want := time.Time{}
			if row.after > 0 {
				want = time.Now().Add(row.after)
			}
			row.steps.happen(l)
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
	}
}

func TestClaim(t *testing.T) {
	for name, row := range map[string]struct {
		steps steps
		want  bool
	}{
		"nothing since":                {nil, true},
		"NICs were read since":         {steps{nicsRead("s1")}, true},
		"another POST is under way":    {steps{posting}, false},
		"another POST was refused":     {steps{refused}, false},
		"another POST was lost":        {steps{lost}, false},
		"a server was adopted":         {steps{adopted("s2")}, false},
		"the machine's server is gone": {steps{gone("s1")}, false},
	} {
		bubble(t, name, func(t *testing.T) {
			l := newLedger()
			l.Adopt(key, "s1")
			seen := l.Get(key)
			row.steps.happen(l)
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
		server    string
		unread    bool
		addresses int
		allowed   string
		fault     bool
		ofAnother bool
		ofYounger bool
	}
	other, younger := key, key
	other.UID, younger.UID, younger.Created = "u2", "u3", key.Created.Add(time.Second)
	adoptedByOther := func(l *ledger.Ledger) { l.Adopt(other, "s2") }
	adoptedByYounger := func(l *ledger.Ledger) { l.Adopt(younger, "s3") }
	claimedByYounger := func(l *ledger.Ledger) { l.Claim(younger, l.Get(younger)) }
	s1 := known{server: "s1"}
	all := known{server: "s1", addresses: 1, allowed: "100.64.0.0/12"}
	for name, row := range map[string]struct {
		steps steps
		of    ledger.Key
		want  known
	}{
		"its answer named it":     {steps{accepted("s1")}, key, known{server: "s1", unread: true}},
		"it was read":             {steps{accepted("s1"), adopted("s1")}, key, s1},
		"its NICs were read":      {steps{adopted("s1"), nicsRead("s1")}, key, all},
		"it is adopted again":     {steps{adopted("s1"), nicsRead("s1"), adopted("s1")}, key, all},
		"NICs of another":         {steps{adopted("s1"), nicsRead("s2")}, key, s1},
		"it is gone":              {steps{adopted("s1"), nicsRead("s1"), gone("s1")}, key, known{}},
		"another is adopted":      {steps{adopted("s1"), nicsRead("s1"), adopted("s2")}, key, known{server: "s2"}},
		"another was made":        {steps{adopted("s2"), accepted("s1")}, key, known{server: "s1", unread: true}},
		"machine is deleted":      {steps{adopted("s1"), nicsRead("s1"), forgotten}, key, known{}},
		"it failed":               {steps{accepted("s1"), failed("s1")}, key, known{fault: true}},
		"one failed, one is used": {steps{accepted("s1"), failed("s1"), adopted("s1")}, key, s1},
		"another Machine asks":    {steps{adopted("s1")}, other, known{server: "s1", ofAnother: true}},
		"another has its own":     {steps{adopted("s1"), adoptedByOther}, other, known{server: "s2"}},
		"a younger asks":          {steps{adopted("s1")}, younger, known{server: "s1", ofAnother: true}},
		"a younger has its own":   {steps{adoptedByYounger, forgotten}, key, known{server: "s3", ofAnother: true, ofYounger: true}},
		"a younger asks for one":  {steps{claimedByYounger}, key, known{ofAnother: true, ofYounger: true}},
	} {
		bubble(t, name, func(t *testing.T) {
			l := newLedger()
			row.steps.happen(l)
			e := l.Get(row.of)
			e.ServerID = "another" // it is a copy
			e = l.Get(row.of)
			got := known{e.ServerID, e.Unread, len(e.Addresses), e.Allowed, e.Fault != nil, e.OfAnother, e.OfYounger}
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
	for name, row := range map[string]struct {
		steps steps
		uid   string
		want  bool
	}{
		"nothing":                       {nil, "u1", false},
		"a server":                      {steps{adopted("s1")}, "u1", true},
		"the request has no UID":        {steps{adopted("s1")}, "", true},
		"a server of another Machine":   {steps{adopted("s1")}, "u2", false},
		"a POST under way":              {steps{posting}, "u1", true},
		"a POST that was lost":          {steps{lost}, "u1", true},
		"a POST that was refused":       {steps{refused}, "u1", false},
		"a server that is gone":         {steps{adopted("s1"), gone("s1")}, "u1", false},
		"a server that ended in ERROR":  {steps{accepted("s1"), failed("s1")}, "u1", true},
		"the Machine was deleted there": {steps{adopted("s1"), forgotten}, "u1", false},
	} {
		bubble(t, name, func(t *testing.T) {
			l := newLedger()
			row.steps.happen(l)
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

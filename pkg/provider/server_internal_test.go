// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// epoch is the time 0 of the tables.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// eachAt splits a line such as "404@0s others@1s-20s" into what was seen, and when that read began and ended.
func eachAt(t testing.TB, line string, add func(what string, began, ended time.Time)) {
	t.Helper()
	at := func(offset string) time.Time {
		d, err := time.ParseDuration(offset)
		if err != nil {
			t.Fatal(err)
		}
		return epoch.Add(d)
	}
	for word := range strings.FieldsSeq(line) {
		what, when, _ := strings.Cut(word, "@")
		began, ended, takesTime := strings.Cut(when, "-")
		if !takesTime {
			ended = began
		}
		add(what, at(began), at(ended))
	}
}

// readsOf returns the reads of a line: 404, 403 and 503 are GETs, others and empty are lists.
func readsOf(t testing.TB, line string) (reads []absentRead) {
	t.Helper()
	kinds := map[string]evidence{
		"404": getNotFound, "403": getForbidden, "503": getFailed, "others": listOfOthers, "empty": listOfNone,
	}
	eachAt(t, line, func(what string, began, ended time.Time) {
		kind, ok := kinds[what]
		if !ok {
			t.Fatalf("unknown read %q", what)
		}
		reads = append(reads, absentRead{kind, began, ended})
	})
	return reads
}

func TestGone(t *testing.T) {
	var (
		creating = expectation{}
		deleting = expectation{isDeletion: true} // no DELETE was accepted yet
		expected = expectation{isExpected: true, isDeletion: true}
		listed   = expectation{isExpected: true, isDeletion: true, listsAlone: true}
		young    = expectation{isExpected: true, isDeletion: true, listsLag: true}
		replaced = expectation{isExpected: true} // a failed server, in a creation
		unread   = func(e expectation) expectation { e.getsFail = true; return e }
	)
	for name, row := range map[string]struct {
		reads string
		seen  expectation
		want  bool
	}{
		"no read": {"", listed, false},

		"expected: 404, a list of others":             {"404@0s others@1s", expected, true},
		"expected: 404, an empty list":                {"404@0s empty@1s", expected, true},
		"expected: a list of others, 404":             {"others@0s 404@1s", expected, true},
		"expected: an empty list, 404":                {"empty@0s 404@1s", expected, true},
		"expected: 404 and a list within 1 s":         {"404@0s others@999ms", expected, false},
		"expected: 1 s from the start of a slow 404":  {"404@0s-500ms others@1s", expected, false},
		"expected: 1 s from the end of a slow 404":    {"404@0s-500ms others@1500ms-2s", expected, true},
		"expected: the second read ends 1 s later":    {"404@0s others@500ms-5s", expected, false},
		"expected: 404 twice, lists lag":              {"404@0s 404@1s", young, true},
		"expected: 404 twice, lists do not lag":       {"404@0s 404@1s 404@15s", expected, false},
		"expected: 404 twice within 1 s":              {"404@0s 404@999ms", young, false},
		"expected: a 404 alone":                       {"404@0s", expected, false},
		"expected: one slow 404":                      {"404@0s-20s", expected, false},
		"expected: 404, a failed GET":                 {"404@0s 503@1s", expected, false},
		"expected: 404, a failed GET, a list":         {"404@0s 503@1s others@2s", expected, true},
		"expected: 404, 403":                          {"404@0s 403@1s", expected, false},
		"expected: 1 s from a failed GET only":        {"503@0s 404@1s others@1500ms", expected, false},
		"expected: in a creation, 404 and a list":     {"404@0s others@1s", replaced, true},
		"expected: a list, failed GETs":               {"others@0s 503@1s 503@15s", expected, false},
		"expected: 403, a list of others":             {"403@0s others@1s", expected, true},
		"expected: a list of others, 403":             {"others@0s 403@1s", expected, true},
		"expected: 403 and a list within 1 s":         {"403@0s others@999ms", expected, false},
		"expected: 403 and empty lists":               {"403@0s empty@1s empty@15s", expected, false},
		"expected: 403 twice":                         {"403@0s 403@1s 403@15s 403@30s", expected, false},
		"expected: failed GETs only":                  {"503@0s 503@1s 503@15s 503@30s", expected, false},
		"expected: 404 one minute before a list":      {"404@0s others@1m", expected, true},
		"expected: 404 over a minute before a list":   {"404@0s others@60001ms", expected, false},
		"expected: a list over a minute before a 404": {"others@0s 404@60001ms", expected, false},
		"expected: 404s over a minute apart":          {"404@0s 404@60001ms", young, false},
		"expected: 403 over a minute before a list":   {"403@0s others@60001ms", expected, false},
		"expected: a minute counts from a read's end": {"404@0s-20s others@80s", expected, true},
		"expected: a failed GET makes others old":     {"404@0s others@1s 503@62s", expected, false},

		"lists alone: two of others":                      {"others@0s others@1s", listed, true},
		"lists alone: two of others within 1 s":           {"others@0s others@999ms", listed, false},
		"lists alone: one of others":                      {"others@0s", listed, false},
		"lists alone: one slow list of others":            {"others@0s-20s", listed, false},
		"lists alone: two empty ones":                     {"empty@0s empty@1s", listed, false},
		"lists alone: one of others, an empty one":        {"others@0s empty@1s", listed, false},
		"lists alone: many empty ones":                    {"empty@0s empty@1s empty@15s empty@30s", listed, false},
		"lists alone: over a minute apart":                {"others@0s others@60001ms", listed, false},
		"lists alone: no list showed it DELETING, two":    {"others@0s others@1s", expected, false},
		"lists alone: no list showed it DELETING, many":   {"others@0s others@1s others@15s others@30s", expected, false},
		"lists alone: no list showed it, in a creation":   {"others@0s others@1s others@15s others@30s", replaced, false},
		"lists alone: nobody asked for its deletion":      {"others@0s others@1s others@15s others@30s", deleting, false},
		"lists alone: nobody asked, in a creation":        {"others@0s others@1s others@15s others@30s", creating, false},
		"lists alone: nobody asked, but one had shown it": {"others@0s others@1s", expectation{listsAlone: true}, false},

		"unexpected: 404, a list of others, 15 s":       {"404@0s others@15s", creating, true},
		"unexpected: a list of others, 404, 15 s":       {"others@0s 404@15s", creating, true},
		"unexpected: 404, an empty list, 15 s":          {"404@0s empty@15s", creating, true},
		"unexpected: in a deletion, 404 and a list":     {"404@0s others@15s", deleting, true},
		"unexpected: 404s and lists within 15 s":        {"404@0s others@1s 404@7s others@14999ms", creating, false},
		"unexpected: in a deletion, within 15 s":        {"404@0s others@1s 404@14999ms", deleting, false},
		"unexpected: 15 s from the start of a slow 404": {"404@0s-1s others@15s", creating, false},
		"unexpected: a list between 404s over 15 s":     {"404@0s others@1s 404@15s", creating, true},
		"unexpected: a 404 alone":                       {"404@0s", creating, false},
		"unexpected: 404s without a list":               {"404@0s 404@1s 404@15s 404@30s 404@60s", creating, false},
		"unexpected: 404s without a list, deletion":     {"404@0s 404@1s 404@15s 404@30s 404@60s", deleting, false},
		"unexpected: 404s, lists fail, GETs fail too":   {"404@0s 503@5s 404@15s 503@20s", deleting, false},
		"unexpected: 404 over a minute before a list":   {"404@0s others@60001ms", creating, false},
		"unexpected: the first of three is too old":     {"404@0s others@50s 404@60001ms", creating, false},
		"unexpected: empty lists only":                  {"empty@0s empty@1s empty@15s empty@30s", deleting, false},
		"unexpected: 15 s from a failed GET only":       {"503@0s 404@1s others@15s", creating, false},
		"unexpected: failed GET, a list":                {"503@0s others@15s", creating, false},

		"GETs fail: three lists over 15 s":           {"503@0s others@1s others@5s others@16s", unread(deleting), true},
		"GETs fail: the last read is the failed GET": {"others@0s others@1s others@15s 503@16s", unread(deleting), true},
		"GETs fail: two lists":                       {"503@0s others@1s others@16s", unread(deleting), false},
		"GETs fail: three lists within 15 s": {"503@0s others@1s others@5s others@15999ms",
			unread(deleting), false},
		"GETs fail: three empty lists":           {"503@0s empty@1s empty@5s empty@16s", unread(deleting), false},
		"GETs fail: two of others, an empty one": {"503@0s others@1s empty@5s others@16s", unread(deleting), false},
		"GETs fail: in a creation, three lists":  {"503@0s others@1s others@5s others@16s", unread(creating), false},
		"GETs fail: in a creation, many lists": {"503@0s others@1s others@5s others@16s 503@20s others@40s",
			unread(creating), false},
		"GETs fail: the first of three lists is old": {"others@0s 503@30s others@45s others@60001ms",
			unread(deleting), false},
		"GETs fail, expected: three lists over 15 s": {"503@0s others@1s others@5s others@16s", unread(expected), true},
		"GETs fail, expected: three empty lists":     {"503@0s empty@1s empty@5s empty@16s", unread(expected), true},
		"GETs fail, expected: two lists":             {"503@0s others@1s others@16s", unread(expected), false},
		"GETs fail, expected: three lists within 15 s": {"503@0s others@1s others@5s others@15999ms",
			unread(expected), false},
		"GETs fail, expected: creation, three lists": {"503@0s others@1s others@5s others@16s", unread(replaced), false},
		"GETs fail, expected: creation, three empty": {"503@0s empty@1s empty@5s empty@16s", unread(replaced), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gone(readsOf(t, row.reads), row.seen); got != row.want {
				t.Errorf("gone is %t, want %t", got, row.want)
			}
		})
	}
}

// newQuietCall is a call of no machine, which reads nothing.
func newQuietCall() *call {
	return &call{
		readers: &readers{process: &process{memory: newMemory(clocktesting.NewFakePassiveClock(epoch), DefaultSettle)}}}
}

// Lists prove a server gone by themselves after one that showed it DELETING, and within a minute of our DELETE.
func TestListsAlone(t *testing.T) {
	byList, byGet := true, false
	deleting, running := &Server{Status: statusDeleting}, &Server{Status: statusActive}
	const minute = time.Minute
	never, before := "never", "before the read"
	for name, row := range map[string]struct {
		server   *Server
		isListed bool
		deleted  string // when our DELETE was accepted
		after    time.Duration
		want     bool
	}{
		"a list, just now":              {deleting, byList, before, 0, true},
		"a list, a minute after DELETE": {deleting, byList, before, minute, true},
		"a list, more than a minute":    {deleting, byList, before, minute + 1, false},
		"a list that shows it ACTIVE":   {running, byList, before, 0, false},
		"a list, but no DELETE is ours": {deleting, byList, never, 0, false},
		"a GET, and no list":            {deleting, byGet, before, 0, false},
		"a GET, and no DELETE is ours":  {deleting, byGet, never, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracked := &tracked{call: newQuietCall()}
			if row.deleted == before {
				tracked.removal.accepted, tracked.removal.first = epoch, epoch
			}
			tracked.show(row.server, row.isListed)
			if got := tracked.expectation(epoch.Add(row.after)).listsAlone; got != row.want {
				t.Errorf("listsAlone is %t, want %t", got, row.want)
			}
		})
	}
}

// answers is an API whose GETs answer one after the other as it says, and whose DELETEs are accepted.
type answers struct {
	StackitClient
	gets []int // status codes; 200 is a server in ACTIVE
}

func (a *answers) GetServer(context.Context, string) (*Server, error) {
	status := a.gets[0]
	a.gets = a.gets[1:]
	if status == http.StatusOK {
		return &Server{Status: statusActive}, nil
	}
	return nil, &APIError{Call: callGetServer, StatusCode: status, Message: "text", isOfIaaS: true}
}

func (*answers) DeleteServer(context.Context, string) error { return nil }

func (*answers) ListServers(context.Context, map[string]string) ([]Server, error) { return nil, nil }

// newTracked returns a server of a call with that API.
func newTracked(clock clock.Clock, gets ...int) *tracked {
	readers := &readers{
		process: &process{clock: clock, meters: newMeters(clock), memory: newMemory(clock, DefaultSettle)},
		client:  &answers{gets: gets}, turn: func(context.Context) error { return nil },
		servers: recent.New[string, *lister[Server]](clock, readerLifetime),
	}
	c := &call{readers: readers}
	return c.track("s1")
}

// Lists decide by themselves only while GETs fail: the last one counts.
func TestGETsFail(t *testing.T) {
	for name, row := range map[string]struct {
		gets      []int
		isDeleted bool // our DELETE was accepted
		want      bool
	}{
		"OK":                    {[]int{200}, false, false},
		"404":                   {[]int{404}, true, false},
		"503":                   {[]int{200, 503}, false, true},
		"403":                   {[]int{403}, false, true},
		"403, after our DELETE": {[]int{403}, true, true},
		"503, then OK":          {[]int{503, 200}, true, false},
		"503, then 404":         {[]int{503, 404}, true, false},
		"403, then OK":          {[]int{403, 200}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracked := newTracked(clocktesting.NewFakeClock(epoch), row.gets...)
			if row.isDeleted {
				tracked.removal.accepted = epoch
			}
			for range row.gets {
				tracked.get(t.Context(), nil)
			}
			if tracked.getsFail != row.want {
				t.Errorf("getsFail is %t, want %t", tracked.getsFail, row.want)
			}
		})
	}
}

// The minute in which lists are a proof begins with the first DELETE of a server that was not DELETING already.
func TestTheFirstDELETE(t *testing.T) {
	const never = -1
	for name, row := range map[string]struct {
		states []string // at each DELETE
		want   int
	}{
		"one":                             {[]string{statusActive}, 0},
		"of a server in DELETING":         {[]string{statusDeleting}, never},
		"a second one":                    {[]string{statusActive, statusDeleting}, 0},
		"a second one without DELETING":   {[]string{statusActive, statusActive}, 0},
		"another one was first: DELETING": {[]string{statusDeleting, statusError}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(epoch)
			tracked := newTracked(clock)
			var want time.Time
			for i, state := range row.states {
				clock.Step(time.Second)
				if i == row.want {
					want = clock.Now()
				}
				tracked.last.server = &Server{ID: "s1", Status: state}
				if err := tracked.sendDelete(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := tracked.removal.first; !got.Equal(want) {
				t.Errorf("the first is %v, want %v", got, want)
			}
		})
	}
}

// The first answer may come late, because the process stood still or lists of other calls fail.
func TestOneRefusalEndsNoCall(t *testing.T) {
	clock := clocktesting.NewFakeClock(epoch)
	c := newQuietCall()
	c.clock, c.began = clock, epoch
	w := c.newWait()
	refusal := &APIError{Call: callListServers, StatusCode: http.StatusForbidden, Message: "not now"}
	clock.Step(refusedFor + time.Second)
	if err := w.afterRead(t.Context(), refusal, ""); err != nil {
		t.Errorf("the first refusal ends it: %v", err)
	}
	clock.Step(refusedFor)
	if err := w.afterRead(t.Context(), refusal, ""); err == nil {
		t.Error("the second does not")
	}
}

// What a request that was held back says of another one's answer is less than that answer.
func TestTheLastFailedCallIsOneThatWasSent(t *testing.T) {
	answered := &APIError{Call: callDeleteServer, StatusCode: 500, Message: "it cannot be detached"}
	refused := &APIError{Call: callDeleteServer, Err: &spi.NotSentError{Attempted: true, Err: errors.New("proxy")}}
	heldBack := func() *APIError {
		return &APIError{Call: callDeleteServer, Err: &spi.NotSentError{Err: errors.New("held")}}
	}
	first, second := heldBack(), heldBack()
	read := &APIError{Call: callGetServer, StatusCode: 502}
	for name, row := range map[string]struct{ before, next, want *APIError }{
		"an answer, then held back":                {answered, first, answered},
		"a proxy that refuses, then held back":     {refused, first, refused},
		"an answer, then a proxy that refuses":     {answered, refused, refused},
		"held back, then an answer":                {first, answered, answered},
		"held back twice":                          {first, second, second},
		"held back at first":                       {nil, first, first},
		"a read long ago, then a DELETE held back": {read, first, first},
		"an answer, then a read":                   {answered, read, read},
	} {
		t.Run(name, func(t *testing.T) {
			c := &call{}
			for _, failed := range []*APIError{row.before, row.next} {
				if failed != nil {
					c.noteFailed(failed)
				}
			}
			if got := c.failed.Load(); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

var begin = time.Unix(1e9, 0)

func at(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

// event is what happens to an absence, and when: in seconds from the beginning. It is a
// read, or a DELETE and its answer.
type event struct {
	at, takes float64
	read      observation
	sent      answerToDelete
	// fails says that it is a GET that fails.
	fails bool
}

type answerToDelete string

const (
	noDelete answerToDelete = ""
	yes      answerToDelete = "accepted"
	notFound answerToDelete = "404"
	refused  answerToDelete = "refused"
)

func gone(at float64) event { return event{at: at} }

func listed(at float64, others bool) event {
	return event{at: at, read: observation{listed: true, others: others}}
}

func shown(at float64, status string, list bool) event {
	return event{at: at, read: observation{servers: []Server{{ID: "s", Status: status}}, listed: list, others: list}}
}

func forbidden(at float64) event { return event{at: at, read: observation{forbidden: true}} }

func selected(at float64) event {
	return event{at: at, read: observation{listed: true, selected: true}}
}

func slow(at, takes float64) event {
	return event{at: at, takes: takes, read: observation{listed: true}}
}

func blind(at float64) event {
	return event{at: at, read: observation{listed: true, others: true, blind: true}}
}

func fails(at float64) event { return event{at: at, fails: true} }

func sent(at float64, answer answerToDelete) event { return event{at: at, sent: answer} }

// happens lets all events happen; it says whether the server is proved gone, and what the
// deletion needs after the last one.
func happens(t *testing.T, a *absence, events []event) (isGone bool, next step) {
	t.Helper()
	status := statusActive
	for i, e := range events {
		if isGone {
			t.Fatalf("proved before event %d", i+1)
		}
		if e.sent != noDelete {
			a.deleteSent(e.sent == yes, e.sent == notFound, status, at(e.at))
			continue
		}
		if e.fails {
			a.getFailed()
			continue
		}
		e.read.began, e.read.ended = at(e.at), at(e.at+e.takes)
		if server := e.read.server(); server != nil {
			status = server.Status
		}
		if isGone = a.add(&e.read); !isGone {
			next = a.nextStep(&e.read, at(e.at))
		}
	}
	return isGone, next
}

func TestWhatProvesAServerGone(t *testing.T) {
	const others, empty = true, false
	const seen = statusActive
	ourDelete, deleting, deletingInList := sent(1, yes), shown(2, statusDeleting, false), shown(2, statusDeleting, true)
	for name, row := range map[string]struct {
		certain float64 // 0 is long ago
		events  []event
		want    bool
	}{
		"a GET and a list":                          {0, []event{ourDelete, gone(3), listed(4, others)}, true},
		"a GET and an empty list":                   {0, []event{ourDelete, gone(3), listed(4, empty)}, true},
		"a list and a GET":                          {0, []event{ourDelete, listed(3, others), gone(4)}, true},
		"an empty list and a GET":                   {0, []event{ourDelete, listed(3, empty), gone(4)}, true},
		"a GET alone":                               {0, []event{ourDelete, gone(3)}, false},
		"a list alone":                              {0, []event{ourDelete, deletingInList, listed(3, others)}, false},
		"two reads less than a second apart":        {0, []event{ourDelete, gone(3), listed(3.9, others)}, false},
		"the second comes a second after the first": {0, []event{ourDelete, gone(3), listed(3.9, others), listed(4, others)}, true},
		"two GETs where lists count":                {0, []event{ourDelete, gone(3), gone(4), gone(5)}, false},
		"seen in between":                           {0, []event{ourDelete, gone(3), shown(4, seen, false), listed(5, others)}, false},
		"seen in between by a list":                 {0, []event{ourDelete, gone(3), shown(4, seen, true), listed(5, others)}, false},
		"another's deletion":                        {0, []event{deleting, gone(3), listed(4, others)}, true},

		"nobody expects it":                  {0, []event{gone(3), listed(4, others), gone(6), gone(10)}, false},
		"nobody expects it, for 15 s":        {0, []event{gone(3), listed(4, others), gone(6), gone(10), gone(18)}, true},
		"nobody expects it, for 15 s, GETs":  {0, []event{gone(3), gone(6), gone(10), gone(18)}, false},
		"nobody expects it, for 15 s, lists": {0, []event{listed(3, others), listed(18, others)}, false},
		"nobody expects it, seen after 12 s": {0, []event{gone(3), listed(4, others), shown(15, seen, false), gone(16), gone(18.1)}, false},
		"the first read takes long":          {0, []event{{at: 3, takes: 12}, listed(16, others), gone(18.1)}, false},
		"a DELETE that was answered 404":     {0, []event{sent(1, notFound), gone(3), listed(4, others)}, false},
		"a DELETE that was refused":          {0, []event{sent(1, refused), gone(3), listed(4, others)}, false},
		"accepted once, then 404":            {0, []event{ourDelete, sent(2, notFound), gone(3), listed(4, others)}, true},

		"two lists":                                {0, []event{ourDelete, listed(3, others), listed(4, others)}, false},
		"two lists after one showed it DELETING":   {0, []event{ourDelete, deletingInList, listed(3, others), listed(4, others)}, true},
		"two lists after a GET showed it DELETING": {0, []event{ourDelete, deleting, listed(3, others), listed(4, others)}, false},
		"the first of two lists is empty":          {0, []event{ourDelete, deletingInList, listed(3, empty), listed(4, others)}, false},
		"the second of two lists is empty":         {0, []event{ourDelete, deletingInList, listed(3, others), listed(4, empty)}, false},
		"two lists a minute after our DELETE":      {0, []event{ourDelete, deletingInList, listed(62, others), listed(63, others)}, false},
		"two lists after one showed it ACTIVE": {
			0, []event{ourDelete, shown(2, seen, true), listed(3, others), listed(4, others)}, false},
		"two lists after one showed it DELETING before our DELETE": {
			0, []event{deletingInList, sent(2.5, yes), listed(3, others), listed(4, others)}, false},
		"two lists of one that was DELETING before our DELETE": {0, []event{
			deleting, sent(2.5, yes), shown(2.8, statusDeleting, true), listed(3, others), listed(4, others),
		}, false},
		"two lists after a DELETE that had failed before": {0, []event{
			ourDelete, deletingInList, shown(50, statusError, false), sent(51, yes),
			listed(70, others), listed(71, others),
		}, false},

		"after a 403 to a GET, a list":                         {0, []event{ourDelete, forbidden(3), listed(4, others)}, true},
		"a list, and a 403 to a GET":                           {0, []event{ourDelete, listed(3, empty), forbidden(4)}, true},
		"403s alone":                                           {0, []event{ourDelete, forbidden(3), forbidden(4), forbidden(30)}, false},
		"403s to GETs of a young server":                       {30, []event{ourDelete, forbidden(3), forbidden(4)}, false},
		"lists while GETs fail, after our DELETE":              {0, []event{ourDelete, fails(2), selected(3), selected(18)}, true},
		"lists while GETs fail, after our DELETE, within 15 s": {0, []event{ourDelete, fails(2), selected(3), selected(17)}, false},
		"lists while GETs fail, the first may be cut off":      {0, []event{ourDelete, fails(2), listed(3, others), selected(18)}, false},
		"lists while GETs fail, the last may be cut off":       {0, []event{ourDelete, fails(2), selected(3), listed(18, others)}, false},
		"lists while GETs fail":                                {0, []event{fails(2), listed(3, others), listed(18, others)}, true},
		"lists while GETs fail, the first is empty":            {0, []event{fails(2), listed(3, empty), listed(18, others)}, false},
		"lists while GETs fail, the last is empty":             {0, []event{fails(2), listed(3, others), listed(18, empty)}, false},
		"lists while GETs fail, of a young server":             {30, []event{fails(2), listed(3, others), listed(18, others)}, false},
		"a GET and a list that cannot show it":                 {0, []event{ourDelete, gone(3), blind(4)}, false},
		"two GETs, and a list that cannot show it":             {0, []event{ourDelete, gone(3), blind(4), gone(5)}, true},
		"a 403 and a list that cannot show it":                 {0, []event{ourDelete, forbidden(3), blind(4), forbidden(5)}, false},
		"two GETs of a young server":                           {30, []event{deleting, gone(3), gone(4), gone(29)}, false},
		"a GET and a list of a young server":                   {30, []event{deleting, gone(3), listed(4, others)}, false},
		"two GETs of a young server after our DELETE":          {30, []event{ourDelete, gone(3), gone(4)}, true},
		"a GET before our DELETE":                              {30, []event{gone(3), sent(3.5, yes), gone(4)}, false},
		"lists of a young server after our DELETE":             {30, []event{ourDelete, deletingInList, listed(3, others), listed(4, others)}, true},
		"two GETs, the second where lists count":               {30, []event{ourDelete, gone(29.5), gone(30.5)}, false},
		"a GET of a young server, and a list that counts":      {30, []event{ourDelete, gone(29.5), listed(30.5, others)}, true},
		"the second ends 45 s after the first began":           {0, []event{ourDelete, gone(3), slow(4, 44)}, true},
		"the second ends later":                                {0, []event{ourDelete, gone(3), slow(4, 44.1)}, false},
		"the second ends later, and two come":                  {0, []event{ourDelete, gone(3), slow(4, 44.1), gone(50), listed(51, empty)}, true},
		"the first takes long, too":                            {0, []event{ourDelete, {at: 3, takes: 20}, slow(24, 24.1)}, false},
		"the second and the third end late":                    {0, []event{ourDelete, gone(3), slow(4, 60), {at: 65, takes: 60}}, false},
		"all end late":                                         {0, []event{ourDelete, gone(3), slow(4, 60), {at: 65, takes: 60}, slow(126, 60)}, true},
		"once lists count":                                     {30, []event{gone(3), gone(30), listed(31, others)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := absence{noPostBefore: at(row.certain), isDeletion: true, selectable: true}
			if got, _ := happens(t, &a, row.events); got != row.want {
				t.Errorf("proved: %t, want %t", got, row.want)
			}
		})
	}
}

// The next read is one that can bring the row of signs to its end.
func TestHowAServerIsReadThatMayBeGone(t *testing.T) {
	ourDelete, deletingInList := sent(1, yes), shown(2, statusDeleting, true)
	for name, row := range map[string]struct {
		certain float64
		events  []event
		want    readKind
		due     float64 // 0 is on the poll interval
	}{
		"no sign":                                {0, nil, byAny, 0},
		"after a GET":                            {0, []event{ourDelete, gone(3)}, byList, 4},
		"after a GET of a young server":          {30, []event{ourDelete, gone(3)}, byGet, 4},
		"after a list":                           {0, []event{ourDelete, listed(3, true)}, byGet, 4},
		"after a list, once one showed DELETING": {0, []event{ourDelete, deletingInList, listed(3, true)}, byAny, 4},
		"after an empty list":                    {0, []event{ourDelete, deletingInList, listed(3, false)}, byGet, 4},
		"after a list that cannot show it":       {0, []event{ourDelete, gone(3), blind(4)}, byGet, 5},
		"nobody expects it":                      {0, []event{gone(3)}, byGet, 4},
		"nobody expects it, the third read":      {0, []event{gone(3), gone(4)}, byList, 6},
		"nobody expects it, the fourth read":     {0, []event{gone(3), gone(4), listed(6, true)}, byGet, 10},
		"nobody expects it, the last read":       {0, []event{gone(3), listed(4, true), gone(6), gone(10)}, byGet, 18},
		"nobody expects it of a young server":    {30, []event{gone(3), gone(4), gone(6), gone(10), gone(18)}, byList, 30},
		"after a 403 of a young server":          {30, []event{ourDelete, forbidden(3)}, byList, 4},
		"a list may be old after a 404":          {0, []event{ourDelete, gone(3), shown(4, statusActive, true)}, byGet, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := absence{noPostBefore: at(row.certain)}
			happens(t, &a, row.events)
			last := 0.0
			if len(row.events) > 0 {
				last = row.events[len(row.events)-1].at
			}
			due, inRow := a.nextSign(at(last))
			if inRow != (row.due != 0) || inRow && !due.Equal(at(row.due)) {
				t.Errorf("due after %s (%t), want %v s", due.Sub(begin), inRow, row.due)
			}
			if got := a.nextRead(later(due, at(last))); got != row.want {
				t.Errorf("read %d, want %d", got, row.want)
			}
		})
	}
}

func TestWhatADeletionNeeds(t *testing.T) {
	const get, list = false, true
	ourDelete, inError := sent(1, yes), shown(4, statusError, get)
	for name, row := range map[string]struct {
		events []event
		want   step
	}{
		"nobody asked":                    {[]event{shown(1, statusActive, get)}, askAgain},
		"nobody asked, seen by a list":    {[]event{shown(1, statusActive, list)}, askAgain},
		"it keeps its state for a while":  {[]event{ourDelete, shown(15, statusActive, get)}, waitOn},
		"it keeps its state":              {[]event{ourDelete, shown(17, statusActive, get)}, askAgain},
		"a list shows the old state":      {[]event{ourDelete, shown(17, statusActive, list)}, lookCloser},
		"a list shows it while GETs fail": {[]event{ourDelete, fails(2), shown(17, statusActive, list)}, askAgain},
		"a list shows it after a 403 to a GET": {
			[]event{ourDelete, forbidden(2), shown(17, statusActive, list)}, askAgain},
		"a list shows it, GETs work again": {
			[]event{ourDelete, fails(2), shown(3, statusActive, get), shown(17, statusActive, list)}, lookCloser},
		"it ends in ERROR":       {[]event{ourDelete, shown(2, statusError, get)}, askAgain},
		"it was in ERROR before": {[]event{shown(0, statusError, get), ourDelete, shown(2, statusError, get)}, waitOn},
		"it was DELETING, and is in ERROR again": {[]event{
			shown(0, statusError, get), ourDelete, shown(2, statusDeleting, get), shown(3, statusError, get),
		}, askAgain},
		"it fails twice": {[]event{
			ourDelete, shown(2, statusError, get), sent(3, yes), shown(4, statusDeleting, get), shown(5, statusError, get),
		}, giveUp},
		"the second DELETE was refused": {
			[]event{ourDelete, shown(2, statusError, get), sent(3, refused), inError}, askAgain},
		"the second DELETE does not show yet": {
			[]event{ourDelete, shown(2, statusError, get), sent(3, yes), inError}, waitOn},
		"answered 404":                {[]event{sent(1, notFound), shown(2, statusActive, get)}, askAgain},
		"answered 404, not shown":     {[]event{sent(1, notFound), gone(2)}, askAgain},
		"answered 404, DELETING":      {[]event{sent(1, notFound), shown(2, statusDeleting, get)}, askAgain},
		"DELETING":                    {[]event{ourDelete, shown(2, statusDeleting, get), shown(120, statusDeleting, get)}, waitOn},
		"DELETING for 2 minutes":      {[]event{ourDelete, shown(2, statusDeleting, get), shown(121, statusDeleting, get)}, askAgain},
		"DELETING for 2 minutes more": {[]event{ourDelete, shown(121, statusDeleting, get), sent(121, yes), shown(240, statusDeleting, get)}, waitOn},
		"not shown":                   {[]event{ourDelete, gone(2)}, waitOn},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := happens(t, &absence{}, row.events); got != row.want {
				t.Errorf("step %d, want %d", got, row.want)
			}
		})
	}
}

func TestWhenNoneCounts(t *testing.T) {
	const one, two = true, false
	at := func(at float64, breadth breadth, servers int) lookUp {
		began := begin.Add(time.Duration(at * 1e9))
		return lookUp{began: began, ended: began, breadth: breadth, servers: make([]Server, servers)}
	}
	narrow := func(seconds float64, servers int) lookUp { return at(seconds, bySelector, servers) }
	label := func(seconds float64) lookUp { return at(seconds, ofMachineLabel, 0) }
	wide := func(seconds float64) lookUp { return at(seconds, ofProject, 0) }
	labelled, unlabelled, withoutProject := none{}, none{mayLackLabels: true}, none{withoutProject: true, settle: 30 * time.Second}
	longSettle := none{withoutProject: true, settle: 2 * time.Minute}
	for name, row := range map[string]struct {
		none    none
		certain float64
		enough  bool
		lookUps []lookUp
		want    bool
	}{
		"one is enough":                    {labelled, 0, one, []lookUp{narrow(1, 0)}, true},
		"one is enough, but young":         {labelled, 30, one, []lookUp{narrow(1, 0), narrow(29, 0)}, false},
		"one is enough, once certain":      {labelled, 30, one, []lookUp{narrow(1, 0), narrow(30, 0)}, true},
		"one is not enough":                {labelled, 0, two, []lookUp{narrow(1, 0)}, false},
		"the first is of the project":      {labelled, 0, two, []lookUp{wide(1)}, false},
		"two":                              {labelled, 0, two, []lookUp{narrow(1, 0), wide(16)}, true},
		"two within a moment":              {labelled, 0, two, []lookUp{narrow(1, 0), wide(15.9)}, false},
		"two by the selector":              {labelled, 0, two, []lookUp{narrow(1, 0), narrow(16, 0)}, false},
		"the first before it is certain":   {labelled, 30, two, []lookUp{narrow(1, 0), wide(30)}, true},
		"two, the second ends 45 s later":  {labelled, 0, two, []lookUp{narrow(1, 0), wide(46)}, true},
		"two, the second ends too late":    {labelled, 0, two, []lookUp{narrow(1, 0), wide(46.1)}, false},
		"a third after one that was late":  {labelled, 0, two, []lookUp{narrow(1, 0), wide(46.1), wide(62)}, true},
		"two are late":                     {labelled, 0, two, []lookUp{narrow(1, 0), wide(61), wide(121)}, false},
		"all are late":                     {labelled, 0, two, []lookUp{narrow(1, 0), wide(61), wide(121), wide(181)}, true},
		"late, after one that showed some": {labelled, 30, two, []lookUp{narrow(1, 1), wide(100)}, true},
		"both before":                      {labelled, 30, two, []lookUp{narrow(1, 0), wide(29)}, false},
		"some are shown":                   {labelled, 0, two, []lookUp{narrow(1, 1)}, true},
		"some are shown, but young":        {labelled, 30, two, []lookUp{narrow(1, 1)}, false},
		"some are shown, and none later":   {labelled, 30, two, []lookUp{narrow(20, 1), wide(34)}, false},
		"some are shown, and none at last": {labelled, 30, two, []lookUp{narrow(10, 1), wide(30)}, true},

		"without labels, one of the project":  {unlabelled, 0, two, []lookUp{narrow(1, 0), wide(16)}, false},
		"without labels, two of the project":  {unlabelled, 0, two, []lookUp{narrow(1, 0), wide(2), wide(17)}, true},
		"without labels, both at one moment":  {unlabelled, 0, two, []lookUp{narrow(1, 0), wide(2), wide(16.9)}, false},
		"without lists of the project":        {withoutProject, 0, two, []lookUp{narrow(1, 0), label(16), label(31)}, true},
		"without lists of the project, early": {withoutProject, 0, two, []lookUp{narrow(1, 0), label(16), label(30)}, false},

		"without lists of the project, over a long settle":        {longSettle, 0, two, []lookUp{narrow(1, 0), label(61), label(121)}, true},
		"without lists of the project, within a part of a settle": {longSettle, 0, two, []lookUp{narrow(1, 0), label(61), label(120)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := false
			for _, found := range row.lookUps {
				if got {
					t.Fatal("proved too early")
				}
				got = row.none.add(&found, begin.Add(time.Duration(row.certain*1e9)), row.enough)
			}
			if got != row.want {
				t.Errorf("proved: %t, want %t", got, row.want)
			}
		})
	}
}

// A creation would make a second server: it waits until GETs work.
func TestWhileGETsFailListsProveNothingInACreation(t *testing.T) {
	a := absence{}
	if isGone, _ := happens(t, &a, []event{fails(2), listed(3, true), listed(18, true), listed(40, true)}); isGone {
		t.Error("proved")
	}
}

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
	policy := readPolicy
	policy.Turn = func(context.Context) error { return nil }
	panics := func(context.Context) (int, error) { panic("a bug") }
	for name, request := range map[string]coalesce.Request[int, int]{
		"a single read": {Single: panics},
		"a list":        {Pick: func(list int, _ time.Time) (int, bool) { return list, true }},
	} {
		t.Run(name, func(t *testing.T) {
			err := coalesce.New[int, int](clock.RealClock{}, policy, panics).Read(t.Context(), request).Err
			if err == nil || ReasonIn(err.Error()) != ReasonDriverBug {
				t.Errorf("got %v, want %s", err, ReasonDriverBug)
			}
		})
	}
}

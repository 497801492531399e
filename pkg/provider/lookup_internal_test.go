// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// lookUpsOf returns the look-ups of a line: own is one by labels, project one of the project; with +1 it shows a
// server.
func lookUpsOf(t testing.TB, line string) (row []lookupResult) {
	t.Helper()
	eachAt(t, line, func(what string, began, ended time.Time) {
		look := lookupResult{began: began, ended: ended}
		what, showsOne := strings.CutSuffix(what, "+1")
		if showsOne {
			look.servers = []Server{{ID: "a server"}}
		}
		if look.isWhole = what == "project"; !look.isWhole && what != "own" {
			t.Fatalf("unknown look-up %q", what)
		}
		row = append(row, look)
	})
	return row
}

func TestNone(t *testing.T) {
	var (
		usual     = doubt{}
		isNew     = doubt{isNew: true}
		unlabeled = doubt{mayLackLabels: true}
		after30s  = doubt{certain: epoch.Add(30 * time.Second)}
		new30s    = doubt{certain: epoch.Add(30 * time.Second), isNew: true}
	)
	for name, row := range map[string]struct {
		row  string
		d    doubt
		want bool
	}{
		"no look-up":                    {"", usual, false},
		"no look-up, for a new Machine": {"", isNew, false},

		"own, the project 15 s later":              {"own@0s project@15s", usual, true},
		"own, the project within 15 s":             {"own@0s project@14999ms", usual, false},
		"15 s from the start of a slow look-up":    {"own@0s-1s project@15s", usual, false},
		"15 s from the end of a slow look-up":      {"own@0s-1s project@16s", usual, true},
		"the second one ends after 15 s":           {"own@0s project@10s-20s", usual, false},
		"own ones only":                            {"own@0s own@15s own@30s", usual, false},
		"own after the project":                    {"project@0s own@15s", usual, false},
		"own ones between":                         {"own@0s own@5s own@10s project@15s", usual, true},
		"the project twice":                        {"project@0s project@15s", usual, true},
		"the project twice within 15 s":            {"project@0s project@14999ms", usual, false},
		"the project alone":                        {"project@0s", usual, false},
		"one slow look-up of the project":          {"project@0s-20s", usual, false},
		"labels may lack: the project twice":       {"project@0s project@15s", unlabeled, true},
		"labels may lack: the project once":        {"own@0s project@15s", unlabeled, false},
		"labels may lack: 15 s after the project":  {"own@0s project@15s project@30s", unlabeled, true},
		"labels may lack: project twice, too soon": {"own@0s project@15s project@29999ms", unlabeled, false},
		"labels may lack: the last one is own":     {"project@0s own@15s", unlabeled, false},
		"labels may lack: own ones only":           {"own@0s own@15s own@30s", unlabeled, false},

		"own a minute before the project":         {"own@0s project@1m", usual, true},
		"own over a minute before the project":    {"own@0s project@60001ms", usual, false},
		"a minute counts from a look-up's end":    {"own@0s-20s project@80s", usual, true},
		"the project, over a minute before":       {"project@0s project@60001ms", unlabeled, false},
		"an old one is no beginning, a later one": {"own@0s own@40s project@70s", usual, true},

		"it shows some":                        {"own+1@0s", usual, true},
		"it shows some, labels may lack":       {"own+1@0s", unlabeled, true},
		"it shows some, and shows none before": {"own@0s own+1@1s", usual, true},
		"it shows some before certain":         {"own+1@29999ms", after30s, false},
		"it shows some at certain":             {"own+1@30s", after30s, true},

		"new Machine":                           {"own@0s", isNew, true},
		"new Machine: before certain":           {"own@29999ms", new30s, false},
		"new Machine: begins before certain":    {"own@29s-31s", new30s, false},
		"new Machine: at certain":               {"own@30s", new30s, true},
		"the last one at certain":               {"own@0s project@30s", after30s, true},
		"the last one before certain":           {"own@0s project@29999ms", after30s, false},
		"the last one begins before certain":    {"own@0s project@29s-31s", after30s, false},
		"enough before certain, own after it":   {"own@0s project@15s own@30s", after30s, false},
		"certain, but within 15 s of the first": {"own@20s project@30s", after30s, false},

		"begins anew with one that shows some":       {"own@0s own+1@10s project@15s", usual, false},
		"15 s after the one that shows some":         {"own@0s own+1@10s project@25s", usual, true},
		"begins anew with the last that shows some":  {"own+1@0s own@5s own+1@10s project@15s", usual, false},
		"15 s after the last that shows some":        {"own+1@0s own@5s own+1@10s project@25s", usual, true},
		"begins with one that shows some":            {"own+1@0s project@15s", usual, true},
		"begins with one that shows some, too soon":  {"own+1@0s project@14999ms", usual, false},
		"anew, own ones only":                        {"own+1@0s own@15s own@30s", usual, false},
		"anew, labels may lack: by the project":      {"project+1@0s project@15s", unlabeled, true},
		"anew, labels may lack: project before it":   {"project@0s own+1@5s project@20s", unlabeled, false},
		"anew, labels may lack: the project twice":   {"project@0s own+1@5s project@6s project@21s", unlabeled, true},
		"anew, labels may lack: twice, but too soon": {"project@0s own+1@5s project@6s project@20999ms", unlabeled, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := none(lookUpsOf(t, row.row), row.d); got != row.want {
				t.Errorf("none is %t, want %t", got, row.want)
			}
		})
	}
}

// Lists of a project that have been too large for long are put off: look-ups do not wait for the next one.
func TestAProjectThatIsTooLargeIsNotWaitedFor(t *testing.T) {
	for name, row := range map[string]struct {
		since time.Duration
		err   error
		took  time.Duration
	}{
		"too large for long": {tooLargeFor, &APIError{StatusCode: http.StatusRequestEntityTooLarge}, 0},
		"too large for a time": {tooLargeFor - time.Second, &APIError{StatusCode: http.StatusRequestEntityTooLarge},
			maxListBackoff},
		"an outage": {tooLargeFor, &APIError{StatusCode: http.StatusServiceUnavailable}, maxListBackoff},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracked := newTracked(clock.RealClock{})
				began := time.Now()
				tracked.call.serversOf(nil).lists = schedule{
					notBefore: began.Add(maxListBackoff), failures: 6, since: began.Add(-row.since), err: row.err,
				}
				all, isWhole := tracked.call.listProject(t.Context(), time.Time{})
				if took := time.Since(began); all.err != nil || isWhole != (row.took > 0) || took != row.took {
					t.Errorf("after %s a list, of the project: %t: %v; want it after %s", took, isWhole, all.err, row.took)
				}
			})
		})
	}
}

// A server without labels may be the Machine's, unless another one surely is.
func TestAServerWithoutLabelsBesideOneWithThem(t *testing.T) {
	bare := Server{ID: "bare", Name: "m1", Status: statusActive}
	for name, row := range map[string]struct {
		found []Server
		want  bool
	}{
		"alone":                  {nil, true},
		"beside one that stays":  {[]Server{{ID: "own", Name: "m1", Status: statusCreating}}, false},
		"beside one in DELETING": {[]Server{{ID: "own", Name: "m1", Status: statusDeleting}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTracked(clocktesting.NewFakeClock(epoch)).call
			c.identity = newIdentity("m1", "class", nil)
			if err := c.checkUnlabelled(append(row.found, bare), row.found); (err != nil) != row.want {
				t.Errorf("the error is %v, want one: %t", err, row.want)
			}
		})
	}
}

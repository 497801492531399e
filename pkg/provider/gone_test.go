// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"
	"time"
)

// read is what a test lets a read show, and when it begins: in seconds from the
// beginning.
type read struct {
	at float64
	observation
}

func gone(at float64) read { return read{at, observation{}} }

func listed(at float64, others bool) read { return read{at, observation{listed: true, others: others}} }

func shown(at float64, status string, list bool) read {
	return read{at, observation{servers: []Server{{ID: "s", Status: status}}, listed: list, others: list}}
}

func TestWhatProvesAServerGone(t *testing.T) {
	const others, empty = true, false
	deletingInList := shown(2, statusDeleting, true)
	for name, row := range map[string]struct {
		certain, deleted float64 // 0 is long ago, and never
		reads            []read
		want             bool
	}{
		"a GET and a list":                          {0, 0, []read{gone(3), listed(4, others)}, true},
		"a GET and an empty list":                   {0, 0, []read{gone(3), listed(4, empty)}, true},
		"a list and a GET":                          {0, 1, []read{listed(3, others), gone(4)}, true},
		"an empty list and a GET":                   {0, 1, []read{listed(3, empty), gone(4)}, true},
		"a GET alone":                               {0, 1, []read{gone(3)}, false},
		"a list alone":                              {0, 1, []read{deletingInList, listed(3, others)}, false},
		"two reads less than a second apart":        {0, 0, []read{gone(3), listed(3.9, others)}, false},
		"the second comes a second after the first": {0, 0, []read{gone(3), listed(3.9, others), listed(4, others)}, true},
		"two GETs where lists count":                {0, 1, []read{gone(3), gone(4), gone(5)}, false},
		"seen in between":                           {0, 1, []read{gone(3), shown(4, statusActive, false), listed(5, others)}, false},
		"seen in between by a list":                 {0, 1, []read{gone(3), shown(4, statusActive, true), listed(5, others)}, false},

		"two lists":                                                {0, 1, []read{listed(3, others), listed(4, others)}, false},
		"two lists after one showed it DELETING":                   {0, 1, []read{deletingInList, listed(3, others), listed(4, others)}, true},
		"two lists after a GET showed it DELETING":                 {0, 1, []read{shown(2, statusDeleting, false), listed(3, others), listed(4, others)}, false},
		"two lists after one showed it DELETING before our DELETE": {0, 2.5, []read{deletingInList, listed(3, others), listed(4, others)}, false},
		"two lists after one showed it ACTIVE":                     {0, 1, []read{shown(2, statusActive, true), listed(3, others), listed(4, others)}, false},
		"the first of two lists is empty":                          {0, 1, []read{deletingInList, listed(3, empty), listed(4, others)}, false},
		"the second of two lists is empty":                         {0, 1, []read{deletingInList, listed(3, others), listed(4, empty)}, false},

		"two GETs of a young server":                      {30, 0, []read{gone(3), gone(4), gone(29)}, false},
		"a GET and a list of a young server":              {30, 0, []read{gone(3), listed(4, others)}, false},
		"two GETs of a young server after our DELETE":     {30, 2, []read{gone(3), gone(4)}, true},
		"a GET before our DELETE":                         {30, 3.5, []read{gone(3), gone(4)}, false},
		"lists of a young server after our DELETE":        {30, 1, []read{deletingInList, listed(3, others), listed(4, others)}, false},
		"two GETs, the second where lists count":          {30, 2, []read{gone(29.5), gone(30.5)}, false},
		"a GET of a young server, and a list that counts": {30, 2, []read{gone(29.5), listed(30.5, others)}, true},
		"once lists count":                                {30, 0, []read{gone(3), gone(30), listed(31, others)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Unix(1e9, 0)
			at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
			a := absence{noPostBefore: at(row.certain)}
			if row.deleted > 0 {
				a.deleted = at(row.deleted)
			}
			got := false
			for i, r := range row.reads {
				if got {
					t.Fatalf("proved before read %d", i+1)
				}
				r.began = at(r.at)
				got = a.add(r.observation)
			}
			if got != row.want {
				t.Errorf("proved: %t, want %t", got, row.want)
			}
		})
	}
}

// The next read is one that can make the last sign a proof.
func TestHowAServerIsReadThatMayBeGone(t *testing.T) {
	begin := time.Unix(1e9, 0)
	later := begin.Add(time.Minute)
	for name, row := range map[string]struct {
		absence absence
		want    readKind
	}{
		"no sign":                                {absence{}, byAny},
		"after a GET":                            {absence{noPostBefore: begin, last: &observation{}}, byList},
		"after a GET of a young server":          {absence{noPostBefore: later.Add(time.Second), last: &observation{}}, byGet},
		"after a list":                           {absence{last: &observation{listed: true, others: true}}, byGet},
		"after a list, once one showed DELETING": {absence{deletingListed: true, last: &observation{listed: true, others: true}}, byAny},
		"after an empty list":                    {absence{deletingListed: true, last: &observation{listed: true}}, byGet},
	} {
		t.Run(name, func(t *testing.T) {
			if got := row.absence.nextRead(later); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

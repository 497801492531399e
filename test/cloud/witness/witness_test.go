// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

const (
	run = "20261123-071100-abcd"
	one = "00000000-0000-4000-8000-000000000001"
	two = "00000000-0000-4000-8000-000000000002"
)

// story tells a witness what the API has answered, at seconds since its begin.
type story struct {
	*Witness

	broken []string
}

func (s *story) tell(second float64, method, path, sent string, status int, body string) {
	begin := time.Unix(1000, 0).Add(time.Duration(second * float64(time.Second)))
	path, query, _ := strings.Cut(path, "?")
	values, _ := url.ParseQuery(query)
	e := guard.Exchange{
		Method: method, Path: path, Query: values, Sent: []byte(sent), Status: status, Body: []byte(body),
		Begin: begin, End: begin.Add(100 * time.Millisecond),
	}
	s.Begun(e)
	s.Observe(e)
}

func shown(id, name, status string, labels bool) string {
	text := ""
	if labels {
		text = fmt.Sprintf(`%q:%q,"kubernetes.io/machine":"a","kubernetes.io/machineclass":"c"`,
			mark.ClusterLabel, mark.Network(run))
	}
	return fmt.Sprintf(`{"id":%q,"name":%q,"status":%q,"labels":{%s}}`, id, name, status, text)
}

var name = mark.Name(run, "a")

func (s *story) posts(second float64, id string) {
	body := shown(id, name, "CREATING", true)
	s.tell(second, "POST", "/servers", body, 201, body)
}
func (s *story) gets(second float64, status int, body string) {
	s.tell(second, "GET", "/servers/"+one, "", status, body)
}
func (s *story) lists(second float64, items ...string) {
	path := "/servers?label_selector=" + url.QueryEscape(mark.Selector(run))
	s.tell(second, "GET", path, "", 200, `{"items":[`+strings.Join(items, ",")+`]}`)
}
func (s *story) deletes(second float64) { s.tell(second, "DELETE", "/servers/"+one, "", 204, "") }

func newStory() *story {
	s := &story{}
	s.Witness = New(run, 30*time.Second, func(text string) { s.broken = append(s.broken, text) })
	return s
}

func TestFindings(t *testing.T) {
	active := shown(one, name, "ACTIVE", true)
	for title, row := range map[string]struct {
		do   func(s *story)
		want string
	}{
		"a life": {func(s *story) {
			s.posts(0, one)
			s.gets(1, 404, "")
			s.gets(2, 200, active)
			s.lists(20)
			s.lists(25, active)
			s.deletes(30)
			s.gets(40, 404, "")
			s.lists(60, active)
		}, ""},
		"one 404": {
			func(s *story) { s.posts(0, one); s.gets(1, 200, active); s.gets(2, 404, ""); s.gets(30, 200, active) },
			"",
		},
		"404 for 14 s": {
			func(s *story) { s.posts(0, one); s.gets(1, 200, active); s.gets(2, 404, ""); s.gets(16, 404, "") },
			"",
		},
		"404 for 15 s": {
			func(s *story) { s.posts(0, one); s.gets(1, 200, active); s.gets(2, 404, ""); s.gets(17, 404, "") },
			"has answered 404 for 15s",
		},
		"not listed for settle": {func(s *story) { s.posts(0, one); s.lists(31) }, "does not show server " + one},
		"no label for a moment": {
			func(s *story) { s.posts(0, one); s.gets(1, 200, shown(one, name, "ACTIVE", false)) },
			"",
		},
		"no label after settle": {
			func(s *story) { s.posts(0, one); s.gets(31, 200, shown(one, name, "ACTIVE", false)) },
			"shows it without kubernetes.io/cluster",
		},
		"two servers of a POST": {
			func(s *story) { s.posts(0, one); s.lists(1, active, shown(two, name, "ACTIVE", true)) },
			"2 servers of the name",
		},
		"two servers of two POSTs": {
			func(s *story) { s.posts(0, one); s.posts(1, two); s.lists(2, active, shown(two, name, "ACTIVE", true)) },
			"",
		},
		"one that nobody asked for": {func(s *story) { s.lists(1, active) }, "which nobody has asked for"},
		"somebody's":                {func(s *story) { s.lists(1, shown(two, "db", "ACTIVE", false)) }, ""},
		"another server than asked": {
			func(s *story) { s.posts(0, one); s.gets(1, 200, shown(two, name, "ACTIVE", true)) },
			"was answered with server",
		},
		"back after its deletion": {func(s *story) {
			s.posts(0, one)
			s.gets(1, 200, active)
			s.deletes(2)
			s.gets(3, 404, "")
			s.gets(4, 404, "")
			s.lists(35, active)
		}, "after GET did not show it"},
		"one 404 before its deletion": {
			func(s *story) {
				s.posts(0, one)
				s.gets(1, 200, active)
				s.gets(2, 404, "")
				s.deletes(30)
				s.lists(33, active)
				s.gets(34, 404, "")
				s.lists(65, active)
			},
			"",
		},
		"lists that lag at deletion": {func(s *story) {
			s.posts(0, one)
			s.gets(1, 200, active)
			s.deletes(2)
			s.gets(3, 404, "")
			s.lists(32, active)
		}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStory()
			row.do(s)
			got := strings.Join(s.broken, "; ")
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Times are between the last answer before and the first after. A 404 after the server was shown
// says nothing about its creation.
func TestIntervals(t *testing.T) {
	s := newStory()
	creating, active := shown(one, name, "CREATING", true), shown(one, name, "ACTIVE", true)
	deleting := shown(one, name, "DELETING", true)
	s.posts(0, one) // answered at 0.1
	s.gets(1.1, 404, "")
	s.gets(2.1, 200, creating)
	s.gets(3.1, 404, "")
	s.gets(4.1, 200, creating)
	s.gets(6, 200, active)
	s.lists(8)
	s.lists(9, active)
	s.deletes(20)
	s.gets(21, 200, active)
	s.gets(22, 200, deleting)
	s.lists(23, deleting)
	s.gets(29, 200, deleting)
	s.gets(30, 404, "")
	s.lists(210)
	s.gets(211, 404, "")
	rows := map[string]string{}
	for _, row := range s.Rows() {
		rows[row.Assumption] = row.Seen
	}
	for assumption, want := range map[string]string{
		"A server that was just made is there for GET":                              "1.0–2.1 s",
		"Lists show a new server within settle, 30 s":                               "7.9–9.0 s",
		"A DELETE shows as DELETING within 15 s":                                    "1.0–2.1 s",
		"A deleted server is gone within minutes, to GET":                           "9.0–10.0 s",
		"A deleted server is gone within minutes, to lists":                         "3.0–190.0 s",
		"DELETE is accepted in any status":                                          "ACTIVE (1×)",
		"GET after a deletion answers 404, or 403":                                  "404 (2×)",
		"A selector key=value selects; lists are checked again":                     "",
		"A 404 for a server that exists is the exception: the driver asks for 15 s": "1 GETs",
		"A server boots within the creation timeout, at most 10 min in one call":    "4.0–6.0 s",
	} {
		if rows[assumption] != want {
			t.Errorf("%s: %q, want %q", assumption, rows[assumption], want)
		}
	}
	const want = "1 servers, 0.3 server minutes and 0.3 GB hours from their POST to their DELETE."
	if cost := s.Cost(time.Unix(5000, 0), 60); cost != want {
		t.Error(cost)
	}
}

func TestFailed(t *testing.T) {
	s := newStory()
	s.posts(0, one)
	s.gets(1, 200, `{"id":"`+one+`","name":"`+name+`","status":"ERROR","errorMessage":"No valid host"}`)
	if text, failed := s.Failed(name); !failed || !strings.Contains(text, `"No valid host"`) {
		t.Error(text)
	}
}

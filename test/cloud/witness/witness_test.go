// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

const (
	run    = "20261123-071100-abcd"
	first  = "00000000-0000-4000-8000-000000000001"
	other  = "00000000-0000-4000-8000-000000000002"
	settle = 30 * time.Second
)

var (
	begin   = time.Date(2026, 11, 23, 7, 11, 0, 0, time.UTC)
	machine = mark.Name(run, "a")
	labels  = mark.Labels(run, machine, "c")
)

type object = map[string]any

// script is what an API answers, one exchange a second.
type script struct {
	w   *Witness
	now time.Time
}

func (s *script) send(method, path, selector string, sent any, status int, body any) {
	e := guard.Exchange{Method: method, Path: path, Query: url.Values{"label_selector": {selector}}, Begin: s.now, Header: http.Header{}}
	e.Sent, _ = json.Marshal(sent)
	s.w.Begun(e)
	e.Status, e.End = status, s.now.Add(100*time.Millisecond)
	e.Body, _ = json.Marshal(body)
	s.w.Observe(e)
	s.now = s.now.Add(time.Second)
}

func (s *script) post(status int) {
	s.send("POST", "/servers", "", object{"name": machine, "labels": labels}, status, object{"id": first})
}
func (s *script) get(status int, body any) { s.send("GET", "/servers/"+first, "", nil, status, body) }
func (s *script) delete(status int)        { s.send("DELETE", "/servers/"+first, "", nil, status, nil) }
func (s *script) list(selector string, items ...any) {
	s.send("GET", "/servers", selector, nil, 200, object{"items": append([]any{}, items...)})
}

func shown(id, status string) object {
	return object{"id": id, "name": machine, "status": status, "labels": labels}
}

func TestFindings(t *testing.T) {
	selector := mark.Selector(run)
	stranger := object{"id": other, "name": "x", "status": "ACTIVE", "labels": object{"a": "b"}}
	for name, row := range map[string]struct {
		api  func(s *script)
		want string
	}{
		"a life as it should be": {func(s *script) {
			s.list(selector)
			s.post(201)
			s.get(404, nil) // lag
			s.list(selector)
			s.get(200, shown(first, "CREATING"))
			s.list(selector, shown(first, "ACTIVE"))
			s.list("", shown(first, "ACTIVE"), stranger)
			s.get(503, nil)
			s.delete(204)
			s.get(200, shown(first, "DELETING"))
			s.list(selector, shown(first, "DELETING"))
			s.get(404, nil)
			s.list(selector, shown(first, "ACTIVE")) // lag
			s.delete(404)
		}, ""},
		"an answer that was lost": {func(s *script) {
			s.post(0)
			s.list(selector, shown(first, "ACTIVE"))
			s.get(200, shown(first, "ACTIVE"))
		}, ""},
		"asked for again after a refusal": {func(s *script) { s.post(503); s.post(201); s.list(selector, shown(first, "ACTIVE")) }, ""},
		"a deletion that was not answered": {func(s *script) {
			s.post(201)
			s.get(200, shown(first, "ACTIVE"))
			s.delete(0)
			s.get(404, nil)
		}, ""},
		"a server twice":              {func(s *script) { s.post(201); s.list("", shown(first, "ACTIVE"), shown(other, "ACTIVE")) }, "that nobody asked for: 1 POST of this name was accepted"},
		"a server that nobody wanted": {func(s *script) { s.list("", shown(other, "ACTIVE")) }, "no POST had this name"},
		"two servers of a name, both answered": {func(s *script) {
			s.post(201)
			s.send("POST", "/servers", "", object{"name": machine, "labels": labels}, 201, object{"id": other})
			s.list("", shown(first, "ACTIVE"), shown(other, "ACTIVE"))
		}, "2 servers of the name"},
		"two servers of a name before the answer": {func(s *script) {
			sent, _ := json.Marshal(object{"name": machine, "labels": labels})
			s.w.Begun(guard.Exchange{Method: "POST", Path: "/servers", Begin: s.now, Sent: sent})
			s.list("", shown(first, "ACTIVE"), shown(other, "ACTIVE"))
		}, "1 POST of this name was sent, whose answer is not there yet"},
		"labels lost":                {func(s *script) { s.post(201); s.get(200, object{"id": first, "status": "ACTIVE"}) }, "shows it without kubernetes.io/cluster"},
		"a selector ignored":         {func(s *script) { s.list(selector, stranger) }, "the selector is ignored"},
		"a 404 for what runs":        {func(s *script) { s.post(201); s.get(200, shown(first, "ACTIVE")); s.get(404, nil) }, "nobody has deleted it"},
		"another server's answer":    {func(s *script) { s.post(201); s.get(200, shown(other, "ACTIVE")) }, "was answered with server"},
		"a list that never shows it": {func(s *script) { s.post(201); s.now = s.now.Add(settle); s.list(selector) }, "does not show server"},
		"a list that loses it": {func(s *script) {
			s.post(201)
			s.list(selector, shown(first, "ACTIVE"))
			s.now = s.now.Add(settle)
			s.list(selector)
		}, "does not show server"},
		"a deleted server that comes back": {func(s *script) {
			s.post(201)
			s.delete(204)
			s.get(404, nil)
			s.now = s.now.Add(settle)
			s.list(selector, shown(first, "ACTIVE"))
		}, "after its deletion was accepted and GET answered 404"},
		"a label that a PATCH has changed": {func(s *script) {
			s.post(201)
			s.send("PATCH", "/servers/"+first, "", object{"labels": object{mark.ClusterLabel: nil}}, 200, nil)
			seen := shown(first, "ACTIVE")
			seen["labels"] = object{"kubernetes.io/machine": labels["kubernetes.io/machine"], "kubernetes.io/machineclass": "c"}
			s.get(200, seen)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			s := &script{w: New(run, settle, func(text string) { told = append(told, text) }), now: begin}
			row.api(s)
			found := strings.Join(s.w.Findings(), "\n")
			if row.want == "" && found != "" || !strings.Contains(found, row.want) {
				t.Errorf("found %q, want %q", found, row.want)
			}
			if strings.Join(told, "\n") != found {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestRows(t *testing.T) {
	s := &script{w: New(run, settle, func(text string) { t.Error(text) }), now: begin}
	s.post(201)
	s.get(404, object{"code": 404, "msg": "server not found"})
	s.list("")
	s.get(200, shown(first, "ACTIVE"))
	s.list("", shown(first, "ACTIVE"), object{"id": other, "name": "x", "metadata": object{"kubernetes.io-cluster-a": "1"}})
	s.delete(204)
	s.get(404, nil)
	var seen []string
	for _, row := range s.w.Rows(s.now) {
		seen = append(seen, row.Assumption+": "+row.Seen)
	}
	all := strings.Join(seen, "\n")
	for _, want := range []string{
		"1 of 1 servers were missed at first, a GET answered 404; from the POST's answer to the first that showed it: 3s, median 3s, at most 3s (1 servers); the last one before was asked for 900ms after it",
		"1 of 1 servers were missed at first, a list was without it; from the POST's answer to the first that showed it: 4s, median 4s, at most 4s (1 servers); the last one before was asked for 1.9s after it",
		"1 servers, 0.1 minutes from their POST to their DELETE or, of 0, to the report",
		"to ACTIVE: 3s", "from DELETE to the first 404: 1s", "deleted in the status ACTIVE (1×)", `"items": [] (1×)`,
		`GET /servers/{id}: 404, no content type, {code,msg}, msg "server not found" (1×)`, "7 calls",
		"of 1 servers that are not the run's, 1 show metadata, 1 a key kubernetes.io-cluster-…",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

// What was shown when it was first asked for was there before that; and a server that nobody
// has deleted costs until now.
func TestRowsOfAnEarlyEnd(t *testing.T) {
	s := &script{w: New(run, settle, func(text string) { t.Error(text) }), now: begin}
	s.post(201)
	s.now = s.now.Add(time.Minute)
	s.get(200, shown(first, "ACTIVE"))
	late := "/servers/" + other
	s.send("POST", "/servers", "", object{"name": mark.Name(run, "b"), "labels": labels}, 201, object{"id": other})
	s.send("GET", late, "", nil, 404, nil)
	s.send("GET", late, "", nil, 200, object{"id": other, "status": "CREATING", "labels": labels})
	s.list("", shown(first, "ACTIVE"), object{"id": other, "name": mark.Name(run, "b"), "labels": labels})
	seen := map[string]string{}
	for _, row := range s.w.Rows(begin.Add(7 * time.Minute)) {
		seen[row.Assumption] = row.Seen
	}
	for assumption, want := range map[string]string{
		"A run costs at most 120 server minutes":       "2 servers, 13.0 minutes from their POST to their DELETE or, of 2, to the report",
		"A server that was just made is there for GET": "1 of 2 servers were missed at first, a GET answered 404; from the POST's answer to the first that showed it: 2s, median 2s, at most 2s (1 servers); the last one before was asked for 900ms after it",
		"Lists show a new server within settle, 30 s":  "no list was without it before the first that showed it (2 servers)",
	} {
		if seen[assumption] != want {
			t.Errorf("%s: %q, want %q", assumption, seen[assumption], want)
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

const run = "20261123-071100-abcd"

// story tells a guard what is asked and answered, at seconds since its begin. Server n has the ID id(n).
type story struct{ *Guard }

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func named(n int) string { return api.Name(run, fmt.Sprintf("server%d", n)) }

func exchange(second float64, method, path, sent string, status int, body string) Exchange {
	begin := time.Unix(1000, 0).Add(time.Duration(second * float64(time.Second)))
	path, query, _ := strings.Cut(path, "?")
	values, _ := url.ParseQuery(query)
	return Exchange{
		Method: method, Path: path, Query: values, Sent: []byte(sent),
		Answer: api.Answer{Status: status, Body: []byte(body)}, Begin: begin, End: begin.Add(100 * time.Millisecond),
	}
}

func (s story) tell(second float64, method, path, sent string, status int, body string) {
	if e := exchange(second, method, path, sent, status, body); s.admit(e) == nil {
		s.observe(e)
	}
}

const labels = `"kubernetes.io/cluster":"mcm-cloud-test-` + run +
	`","kubernetes.io/machine":"a","kubernetes.io/machineclass":"c"`

func shown(n int, status string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"status":%q,"labels":{%s}}`, id(n), named(n), status, labels)
}

func unlabelled(n int) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"status":"ACTIVE"}`, id(n), named(n))
}

// posts asks for server n. An answer of 201 shows it.
func (s story) posts(second float64, n, status int) {
	body := ""
	if status == 201 {
		body = shown(n, "CREATING")
	}
	s.tell(second, "POST", "/servers", shown(n, ""), status, body)
}

func (s story) gets(second float64, n, status int, body string) {
	s.tell(second, "GET", "/servers/"+id(n), "", status, body)
}

func (s story) lists(second float64, items ...string) {
	path := "/servers?label_selector=" + url.QueryEscape(api.Selector(run))
	s.tell(second, "GET", path, "", 200, `{"items":[`+strings.Join(items, ",")+`]}`)
}

func (s story) deletes(second float64, n, status int) {
	s.tell(second, "DELETE", "/servers/"+id(n), "", status, "")
}

func (s story) posts4(status int) {
	for n := range AtOnce {
		s.posts(0, n, status)
	}
}

// expect tells a story to a guard, whose run goes on or ends with the wanted text.
func expect(t *testing.T, rows map[string]struct {
	do   func(s story)
	want string
},
) {
	t.Helper()
	for title, row := range rows {
		t.Run(title, func(t *testing.T) {
			s := story{New(t.Context(), run, 30*time.Second)}
			row.do(s)
			err := s.Err()
			if row.want == "" && err != nil || row.want != "" && !strings.Contains(fmt.Sprint(err), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	expect(t, map[string]struct {
		do   func(s story)
		want string
	}{
		"as many as may be":         {func(s story) { s.posts4(201) }, ""},
		"one too many":              {func(s story) { s.posts4(201); s.posts(0, 9, 201) }, "beside 4"},
		"refused ones do not count": {func(s story) { s.posts4(400); s.posts(0, 9, 201) }, ""},
		"unknown ones count":        {func(s story) { s.posts4(503); s.posts(0, 9, 201) }, "beside 4"},
		"unknown ones that do not show within settle count no more": {
			func(s story) { s.posts4(503); s.posts(31, 9, 201) }, "",
		},
		"asked for again": {func(s story) { s.posts4(503); s.posts(0, 1, 201) }, ""},
		"shown ones are counted once": {
			func(s story) {
				s.posts(0, 1, 503)
				s.lists(1, shown(1, "ACTIVE"))
				s.posts(2, 2, 201)
				s.posts(2, 3, 201)
			}, "",
		},
		"shown before the answer": {func(s story) {
			e := exchange(0, "POST", "/servers", shown(1, ""), 0, "")
			_ = s.admit(e)
			s.lists(1, shown(1, "ACTIVE"))
			s.deletes(2, 1, 204)
			s.observe(e)
			s.posts4(400)
		}, ""},
		"deleted ones make room": {func(s story) { s.posts4(201); s.deletes(1, 1, 204); s.posts(2, 9, 201) }, ""},
		"a refused deletion makes none": {
			func(s story) { s.posts4(201); s.deletes(1, 1, 409); s.posts(2, 9, 201) }, "beside 4",
		},
		"a lost deletion makes room once it shows": {
			func(s story) { s.posts4(201); s.deletes(1, 1, 0); s.gets(2, 1, 403, ""); s.posts(3, 9, 201) }, "",
		},
		"a lost deletion that does not show makes none": {func(s story) {
			s.posts4(201)
			s.deletes(1, 1, 503)
			s.gets(2, 1, 200, shown(1, "ACTIVE"))
			s.posts(3, 9, 201)
		}, "beside 4"},
		"all that may be made": {func(s story) {
			for n := range InAll + 1 {
				s.posts(0, n, 201)
				s.deletes(1, n, 204)
			}
		}, fmt.Sprintf("after %d", InAll)},
		"somebody's server": {
			func(s story) { s.lists(0, `{"id":"`+id(7)+`","name":"db"}`); s.deletes(1, 7, 204) },
			"DELETE /servers/" + id(7) + " was asked for, which this run has not made",
		},
		"somebody's server, answered": {func(s story) {
			s.tell(0, "POST", "/servers", shown(1, ""), 201, `{"id":"`+id(7)+`","name":"db"}`)
			s.deletes(1, 7, 204)
		}, "has not made"},
		"a server that is none": {func(s story) { s.tell(0, "DELETE", "/servers/"+api.Nobody, "", 404, "") }, ""},
	})
}

func TestFindings(t *testing.T) {
	active := shown(1, "ACTIVE")
	begins := func(s story) { s.posts(0, 1, 201); s.gets(1, 1, 200, active) }
	expect(t, map[string]struct {
		do   func(s story)
		want string
	}{
		"a life": {func(s story) {
			s.posts(0, 1, 201)
			s.gets(1, 1, 404, "")
			s.gets(2, 1, 200, active)
			s.lists(20)
			s.lists(25, active)
			s.deletes(30, 1, 204)
			s.gets(40, 1, 404, "")
			s.lists(60, active)
		}, ""},
		"one 404":      {func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(30, 1, 200, active) }, ""},
		"404 for 14 s": {func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(16, 1, 404, "") }, ""},
		"404 for 15 s": {
			func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(17, 1, 404, "") }, "has answered 404 for 15s",
		},
		"404 after a lost DELETE": {
			func(s story) {
				begins(s)
				s.deletes(2, 1, 0)
				s.gets(3, 1, 404, "")
				s.lists(30)
				s.gets(60, 1, 404, "")
			}, "",
		},
		"one list without it":     {func(s story) { begins(s); s.lists(1, active); s.lists(61); s.lists(62, active) }, ""},
		"one list, and the first": {func(s story) { begins(s); s.lists(61) }, ""},
		"not listed for settle": {
			func(s story) { begins(s); s.lists(1); s.lists(32) }, "does not show server " + id(1),
		},
		"no label for a moment": {
			func(s story) { begins(s); s.gets(61, 1, 200, unlabelled(1)); s.gets(63, 1, 200, unlabelled(1)) }, "",
		},
		"no label for settle": {
			func(s story) { begins(s); s.gets(2, 1, 200, unlabelled(1)); s.gets(33, 1, 200, unlabelled(1)) },
			"shows it without kubernetes.io/cluster",
		},
		"no label to GET alone": {func(s story) {
			begins(s)
			s.gets(2, 1, 200, unlabelled(1))
			s.lists(20, active)
			s.gets(33, 1, 200, unlabelled(1))
		}, "GET /servers/{id} shows it without kubernetes.io/cluster"},
		"two servers of a POST": {
			func(s story) { begins(s); s.lists(1, active, strings.Replace(active, id(1), id(2), 1)) },
			"2 servers of the name",
		},
		"two servers of two POSTs": {
			func(s story) {
				s.posts(0, 1, 0)
				begins(s)
				s.lists(1, active, strings.Replace(active, id(1), id(2), 1))
			}, "",
		},
		"somebody's":                       {func(s story) { s.lists(1, `{"id":"`+id(7)+`","name":"db"}`) }, ""},
		"one answer with another's server": {func(s story) { begins(s); s.gets(2, 1, 200, shown(2, "ACTIVE")) }, ""},
		"back after its deletion": {func(s story) {
			begins(s)
			s.deletes(2, 1, 204)
			s.gets(3, 1, 404, "")
			s.gets(4, 1, 404, "")
			s.lists(35, active)
		}, "after GET did not show it"},
		"one 404 before its deletion": {func(s story) {
			begins(s)
			s.gets(2, 1, 404, "")
			s.deletes(30, 1, 204)
			s.lists(33, active)
			s.gets(34, 1, 404, "")
			s.lists(65, active)
		}, ""},
		"lists that lag at deletion": {
			func(s story) { begins(s); s.deletes(2, 1, 204); s.gets(3, 1, 404, ""); s.lists(32, active) }, "",
		},
	})
}

// Times are between the last answer before and the first after. A 404 after the server was shown says
// nothing about its creation.
func TestRows(t *testing.T) {
	s := story{New(t.Context(), run, 300*time.Second)}
	deleting := shown(1, "DELETING")
	s.posts(0, 1, 201) // answered at 0.1
	s.gets(1.1, 1, 404, "")
	s.gets(2.1, 1, 200, shown(1, "CREATING"))
	s.gets(3.1, 1, 404, "")
	s.gets(4.1, 1, 200, shown(1, "CREATING"))
	s.gets(6, 1, 200, shown(1, "ACTIVE"))
	s.lists(8)
	const others = `{"id":"7","name":"db","metadata":{"kubernetes.io-cluster-a":"1"},"maintenanceWindow":{}}`
	s.lists(9, shown(1, "ACTIVE"), others)
	s.lists(10, shown(1, "ACTIVE"), others)
	s.tell(11, "GET", "/volumes/"+id(1), "", 200, `{"id":"a","bootable":true}`)
	s.deletes(20, 1, 204)
	s.gets(21, 1, 200, shown(1, "ACTIVE"))
	s.gets(22, 1, 200, deleting)
	s.lists(23, deleting)
	s.gets(29, 1, 200, deleting)
	s.gets(30, 1, 404, "")
	s.lists(210)
	s.gets(211, 1, 404, "")
	rows := map[string]string{}
	for _, row := range s.Rows() {
		rows[row.Assumption] = row.Seen
	}
	for assumption, want := range map[string]string{
		rowGET: "1.0–2.1 s", rowList: "7.9–9.0 s", rowDeleting: "1.0–2.1 s", rowGoneGET: "9.0–10.0 s",
		rowGoneList: "3.0–190.0 s", rowDelete: "ACTIVE: 204", rowAfter: "404 (2×)",
		rowSelector: "IGNORED: a server without it was shown (2×)",
		rowOdd404:   "404 to a GET", rowBoot: "4.0–6.0 s", rowQuota: "", rowBootable: "of a boot volume: true",
		rowWindow:    "of a server that is not the run's",
		rowOpenStack: "a server that is not the run's; shows a key kubernetes.io-cluster-…; shows metadata",
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
	s := story{New(t.Context(), run, time.Minute)}
	s.posts(0, 1, 201)
	s.gets(1, 1, 200, `{"id":"`+id(1)+`","name":"`+named(1)+`","status":"ERROR","errorMessage":"No valid host"}`)
	if text, failed := s.Failed(named(1)); !failed || !strings.Contains(text, `"No valid host"`) {
		t.Error(text)
	}
}

// What the first answer shows was made for the server. What somebody attaches later is his, and so is
// what is in another network. A network whose POST was not answered is known by its name.
func TestThings(t *testing.T) {
	s := story{New(t.Context(), run, time.Minute)}
	network := api.NetworkName(run)
	s.tell(0, "POST", "/networks", `{"name":"`+network+`"}`, 0, "")
	s.tell(1, "GET", "/networks", "", 200, `{"items":[{"id":"`+id(100)+`","name":"`+network+`"},{"id":"db","name":"db"}]}`)
	s.posts(2, 1, 201)
	nic := func(id, network string) string { return fmt.Sprintf(`{"nicId":%q,"networkId":%q}`, id, network) }
	for _, nics := range []string{"", nic("own", id(100)) + "," + nic("other", id(101)), nic("later", id(100))} {
		s.gets(3, 1, 200, fmt.Sprintf(`{"id":%q,"name":%q,"bootVolume":{"id":"disk"},"nics":[%s]}`, id(1), named(1), nics))
	}
	var things []string
	for _, thing := range s.Things() {
		things = append(things, thing.Kind+" "+thing.ID)
	}
	if want := []string{"NIC own", "network " + id(100), "server " + id(1), "volume disk"}; !slices.Equal(things, want) {
		t.Errorf("%q", things)
	}
	if ids := s.ToRead(); len(ids) > 0 {
		t.Errorf("%q are to be read", ids)
	}
}

// What was sent and not shown may show later: the answer to a second POST says nothing about the first.
func TestWhatIsNotAnswered(t *testing.T) {
	s := story{New(t.Context(), run, time.Minute)}
	s.posts(0, 1, 201)
	s.posts(0, 2, 503)
	s.posts(0, 3, 0)
	s.lists(1, shown(3, "ACTIVE"))
	s.posts(1, 4, 0)
	s.posts(2, 4, 201)
	s.posts(2, 5, 400)
	_ = s.admit(exchange(3, "POST", "/networks", `{"name":"net"}`, 0, ""))
	want := []string{"network net", "server " + named(2), "server " + named(4)}
	if names := s.Unanswered(); !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// A request that is on its way may create something: the end of the specs waits for it, and no other is
// sent.
func TestEndWaitsForAnswers(t *testing.T) {
	for _, path := range []string{"/servers", "/networks"} {
		t.Run(path, func(t *testing.T) {
			arrived, answer := make(chan struct{}, 2), make(chan struct{})
			cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				arrived <- struct{}{}
				<-answer
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, `{"id":%q}`, id(1))
			}))
			defer cloud.Close()
			g := New(t.Context(), run, time.Minute)
			proxy, err := NewProxy(g, cloud.URL, NewExchanges(io.Discard, ""))
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			post := func() error {
				target := proxy.URL() + "/v2/projects/" + id(0) + "/regions/eu01" + path
				response, err := http.Post(target, "application/json", strings.NewReader(`{"name":"x"}`))
				if err == nil {
					_ = response.Body.Close()
				}
				return err
			}
			go func() { _ = post() }()
			<-arrived
			// Somebody who does not want to wait.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			proxy.EndSpecs(ctx)
			if post() == nil || len(g.Things()) > 0 || len(g.Unanswered()) != 1 {
				t.Error("something was asked for after the specs")
			}
			close(answer)
			proxy.EndSpecs(t.Context())
			if len(g.Things()) != 1 {
				t.Errorf("%v", g.Things())
			}
		})
	}
}

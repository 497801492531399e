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

// One answer never ends a run: a rule of the driver's does, and a request that the guard stops.
func TestWhatEndsARun(t *testing.T) {
	active := shown(1, "ACTIVE")
	begins := func(s story) { s.posts(0, 1, 201); s.gets(1, 1, 200, active) }
	for title, row := range map[string]struct {
		do   func(s story)
		want string
	}{
		"as many servers as may be": {func(s story) {
			for n := range MaxServers {
				s.posts(0, n, 201)
			}
		}, ""},
		"one server too many": {func(s story) {
			for n := range MaxServers + 1 {
				s.posts(0, n, 201)
				s.deletes(1, n, 204)
			}
		}, fmt.Sprintf("after %d", MaxServers)},
		"POSTs that make no server": {func(s story) {
			for n := range MaxServers + 1 {
				s.posts(0, n, 503)
				s.posts(1, n, 400)
			}
		}, ""},
		"somebody's server": {
			func(s story) { s.lists(0, `{"id":"`+id(7)+`","name":"db"}`); s.deletes(1, 7, 204) },
			"DELETE /servers/" + id(7) + " was asked for, which this run has not made",
		},
		"somebody's server, answered": {func(s story) {
			s.tell(0, "POST", "/servers", shown(1, ""), 201, `{"id":"`+id(7)+`","name":"db"}`)
			s.deletes(1, 7, 204)
		}, "has not made"},
		"a life": {func(s story) {
			s.posts(0, 1, 201)
			s.gets(1, 1, 404, "")
			s.gets(2, 1, 200, active)
			s.lists(20)
			s.lists(25, active)
			s.deletes(30, 1, 204)
			s.gets(40, 1, 404, "")
			s.lists(60, active)
			s.lists(61)
			s.lists(99)
		}, ""},
		"one 404":      {func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(30, 1, 200, active) }, ""},
		"404 for 14 s": {func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(16, 1, 404, "") }, ""},
		"404 for 15 s": {
			func(s story) { begins(s); s.gets(2, 1, 404, ""); s.gets(17, 1, 404, "") }, "for 15s, and nobody has deleted it",
		},
		"404 after a lost DELETE": {
			func(s story) { begins(s); s.deletes(2, 1, 0); s.gets(3, 1, 404, ""); s.gets(60, 1, 404, "") }, "",
		},
		"one list without it": {func(s story) { begins(s); s.lists(1, active); s.lists(61); s.lists(62, active) }, ""},
		"no list with the run's selector shows it": {func(s story) {
			begins(s)
			s.lists(2)
			s.tell(20, "GET", "/servers", "", 200, `{"items":[`+active+`]}`)
			s.lists(32)
		}, "has not shown server " + id(1)},
		"two servers of a POST": {
			func(s story) { begins(s); s.lists(1, active, strings.Replace(active, id(1), id(2), 1)) },
			"2 servers of the name",
		},
		"two servers of a POST and a refused one": {
			func(s story) {
				s.posts(0, 1, 400)
				begins(s)
				s.lists(1, active, strings.Replace(active, id(1), id(2), 1))
			},
			"2 servers of the name",
		},
		"two servers of two POSTs": {
			func(s story) {
				s.posts(0, 1, 0)
				begins(s)
				s.lists(1, active, strings.Replace(active, id(1), id(2), 1))
			}, "",
		},
		"one answer with another's server": {func(s story) { begins(s); s.gets(2, 1, 200, shown(2, "ACTIVE")) }, ""},
	} {
		t.Run(title, func(t *testing.T) {
			s := story{New(t.Context(), run, 30*time.Second)}
			row.do(s)
			if err := s.Err(); row.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
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
	s.gets(6, 1, 200, strings.Replace(shown(1, "ACTIVE"), "{", `{"maintenanceWindow":{},`, 1))
	s.lists(8)
	const others = `{"id":"7","name":"db","metadata":{"kubernetes.io-cluster-a":"1"},"maintenanceWindow":{}}`
	s.lists(9, shown(1, "ACTIVE"), others)
	s.tell(10, "POST", "/servers", shown(2, ""), 403, `{"msg":"Quota exceeded for `+id(0)+`"}`)
	s.tell(11, "GET", "/volumes/"+id(1), "", 200, `{"id":"a","bootable":true}`)
	s.deletes(20, 1, 204)
	s.gets(21, 1, 200, shown(1, "ACTIVE"))
	s.gets(22, 1, 200, deleting)
	s.lists(23, deleting)
	s.gets(29, 1, 200, deleting)
	s.gets(30, 1, 404, "")
	s.lists(210)
	s.gets(211, 1, 404, "")
	if ids := s.ToRead(); len(ids) > 0 {
		t.Errorf("%q are still to be read", ids)
	}
	rows := map[string]string{}
	for _, row := range s.Rows() {
		rows[row.Assumption] = row.Seen
	}
	for assumption, want := range map[string]string{
		rowGET: "1.0–2.1 s", rowList: "7.9–9.0 s", rowDeleting: "1.0–2.1 s", rowGoneGET: "9.0–10.1 s",
		rowGoneList: "3.0–190.1 s", rowBoot: "4.0–6.0 s", rowDelete: "ACTIVE: 204", rowAfter: "404 (2×)",
		rowStatus: "ACTIVE (3×); CREATING (2×); DELETING (3×)", rowOdd404: "404 to a GET",
		rowQuota:    `POST /servers: 403 (no type) {"msg":"Quota exceeded for (hidden)"}`,
		rowBootable: "of a boot volume: true", rowWindow: "of a server that is not the run's",
		rowOpenStack: "a server that is not the run's shows kubernetes.io-cluster-…: " +
			"true in metadata, false in labels",
	} {
		if rows[assumption] != want {
			t.Errorf("%s: %q, want %q", assumption, rows[assumption], want)
		}
	}
}

// What the first answer shows was made for the server. What somebody attaches later is his, and so is
// what is in another network. A network whose POST was not answered is known by its name.
func TestThings(t *testing.T) {
	s := story{New(t.Context(), run, time.Minute)}
	network := api.NetworkName(run)
	s.tell(0, "POST", "/networks", `{"name":"`+network+`"}`, 0, "")
	s.tell(1, "GET", "/networks", "", 200, `{"items":[{"id":"`+id(100)+`","name":"`+network+`"},{"id":"db"}]}`)
	s.posts(2, 1, 201)
	nic := func(id, network string) string { return fmt.Sprintf(`{"nicId":%q,"networkId":%q}`, id, network) }
	for _, nics := range []string{"", nic("own", id(100)) + "," + nic("other", id(101)), nic("later", id(100))} {
		s.gets(3, 1, 200, fmt.Sprintf(`{"id":%q,"name":%q,"bootVolume":{"id":"disk"},"nics":[%s]}`, id(1), named(1), nics))
	}
	s.gets(3.5, 1, 404, "")
	if ids := s.ToRead(); !slices.Equal(ids, []string{id(1)}) {
		t.Errorf("%q are to be read after a 404", ids)
	}
	s.gets(3.7, 1, 200, shown(1, "ACTIVE"))
	s.posts(4, 2, 201)
	s.gets(5, 2, 200, fmt.Sprintf(`{"id":%q,"name":%q,"status":"ERROR","bootVolume":{"id":"failed"}}`, id(2), named(2)))
	s.deletes(6, 2, 204)
	s.gets(7, 2, 404, "")
	s.gets(8, 2, 404, "")
	var things []string
	for _, thing := range s.Things() {
		things = append(things, thing.Kind+" "+thing.ID)
	}
	slices.Sort(things)
	want := []string{"NIC own", "network " + id(100), "server " + id(1), "server " + id(2), "volume disk", "volume failed"}
	if !slices.Equal(things, want) {
		t.Errorf("%q", things)
	}
	if ids := s.ToRead(); len(ids) > 0 {
		t.Errorf("%q are to be read", ids)
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
				_, _ = fmt.Fprintf(w, `{"id":%q,"name":%q}`, id(1), api.NetworkName(run))
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
				response, err := http.Post(target, "application/json", strings.NewReader(`{"name":"`+api.NetworkName(run)+`"}`))
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
			if post() == nil || len(g.Things()) > 0 {
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

func TestReportShowsNothingOfAnybody(t *testing.T) {
	secrets := []string{
		"10000000-0000-4000-8000-000000000001", "10000000000040008000000000000001", "sa-1@sa.stackit.cloud",
		"eyJhbGciOiJSUzUxMiJ9.eyJzdWIiOiIxIn0.c2ln", "10.250.0.7", "fa:16:3e:aa:bb:cc", "2001:db8::12:34", "fe80::1",
		"2001:db8:0:0:0:0:12:34", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
	}
	r := Report{Run: "r", Endpoint: "https://iaas.example.com", Result: "Red: " + secrets[0]}
	for _, secret := range secrets {
		r.Rows = append(r.Rows, Row{Assumption: "a", Seen: "seen | " + secret + "\nlater"})
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil || !strings.HasPrefix(out.String(), "# Run r against https://iaas.example.com\n") {
		t.Error(err)
	}
	if rows := strings.Count(out.String(), "\n| a | seen \\| (hidden) later |"); rows != len(secrets) {
		t.Errorf("%d rows in\n%s", rows, out.String())
	}
	if strings.Contains(out.String(), secrets[0]) {
		t.Errorf("the result shows %s", secrets[0])
	}
}

func TestExchanges(t *testing.T) {
	var out strings.Builder
	x := NewExchanges(&out, "run-")
	write := func(method, path string, status int, header http.Header, body string) {
		x.write(Exchange{Method: method, Path: path, Answer: api.Answer{Status: status, Header: header, Body: []byte(body)}})
	}
	write("GET", "/servers", 200, http.Header{"Date": {"today"}, "Ratelimit": {"5 of " + id(3)}, "Set-Cookie": {"secret"}},
		`{"items":[{"id":"`+id(1)+`","name":"run-a","userData":"c2VjcmV0"},{"id":"`+id(2)+`","name":"database"}]}`)
	write("DELETE", "/servers/"+id(1), 502, nil, "<html> of 10.0.0.1"+strings.Repeat(" ", 1970)+"somebody@example.com")
	write("POST", "/servers", 201, nil, `{"id":"`+id(2)+`","name":"database"}`)
	write("GET", "/volumes/"+id(2), 200, nil, `{"name":"of the API"}`)
	if strings.Contains(out.String(), "somebody") {
		t.Error("half an address is shown")
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		`"headers":["200 with Ratelimit: \"5 of (hidden 2)\"","Date","Set-Cookie"],"answer":{"items":[{"id":"(hidden 1)",` +
			`"name":"run-a","userData":"(8 characters)"},"(and 1 that are not the run's)"]}`,
		`"path":"/servers/(hidden 1)","status":502,"answer":"<html> of (hidden 3) `,
		`"status":201,"answer":"(not the run's)"`,
		`"status":200,"answer":{"name":"of the API"}`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%s is not in %s", want, lines[i])
		}
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func ask(method, path, sent string) Exchange {
	return Exchange{Method: method, Path: path, Sent: []byte(sent)}
}

func named(n int) string { return fmt.Sprintf(`{"name":"server%d"}`, n) }

func asks(g *Guard, n int) error { return g.admit(ask(http.MethodPost, "/servers", named(n))) }

func answers(g *Guard, n, status int, body string) {
	e := ask(http.MethodPost, "/servers", named(n))
	e.Status, e.Body = status, []byte(body)
	g.Observe(e)
	g.creating.Done()
}

// makes asks for a server, and answers with it.
func makes(g *Guard, n, status int) {
	if asks(g, n) == nil {
		answers(g, n, status, fmt.Sprintf(`{"id":%q,"name":"server%d"}`, id(n), n))
	}
}

func deletes(g *Guard, n, status int) {
	if g.admit(ask(http.MethodDelete, "/servers/"+id(n), "")) == nil {
		g.Observe(Exchange{Method: http.MethodDelete, Path: "/servers/" + id(n), Status: status})
	}
}

func lists(g *Guard, n int) {
	body := fmt.Sprintf(`{"items":[{"id":%q,"name":"server%d"}]}`, id(n), n)
	g.Observe(Exchange{Method: http.MethodGet, Path: "/servers", Status: 200, Body: []byte(body)})
}

func TestLimits(t *testing.T) {
	const made, refused, unknown = http.StatusCreated, http.StatusBadRequest, http.StatusServiceUnavailable
	four := func(g *Guard, status int) {
		for n := range AtOnce {
			makes(g, n, status)
		}
	}
	for name, row := range map[string]struct {
		do   func(g *Guard)
		want string
	}{
		"as many as may be":         {func(g *Guard) { four(g, made) }, ""},
		"one too many":              {func(g *Guard) { four(g, made); makes(g, 9, made) }, "beside 4"},
		"refused ones do not count": {func(g *Guard) { four(g, refused); makes(g, 9, made) }, ""},
		"unknown ones count":        {func(g *Guard) { four(g, unknown); makes(g, 9, made) }, "beside 4"},
		"asked for again":           {func(g *Guard) { four(g, unknown); makes(g, 1, made) }, ""},
		"shown ones are counted once": {
			func(g *Guard) { makes(g, 1, unknown); lists(g, 1); makes(g, 2, made); makes(g, 3, made) },
			"",
		},
		"shown before the answer": {func(g *Guard) {
			_ = asks(g, 1)
			lists(g, 1)
			deletes(g, 1, 204)
			answers(g, 1, 0, "")
			four(g, refused)
		}, ""},
		"deleted ones make room": {
			func(g *Guard) { four(g, made); deletes(g, 1, 204); makes(g, 9, made) },
			"",
		},
		"a refused deletion makes none": {
			func(g *Guard) { four(g, made); deletes(g, 1, 409); makes(g, 9, made) },
			"beside 4",
		},
		"all that may be made": {func(g *Guard) {
			for n := range InAll + 1 {
				makes(g, n, made)
				deletes(g, n, 204)
			}
		}, fmt.Sprintf("after %d", InAll)},
		"somebody's server": {
			func(g *Guard) { lists(g, 7); deletes(g, 7, 204) },
			"DELETE /servers/" + id(7) + " was asked for, which this run has not made",
		},
		"somebody's server, answered": {func(g *Guard) {
			_ = asks(g, 1)
			answers(g, 1, made, `{"id":"`+id(7)+`","name":"db"}`)
			deletes(g, 7, 204)
		}, "has not made"},
		"a server that is none": {
			func(g *Guard) { _ = g.admit(ask(http.MethodDelete, "/servers/"+mark.Nobody, "")) },
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(t.Context())
			row.do(g)
			err := g.Err()
			if row.want == "" && err != nil || row.want != "" && !strings.Contains(fmt.Sprint(err), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// What the first answer shows was made for the server. What somebody attaches later is his, and
// so is what is in another network.
func TestParts(t *testing.T) {
	g := New(t.Context())
	g.Observe(Exchange{Method: http.MethodPost, Path: "/networks", Status: 202, Body: []byte(`{"id":"` + id(100) + `"}`)})
	makes(g, 1, 201)
	nic := func(id, network string) string { return fmt.Sprintf(`{"nicId":%q,"networkId":%q}`, id, network) }
	for _, nics := range []string{"", nic("own", id(100)) + "," + nic("other", id(101)), nic("later", id(100))} {
		body := fmt.Sprintf(`{"id":%q,"name":"server1","bootVolume":{"id":"disk"},"nics":[%s]}`, id(1), nics)
		g.Observe(Exchange{Method: http.MethodGet, Path: "/servers/" + id(1), Status: 200, Body: []byte(body)})
	}
	var things []string
	for _, thing := range g.Things() {
		things = append(things, thing.String())
	}
	want := []string{"NIC own (of server1)", "server " + id(1) + " (server1)", "volume disk (of server1)"}
	if !slices.Equal(things, want) || g.Network() != id(100) || len(g.Unnoted()) > 0 {
		t.Errorf("%q", things)
	}
}

func TestWhatIsNotAnswered(t *testing.T) {
	g := New(t.Context())
	makes(g, 1, http.StatusCreated)
	makes(g, 2, http.StatusServiceUnavailable)
	makes(g, 3, 0)
	lists(g, 3)
	if names := g.Unanswered(); !slices.Equal(names, []string{"server2"}) {
		t.Errorf("%q", names)
	}
}

// A request for a server that is on its way may make it: the end of the specs waits for it, and no
// other is sent.
func TestDoorWaitsForAnswers(t *testing.T) {
	arrived, answer := make(chan struct{}, 2), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":%q}`, id(1))
	}))
	defer api.Close()
	g := New(t.Context())
	proxy, err := NewProxy(g, api.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	post := func() error {
		target := proxy.URL() + "/v2/projects/" + id(0) + "/regions/eu01/servers"
		response, err := http.Post(target, "application/json", strings.NewReader(named(1)))
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
		t.Error("a server was asked for after the specs")
	}
	close(answer)
	proxy.EndSpecs(t.Context())
	if len(g.Things()) != 1 {
		t.Errorf("%v", g.Things())
	}
}

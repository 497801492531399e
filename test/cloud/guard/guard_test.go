// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func serverID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// asks sends a request for a server, and answers it.
func asks(g *Guard, n, status int) error {
	name := fmt.Sprint("server", n)
	reservation, err := g.Admit(name)
	if err == nil {
		g.Settle(reservation, Exchange{
			Method: http.MethodPost, Path: "/servers", Status: status,
			Sent: []byte(`{"name":"` + name + `"}`), Body: []byte(`{"id":"` + serverID(n) + `"}`),
		})
	}
	return err
}

func deletes(g *Guard, n, status int) {
	g.Observe(Exchange{Method: http.MethodDelete, Path: "/servers/" + serverID(n), Status: status})
}

func TestLimits(t *testing.T) {
	const made, refused, unknown = http.StatusCreated, http.StatusBadRequest, http.StatusServiceUnavailable
	for name, row := range map[string]struct {
		do   func(g *Guard)
		want string
	}{
		"as many as may be": {func(g *Guard) { _, _ = asks(g, 1, made), asks(g, 2, made) }, ""},
		"one too many":      {func(g *Guard) { _, _, _ = asks(g, 1, made), asks(g, 2, made), asks(g, 3, made) }, "beside 2"},
		"refused ones do not count": {func(g *Guard) {
			_, _, _ = asks(g, 1, refused), asks(g, 2, refused), asks(g, 3, made)
		}, ""},
		"unknown ones count": {func(g *Guard) { _, _, _ = asks(g, 1, unknown), asks(g, 2, unknown), asks(g, 3, made) }, "beside 2"},
		"asked for again":    {func(g *Guard) { _, _, _ = asks(g, 1, unknown), asks(g, 1, made), asks(g, 2, made) }, ""},
		"unknown ones are counted once when they show": {func(g *Guard) {
			_ = asks(g, 1, unknown)
			g.Seen(map[string]string{serverID(1): "server1"})
			_ = asks(g, 2, made)
		}, ""},
		"deleted ones make room":          {func(g *Guard) { _, _ = asks(g, 1, made), asks(g, 2, made); deletes(g, 1, 204); _ = asks(g, 3, made) }, ""},
		"a refused deletion makes none":   {func(g *Guard) { _, _ = asks(g, 1, made), asks(g, 2, made); deletes(g, 1, 409); _ = asks(g, 3, made) }, "beside 2"},
		"servers that nobody asked for":   {func(g *Guard) { g.Seen(map[string]string{serverID(1): "a", serverID(2): "b", serverID(3): "c"}) }, "shows 3 servers"},
		"more than all that may be made":  {func(g *Guard) { many(g, 4, made) }, "after 3"},
		"what is found is red at once":    {func(g *Guard) { g.Trip("it is %s", "wrong") }, "guard: it is wrong"},
		"nothing is asked for after that": {func(g *Guard) { g.Trip("first"); _ = asks(g, 1, made) }, "guard: first"},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(t.Context(), Limits{AtOnce: 2, InAll: 3, Duration: time.Hour})
			row.do(g)
			if err := g.Err(); row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// many makes servers, each after the deletion of the one before.
func many(g *Guard, count, status int) {
	for n := range count {
		_ = asks(g, n, status)
		deletes(g, n, http.StatusNoContent)
	}
}

func TestTimeEnds(t *testing.T) {
	g := New(t.Context(), Limits{AtOnce: 1, InAll: 1, Duration: time.Nanosecond})
	<-g.Context().Done()
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "slower than that") {
		t.Error(err)
	}
}

func TestWhatIsNotAnswered(t *testing.T) {
	g := New(t.Context(), DefaultLimits)
	_, _, _ = asks(g, 1, http.StatusCreated), asks(g, 2, http.StatusServiceUnavailable), asks(g, 3, 0)
	g.Seen(map[string]string{serverID(3): "server3"})
	if names := g.Unanswered(); !slices.Equal(names, []string{"server2"}) {
		t.Errorf("%q", names)
	}
}

// A request for a server that is on its way may make it: the door waits, and counts it.
func TestDoorWaitsForAnswers(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-answer
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":%q}`, serverID(1))
	}))
	defer api.Close()
	g := New(t.Context(), DefaultLimits)
	door, err := Open(g, api.URL)
	if err != nil {
		t.Fatal(err)
	}
	target := door.URL() + "/v2/projects/" + serverID(0) + "/regions/eu01/servers"
	post := func() {
		response, err := http.Post(target, "application/json", strings.NewReader(`{"name":"a"}`))
		if err == nil {
			_ = response.Body.Close()
		}
	}
	go post()
	<-arrived
	go func() {
		// Nobody is admitted any more: a second request would close arrived again.
		for door.admitted() {
			runtime.Gosched()
		}
		post()
		close(answer)
	}()
	door.Close()
	if servers := g.Servers(); !slices.Equal(servers, []string{serverID(1)}) || len(g.Unanswered()) > 0 {
		t.Errorf("servers %q, unanswered %q", servers, g.Unanswered())
	}
}

func (d *Door) admitted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.closed
}

// record is an Observer.
type record struct{ seen []Exchange }

func (r *record) Begun(Exchange)     {}
func (r *record) Observe(e Exchange) { r.seen = append(r.seen, e) }

// The door changes nothing, and does not answer where the API does not.
func TestDoor(t *testing.T) {
	const path = "/v2/projects/10000000-0000-4000-8000-000000000001/regions/eu01/servers"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Authorization") != "Bearer x" || r.URL.RequestURI() != path+"?label_selector=a%3Db" {
			t.Errorf("the API gets %s %v", r.URL.RequestURI(), r.Header)
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte("no"))
	}))
	defer api.Close()
	var seen record
	door, err := Open(New(t.Context(), Limits{Duration: time.Hour}), api.URL+"/", &seen)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	send := func(method, target string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, door.URL()+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer x")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return response, err
	}
	response, err := send(http.MethodGet, path+"?label_selector=a%3Db")
	if err != nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "7" {
		t.Errorf("%v %v", response, err)
	}
	if _, err := send(http.MethodDelete, path+"/"+serverID(1)); err == nil {
		t.Error("the door answers for an API that does not")
	}
	if _, err := send(http.MethodPost, path); err == nil {
		t.Error("a server too many was asked for")
	}
	if len(seen.seen) != 2 || seen.seen[0].Kind() != ListServers || seen.seen[1].Kind() != DeleteServer || seen.seen[1].Status != 0 || seen.seen[1].ServerID() != serverID(1) {
		t.Errorf("seen: %+v", seen.seen)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// listener is a client of the event stream.
type listener struct {
	m     *mock
	lines *bufio.Scanner
	leave func()
}

// listen connects. The connection must be closed at the end of the test, or the server
// would not close.
func (m *mock) listen() *listener {
	m.t.Helper()
	// An event that never comes must not block the tests for long.
	ctx, leave := context.WithTimeout(m.t.Context(), 20*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/admin/events", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { leave(); _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); response.StatusCode != 200 || got != "text/event-stream" {
		m.t.Fatalf("the stream is %s %q", response.Status, got)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &listener{m: m, lines: lines, leave: leave}
}

// block reads up to the next empty line.
func (l *listener) block() []string {
	l.m.t.Helper()
	var block []string
	for l.lines.Scan() {
		if l.lines.Text() == "" {
			return block
		}
		block = append(block, l.lines.Text())
	}
	l.m.t.Fatalf("the stream ended: %v", l.lines.Err())
	return nil
}

// event reads an event of this name.
func (l *listener) event(name string) object {
	l.m.t.Helper()
	block := l.block()
	if len(block) != 2 || block[0] != "event: "+name {
		l.m.t.Fatalf("got %v, want the event %s", block, name)
	}
	var content object
	if err := json.Unmarshal([]byte(strings.TrimPrefix(block[1], "data: ")), &content); err != nil {
		l.m.t.Fatal(err)
	}
	return content
}

// stepStream steps the clock, so that the streams compare the state again.
func (m *mock) stepStream(d time.Duration) {
	m.t.Helper()
	m.awaitStream()
	m.clock.Step(d)
}

// awaitStream returns when a stream waits for the clock.
func (m *mock) awaitStream() {
	m.t.Helper()
	m.await("no stream waits for the clock", m.clock.HasWaiters)
}

// await returns when the condition is true, which takes real time.
func (m *mock) await(otherwise string, so func() bool) {
	m.t.Helper()
	late := time.After(10 * time.Second)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-late:
			m.t.Fatal(otherwise)
		}
	}
}

func statuses(event object) string {
	var found []string
	servers, _ := event["servers"].([]any)
	for _, server := range servers {
		found = append(found, fmt.Sprint(server.(object)["name"], " ", server.(object)["status"]))
	}
	return strings.Join(found, ", ")
}

func TestEventsTellASnapshotAndThenChanges(t *testing.T) {
	m := openMock(t)
	first := m.create(object{"name": "first", "labels": object{"x/cluster": "one"}})
	l := m.listen()
	snapshot := l.event("snapshot")
	if got := statuses(snapshot); got != "first CREATING" {
		t.Errorf("snapshot of %s", got)
	}
	row := snapshot["servers"].([]any)[0].(object)
	if row["id"] != first || row["labels"].(object)["x/cluster"] != "one" || row["address"] == "" || row["userData"] != nil {
		t.Errorf("row %v", row)
	}
	if calls := snapshot["calls"].([]any); len(calls) != 1 || calls[0].(object)["operation"] != "CreateServer" {
		t.Errorf("calls %v", calls)
	}

	m.awaitStream()
	m.create(object{"name": "second"})
	m.stepStream(time.Second)
	change := l.event("change")
	if got := statuses(change); got != "second CREATING" {
		t.Errorf("told of %s, want the new server alone", got)
	}
	if calls := change["calls"].([]any); len(calls) != 1 {
		t.Errorf("told of calls %v, want the new one alone", calls)
	}
	if counters := change["counters"].(object); counters["callsTotal"] != 2.0 || counters["nics"] != 3.0 ||
		counters["history"].(object)["serversCreated"] != 2.0 || counters["calls"].(object)["CreateServer"] != 2.0 {
		t.Errorf("counters %v", counters)
	}

	m.stepStream(boot - time.Second)
	if got := statuses(l.event("change")); got != "first ACTIVE, second ACTIVE" {
		t.Errorf("told of %s, want what the step of the clock changes", got)
	}
	m.awaitStream()
	m.want(200, "PATCH", inRegion+"/servers/"+first, object{"labels": object{"x/cluster": "two"}})
	m.stepStream(500 * time.Millisecond)
	if row := l.event("change")["servers"].([]any)[0].(object); row["labels"].(object)["x/cluster"] != "two" {
		t.Errorf("row %v", row)
	}
	m.awaitStream()
	if err := m.cloud.RemoveServer(first); err != nil {
		t.Fatal(err)
	}
	m.stepStream(500 * time.Millisecond)
	change = l.event("change")
	if gone := change["gone"].([]any); len(gone) != 1 || gone[0] != first {
		t.Errorf("gone %v", gone)
	}
}

func TestEventsTellOfFaults(t *testing.T) {
	m := openMock(t)
	l := m.listen()
	if faults := l.event("snapshot")["faults"].([]any); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
	m.awaitStream()
	remove := m.cloud.Inject(iaasmock.Fault{Name: "odd", Operation: "ListServers", Status: 500, Count: 3})
	m.stepStream(500 * time.Millisecond)
	if faults := l.event("change")["faults"].([]any); len(faults) != 1 || faults[0].(object)["name"] != "odd" || faults[0].(object)["hits"] != 0.0 {
		t.Errorf("faults %v", faults)
	}
	m.awaitStream()
	m.want(500, "GET", inRegion+"/servers", nil)
	m.stepStream(500 * time.Millisecond)
	change := l.event("change")
	if faults := change["faults"].([]any); faults[0].(object)["hits"] != 1.0 || faults[0].(object)["remaining"] != 2.0 {
		t.Errorf("faults %v", faults)
	}
	if hit := change["calls"].([]any)[0].(object)["faults"].([]any); len(hit) != 1 {
		t.Errorf("the call was hit by %v", hit)
	}
	m.awaitStream()
	remove()
	m.stepStream(500 * time.Millisecond)
	if faults := l.event("change")["faults"].([]any); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
}

func TestEventsAreSilentWhileNothingChanges(t *testing.T) {
	m := openMock(t)
	l := m.listen()
	if snapshot := l.event("snapshot"); snapshot["counters"] == nil {
		t.Errorf("snapshot of nothing: %v", snapshot)
	}
	for range 29 {
		m.stepStream(500 * time.Millisecond)
	}
	m.stepStream(500 * time.Millisecond) // 15 s of silence
	if block := l.block(); len(block) != 1 || !strings.HasPrefix(block[0], ":") {
		t.Errorf("got %v, want a heartbeat", block)
	}
}

func TestEventsBoundTheCalls(t *testing.T) {
	m := openMock(t)
	for i := range 150 {
		m.want(200, "GET", fmt.Sprintf("/v2/keypairs?n=%d", i), nil)
	}
	snapshot := m.listen().event("snapshot")
	calls := snapshot["calls"].([]any)
	if last := calls[len(calls)-1].(object)["query"].(object)["n"].([]any)[0]; len(calls) != 100 || last != "149" {
		t.Errorf("%d calls up to %v, want the last 100", len(calls), last)
	}
	if total := snapshot["counters"].(object)["callsTotal"]; total != 150.0 {
		t.Errorf("%v calls in all", total)
	}
}

// TestEventsEndWithTheirClient finds streams that are left: a stream waits on the clock
// and on nothing else, so the fake clock knows them.
func TestEventsEndWithTheirClient(t *testing.T) {
	m := openMock(t)
	var listeners []*listener
	for range 10 {
		l := m.listen()
		l.event("snapshot")
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		l.leave()
	}
	m.await("a stream outlives its client", func() bool { return !m.clock.HasWaiters() })
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func get(tb testing.TB, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestFiveThousandServers checks what a large test needs: a list of one pool within 5 ms,
// and at most 50 MiB for the servers.
func TestFiveThousandServers(t *testing.T) {
	servers := fullServers
	if testing.Short() {
		servers /= 10
	}
	before := heap()
	cloud := fullCloud(t, servers)
	used := float64(heap()) - float64(before)
	t.Logf("%d servers take %.1f MiB", servers, used/(1<<20))
	if used > float64(servers*10<<10) {
		t.Errorf("%d servers take %.0f bytes", servers, used)
	}

	var found struct{ Items []any }
	if err := json.Unmarshal(call(t, cloud, http.MethodGet, poolList, "").Body.Bytes(), &found); err != nil || len(found.Items) != perPool {
		t.Fatalf("found %d, %v", len(found.Items), err)
	}
	if raceDetector {
		return // times mean nothing
	}
	const limit = 5 * time.Millisecond
	took := quickest(limit, func() { call(t, cloud, http.MethodGet, poolList, "") })
	t.Logf("a list of %d takes %s", perPool, took)
	if took > limit {
		t.Errorf("a list of %d takes %s", perPool, took)
	}
}

// quickest returns the shortest time of many attempts, or the first that is short enough:
// other load of the machine must not count.
func quickest(enough time.Duration, f func()) time.Duration {
	clock, best := clock.RealClock{}, time.Hour
	for range 1000 {
		start := clock.Now()
		f()
		if best = min(best, clock.Since(start)); best <= enough {
			break
		}
	}
	return best
}

// httpClients are many clients of one cloud, over HTTP.
type httpClients struct {
	cloud  *iaasmock.Cloud
	clock  *clocktesting.FakeClock
	client *http.Client
	url    string
}

func newHTTPClients(t *testing.T, size int) *httpClients {
	t.Helper()
	c := &httpClients{clock: clocktesting.NewFakeClock(time.Now())}
	c.cloud = iaasmock.New(iaasmock.WithClock(c.clock), iaasmock.WithoutAuthentication())
	api := httptest.NewServer(c.cloud)
	t.Cleanup(api.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: size}
	t.Cleanup(transport.CloseIdleConnections)
	c.client, c.url = &http.Client{Transport: transport}, api.URL
	return c
}

func (c *httpClients) do(t *testing.T, method, path string, body any, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.url+inRegion+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s %w", method, path, response.StatusCode, raw, err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}

// serverCycle creates a server, a NIC and a volume, changes them and deletes them.
func (c *httpClients) serverCycle(t *testing.T, name string) error {
	var server struct{ ID string }
	var volume, nic struct{ ID string }
	const nics = "/networks/" + iaasmock.DefaultDualStackNetworkID + "/nics"
	for _, make := range []struct {
		path   string
		body   object
		answer any
	}{
		{"/servers", serverBody(object{"name": name, "labels": object{"name": name}}), &server},
		{"/volumes", object{"availabilityZone": "eu01-1", "size": 1}, &volume},
		{nics, object{}, &nic},
	} {
		if err := c.do(t, http.MethodPost, make.path, make.body, make.answer); err != nil {
			return err
		}
	}
	if err := c.cloud.SetServerStatus(server.ID, iaasmock.StatusActive, ""); err != nil {
		return err
	}
	path := "/servers/" + server.ID
	for _, step := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPatch, nics + "/" + nic.ID, object{"name": name}},
		{http.MethodPatch, path, object{"labels": object{"touched": "yes"}}},
		{http.MethodGet, path + "?details=true", nil},
		{http.MethodGet, "/servers?details=true&label_selector=name%3D" + name, nil},
		{http.MethodGet, "/quotas", nil},
		{http.MethodDelete, path, nil},
		{http.MethodDelete, "/volumes/" + volume.ID, nil},
		{http.MethodDelete, nics + "/" + nic.ID, nil},
	} {
		if err := c.do(t, step.method, step.path, step.body, nil); err != nil {
			return err
		}
	}
	return nil
}

// round runs one serverCycle for every client at the same time.
func (c *httpClients) round(t *testing.T, size int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range size {
		wg.Go(func() {
			if err := c.serverCycle(t, fmt.Sprintf("client%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.clock.Step(time.Minute)
}

// TestFiveHundredClients has fifty in short mode.
func TestFiveHundredClients(t *testing.T) {
	clients := 500
	if testing.Short() {
		clients = 50
	}
	c := newHTTPClients(t, clients)
	c.round(t, clients)
	if servers, nics, volumes := len(c.cloud.Servers()), len(c.cloud.NICs()), len(c.cloud.Volumes()); servers != 0 || nics != 1 || volumes != 2 {
		t.Errorf("left are %d servers, %d NICs, %d volumes", servers, nics, volumes)
	}
	if totals := c.cloud.History(); totals.ServersCreated != clients || totals.NICsDeleted != 2*clients || totals.VolumesDeleted != 2*clients {
		t.Errorf("history %+v", totals)
	}
}

// TestChurnLeavesNothingBehind runs many rounds and compares the memory and the
// goroutines before and after; in short mode a few rounds, and only the goroutines.
func TestChurnLeavesNothingBehind(t *testing.T) {
	const clients = 25
	requests, rounds := 5000, 20
	if testing.Short() {
		requests, rounds = 50, 5
	}
	c := newHTTPClients(t, clients)
	settled := func() (memory uint64, goroutines int) {
		c.client.CloseIdleConnections()
		c.cloud.ResetCalls()
		return heap(), runtime.NumGoroutine()
	}
	c.round(t, clients)  // connections, pools and the like are made
	for range requests { // in full as many as it remembers
		call(t, c.cloud, http.MethodPatch, "/networks/"+iaasmock.DefaultNetworkID+"/nics/"+iaasmock.DefaultNICID, "{}")
	}
	memory, goroutines := settled()
	for range rounds {
		c.round(t, clients)
	}
	after, running := settled()
	grown := int64(after) - int64(memory)
	t.Logf("%d servers later: %d KiB more, %d goroutines, %d before", clients*rounds, grown>>10, running, goroutines)
	// One server with all that belongs to it takes some 5 KiB: more than 2 a server is a leak.
	if !testing.Short() && grown > int64(clients*rounds)<<11 {
		t.Errorf("%d bytes more are in use", grown)
	}
	if running > goroutines+2*clients { // connections that are just closing
		t.Errorf("%d goroutines, %d before", running, goroutines)
	}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	boot = 20 * time.Second
	// leads is how long a sidecar has led when its Machines come: longer than clocks may differ,
	// so that none of them can be a predecessor's.
	leads = 15 * time.Second
)

// scenario is many sidecars that share an API, and know nothing of each other.
type scenario struct {
	// machines is how many each sidecar makes.
	sidecars, machines int
	// within is the time in which the Machines come.
	within time.Duration
	// perSecond and burst limit the POSTs of servers of all sidecars together; 0 is no limit.
	perSecond rate.Limit
	burst     int
	// refusal is how many fifths of a POST a refused one takes from the limit.
	refusal int
	// retryAfter is the refusals' header.
	retryAfter []string
	// maxTime is the bound of the last Machine's end over the ideal one, maxAttempts that of the
	// POSTs that arrive for each server.
	maxTime, maxAttempts float64
}

// TestSidecarsShareAnAPI: sidecars use what an API allows, and ask for little more, though
// nobody tells them of the others.
func TestSidecarsShareAnAPI(t *testing.T) {
	thousand := scenario{
		sidecars: 1000, machines: 3, within: 10 * time.Second, perSecond: 20, burst: 100, maxTime: 1.5, maxAttempts: 5.5,
	}
	atOnce := scenario{sidecars: 300, machines: 3, perSecond: 20, burst: 100, maxTime: 1.5, maxAttempts: 4}
	costly := atOnce
	costly.within, costly.refusal, costly.maxTime = 10*time.Second, 1, 1.6
	told := atOnce
	told.within, told.retryAfter, told.maxTime, told.maxAttempts = 10*time.Second, []string{"30"}, 2, 1.5
	alone := scenario{sidecars: 1, machines: 200, perSecond: 2, burst: 2, maxTime: 1.3, maxAttempts: 10}
	unlimited := scenario{sidecars: 1, machines: 200, maxTime: 1.25, maxAttempts: 1}
	rows := map[string]scenario{
		"1,000 within 10 s": thousand,
		"300 at once":       atOnce,
		"300 within 10 s, a refusal costs a fifth": costly,
		"300 within 10 s, Retry-After is 30 s":     told,
		"one with 200 Machines, 2 POSTs a second":  alone,
		"one with 200 Machines, no limit":          unlimited,
	}
	if testing.Short() {
		few := scenario{sidecars: 30, machines: 3, perSecond: 2, burst: 10, maxTime: 1.6, maxAttempts: 4}
		rows = map[string]scenario{"30 at once": few}
	}
	key := newKey(t)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { row.run(t, key) })
		})
	}
}

// run lets the sidecars make their Machines, and holds the outcome against the bounds.
func (s scenario) run(t *testing.T, key []byte) {
	limit := &sharedLimit{Limiter: rate.NewLimiter(rate.Inf, 0), refusal: s.refusal}
	if s.perSecond > 0 {
		limit.Limiter = rate.NewLimiter(s.perSecond*parts, s.burst*parts)
	}
	sidecars := make([]*sidecar, s.sidecars)
	for i := range sidecars {
		sidecars[i] = inBubble(t, key)
		sidecars[i].cloud.Inject(iaasmock.Fault{
			Operation: "CreateServer", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": s.retryAfter},
			Match: func(*http.Request) bool { return !limit.allow() },
		})
	}
	<-time.After(leads)
	took, posts := s.bringUp(sidecars)
	over, attempts := took.Seconds()/s.ideal().Seconds(), float64(posts)/float64(s.sidecars*s.machines)
	t.Logf("the last Machine ends after %.1f s, %.2f times the ideal; %.2f POSTs a server", took.Seconds(), over, attempts)
	if over > s.maxTime || attempts > s.maxAttempts {
		t.Errorf("want at most %v times the ideal, and %v POSTs a server", s.maxTime, s.maxAttempts)
	}
	for i, sidecar := range sidecars {
		if servers := len(sidecar.cloud.Servers()); servers != s.machines {
			t.Errorf("sidecar %d has %d servers for %d Machines", i, servers, s.machines)
		}
	}
}

// ideal is when the last Machine would end if no POST were refused.
func (s scenario) ideal() time.Duration {
	if s.perSecond == 0 {
		return s.within + boot
	}
	limited := float64(s.sidecars*s.machines-s.burst) / float64(s.perSecond)
	return max(s.within, time.Duration(limited*float64(time.Second))) + boot
}

// bringUp makes each sidecar's Machines, and returns how long it took and how many POSTs.
func (s scenario) bringUp(sidecars []*sidecar) (took time.Duration, posts int) {
	began, random := time.Now(), rand.New(rand.NewPCG(1, 2))
	var all sync.WaitGroup
	for _, sidecar := range sidecars {
		for i := range s.machines {
			after := time.Duration(random.Float64() * float64(s.within))
			all.Go(func() {
				<-time.After(after)
				sidecar.bringUp(fmt.Sprintf("machine-%d", i))
			})
		}
	}
	all.Wait()
	took = time.Since(began)
	for _, sidecar := range sidecars {
		posts += sidecar.cloud.CallCounts()["CreateServer"]
	}
	return took, posts
}

// parts is in how many parts a sharedLimit divides a call.
const parts = 5

// sharedLimit is the API's limit of the POSTs of all sidecars.
type sharedLimit struct {
	*rate.Limiter
	// refusal is how many parts of a call a refused one takes.
	refusal int
}

func (l *sharedLimit) allow() bool {
	now := time.Now()
	if l.AllowN(now, parts) {
		return true
	}
	l.AllowN(now, l.refusal)
	return false
}

func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// inBubble is a sidecar whose cloud is reached without a network.
func inBubble(t *testing.T, key []byte) *sidecar {
	t.Helper()
	cloud := iaasmock.New(iaasmock.WithBootDuration(boot), iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond))
	return newSidecar(t, cloud, key, &spi.PluginSPIImpl{
		Config: spi.Config{Endpoint: "http://iaas.invalid"}, Limiter: rate.NewLimiter(50, 100), Transport: inMemory{cloud},
	}, time.Now())
}

// collectOrphans is the manager's list, every 15 minutes.
func (s *sidecar) collectOrphans() {
	request := &driver.ListMachinesRequest{MachineClass: s.class, Secret: s.secret}
	if _, err := s.driver.ListMachines(s.t.Context(), request); err != nil {
		s.t.Errorf("ListMachines: %v", err)
	}
}

// inMemory answers without a network, so that a bubble's time can pass.
type inMemory struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m inMemory) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request = request.Clone(request.Context())
		request.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

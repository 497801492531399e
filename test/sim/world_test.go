// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var config = spi.Config{Endpoint: "http://iaas.invalid", TokenURL: "http://iaas.invalid/oauth/v2/token"}

// world is one run of a plan.
type world struct {
	*testing.T
	plan  plan
	cloud *iaasmock.Cloud
	api   iaas.DefaultAPI // of another user
	// foreign are the servers, NICs and volumes of others, migrated those of the Machine from OpenStack.
	foreign, migrated map[string]any
	migratedServer    string
	// ctx ends with the run. running and late are what it waits for then: its goroutines, and late requests.
	ctx           context.Context
	running, late sync.WaitGroup

	mu       sync.Mutex
	process  *process
	machines map[string]*machine
	uids     int
	// counts are the requests of each operation, hits the faults that hit one.
	counts map[string]int
	hits   []planned
	// calm is set once no more faults occur.
	calm bool
	// trace is what happened, broken are the rules that were.
	trace, broken []string
}

// process is one life of the sidecar.
type process struct {
	driver driver.Driver
	ctx    context.Context
	end    context.CancelFunc
}

// simulationKey is a service-account key. It is made once, because that is slow.
var simulationKey = sync.OnceValue(func() []byte {
	key, err := iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		panic(err)
	}
	return key
})

// newWorld makes the cloud and what others have there.
func newWorld(t *testing.T, p plan) *world {
	w := &world{T: t, plan: p, machines: map[string]*machine{}, counts: map[string]int{}}
	w.cloud = iaasmock.New(iaasmock.WithBootDuration(p.boot), iaasmock.WithDeleteDuration(p.deletion),
		iaasmock.WithListLag(p.lag), iaasmock.WithSeed(p.seed))
	if err := w.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, simulationKey()); err != nil {
		t.Fatal(err)
	}
	w.populate()
	return w
}

// run lets a plan happen, and then lets everything end that it started.
func (w *world) run() {
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	w.process = w.newProcess()
	w.story()
	cancel()
	w.process.end()
	w.running.Wait()
	w.late.Wait()
	<-time.After(30 * time.Minute) // longer than a call of a process that has ended
}

func (w *world) newProcess() *process {
	ctx, end := context.WithCancel(context.Background())
	p := &process{ctx: ctx, end: end}
	since := time.Now()
	sessions := &spi.PluginSPIImpl{Config: config, Limiter: rate.NewLimiter(50, 100), Transport: wire{w, p}}
	p.driver = provider.NewProvider(sessions, provider.WithActingSince(func() time.Time { return since }))
	return p
}

// leader returns the process that leads, or led until a moment ago.
func (w *world) leader() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process
}

// crash ends a process; some seconds later another one leads.
func (w *world) crash(p *process, when string) {
	w.mu.Lock()
	isOver := p.ctx.Err() != nil
	p.end()
	w.mu.Unlock()
	if isOver {
		return
	}
	w.logf("CRASH %s", when)
	w.running.Go(func() {
		if !w.sleep(between(w.random("restart", when), time.Second, 10*time.Second)) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.process = w.newProcess()
	})
}

// story is what users do, what befalls the processes, and the judgement.
func (w *world) story() {
	for _, f := range w.plan.lasting {
		w.cloud.Inject(f)
	}
	w.running.Go(w.crashes)
	w.running.Go(func() {
		for w.sleep(4 * time.Minute) {
			w.collectOrphans()
		}
	})
	if w.plan.fromOpenStack {
		w.comeOver()
	}
	for i := range w.plan.machines {
		w.want(machine{name: name(i), created: time.Now()})
	}
	users := w.random("users")
	for end := time.Now().Add(w.plan.period); time.Now().Before(end); {
		w.sleep(between(users, time.Second, 90*time.Second))
		i := users.IntN(max(w.plan.machines, 1))
		switch {
		case w.plan.machines < 2: // the plan is about the whole life of one
		case oneIn(users, 2):
			w.unwant(name(i))
		default:
			w.want(machine{name: name(i), created: time.Now()})
		}
	}
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.cloud.ClearFaults() // lists go on to lag
	w.logf("the faults are over")
	w.judge()
}

func (w *world) crashes() {
	random := w.random("crashes")
	for i := range w.plan.crashes {
		if w.sleep(between(random, time.Second, w.plan.period/time.Duration(w.plan.crashes))) {
			w.crash(w.leader(), fmt.Sprint("at any moment, ", i))
		}
	}
}

// name names the Machines that users create.
func name(i int) string { return "machine-" + strings.Repeat(string(rune('a'+i)), 5) }

// random returns a random stream of its own for each purpose: what one draws does not depend on other events.
func (w *world) random(purpose ...any) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, w.plan.seed, purpose))))
}

// logf adds a line to what happened.
func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// sleep waits; it returns false if the run is over.
func (w *world) sleep(d time.Duration) bool { return spi.Sleep(w.ctx, realClock, d) == nil }

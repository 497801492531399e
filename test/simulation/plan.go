// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// settle is the driver's default: its promises hold for lags and late requests below it.
const settle = 30 * time.Second

// Plan holds all parameters of a run.
type Plan struct {
	Seed uint64
	// Clusters is the number of clusters. They share a project; each has a driver process of its own.
	Clusters int
	// Machines is the initial number of each cluster's Machines.
	Machines int
	// Origins describe the Machines that come from OpenStack. Every cluster has one Machine for each.
	Origins []Origin
	// FaultPeriod is how long, from the beginning of the run, faults occur and users change Machines and classes.
	FaultPeriod time.Duration

	// ListLag is how long lists of servers may lag, AddressDelay how long the addresses of a new server's NIC are
	// hidden, Boot how long a server takes to boot, Deletion to be deleted.
	ListLag, AddressDelay, Boot, Deletion time.Duration
	// Release is how long NICs and volumes look attached to a server that is gone.
	Release time.Duration
	// CreationTimeout is the creation timeout of all Machines; 0 means the manager's default.
	CreationTimeout time.Duration
	// Latency is the maximum time that a request takes to the cloud, and again the maximum for its answer back.
	Latency time.Duration
	// Late is the maximum time between a sender's giving up on a request and its execution by the cloud.
	Late time.Duration

	// Skew is how far the API server's clock is ahead of all others (negative: behind).
	Skew time.Duration
	// Storms are the periods in which requests fail or are rate-limited.
	Storms []Storm

	// Faults are the faults of single requests of the driver and writes of the manager.
	Faults []Fault
	// Stale is the probability, 0 to 1, with which a watch shows a change of a Machine late, by up to 10 s.
	Stale float64
	// Fallbacks lets the classes ask for a zone, and fall back to another machine type and another zone.
	Fallbacks bool
	// Rotations is how often each cluster's service-account key is replaced.
	Rotations int
	// Preset is the name of one of the mock's presets of faults, which lasts for the fault period; "" means none.
	Preset string
	// Crashes is how often each cluster's leader crashes at random times, in addition to the crashes in Faults.
	Crashes int
	// Pauses is how often each cluster's leader is paused at random times, in addition to the pauses in Faults.
	Pauses int
}

// Storm is a time in which requests fail or are limited.
type Storm struct {
	// Operation is the operation that fails, such as CreateServer; "" means all operations of the IaaS API.
	Operation string
	// Status is the HTTP status of the answer; 0 means that the connection is reset before the request is executed.
	Status int
	// Rate is the number of calls per second that are still executed; 0 means none.
	Rate int
	// Wide means that lists which select a single Machine do not fail.
	Wide bool
	// From is the start of the storm, counted from the beginning of the fault period or, in Endure, from the creation
	// of the Machines. For is the storm's length.
	From, For time.Duration
}

// fault returns the storm as a fault of the mock.
func (s Storm) fault() iaasmock.Fault {
	fault := iaasmock.Fault{
		Operation: cmp.Or(s.Operation, iaasmock.OperationIaaS), Status: s.Status, DropBefore: s.Status == 0,
		Rate: float64(s.Rate), Burst: s.Rate, After: s.From, Duration: s.For,
	}
	if s.Wide {
		fault.Match = func(r *http.Request) bool {
			return !strings.Contains(r.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
		}
	}
	return fault
}

// skewPromised is the largest skew at which the driver promises that there are never two servers. It is a
// little less than the driver's margin, since the API server's times are whole seconds.
const skewPromised = 9 * time.Second

// promised reports whether the driver promises that there are never two servers.
func (p *Plan) promised() bool {
	return p.ListLag+p.Late < settle && p.Skew.Abs() <= skewPromised && !presetTroubles[p.Preset].doubles &&
		!slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.trouble != nil && f.trouble.doubles })
}

// calm reports whether the plan has no faults, and nothing takes longer than a driver call may.
func (p *Plan) calm() bool {
	return len(p.Faults) == 0 && p.Stale == 0 && p.Rotations == 0 && p.Crashes == 0 && p.Pauses == 0 && p.Preset == "" &&
		len(p.Storms) == 0 && p.Boot < longestCall && !p.isTooSlowForOrphans()
}

// standsStill reports whether a leader may be paused.
func (p *Plan) standsStill() bool {
	return p.Pauses > 0 || slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.pause.length > 0 })
}

// cacheIsStale reports whether the manager's cache may be stale.
func (p *Plan) cacheIsStale() bool {
	return p.Stale > 0 || p.standsStill() || slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.stale > 0 })
}

func (p *Plan) String() string {
	type fields Plan // without this method
	return fmt.Sprintf("seed %d: %+v", p.Seed, fields(*p))
}

// Plans generates the tests' plans. A failing plan shrinks to the first alternatives and the smallest values.
var Plans = rapid.Custom(drawPlan)

func of[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

func within(t *rapid.T, what string, least, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(least), int64(max(least, most))).Draw(t, what))
}

// oneIn returns true once in n plans.
func oneIn(t *rapid.T, n int, what string) bool {
	return rapid.IntRange(0, 1<<16).Draw(t, what)%n == n-1
}

func drawPlan(t *rapid.T) Plan {
	p := Plan{
		Seed: rapid.Uint64().Draw(t, "seed"), Clusters: of(t, "clusters", 1, 2),
		Machines:     rapid.IntRange(1, 4).Draw(t, "machines"),
		FaultPeriod:  time.Duration(rapid.IntRange(2, 9).Draw(t, "minutes")) * time.Minute,
		AddressDelay: of(t, "address delay", 0, 0, 20*time.Second),
		Boot:         of(t, "boot", 2*time.Second, 12*time.Second, 40*time.Second),
		Deletion:     of(t, "deletion", time.Second, 5*time.Second, 20*time.Second),
		Latency:      of(t, "latency", 5*time.Millisecond, 100*time.Millisecond, 2*time.Second),
		Skew:         of(t, "skew", 0, within(t, "promised skew", -skewPromised, skewPromised)),
	}
	if oneIn(t, 12, "slow boots") {
		p.Boot, p.CreationTimeout = 12*time.Minute, 45*time.Minute
	}
	if !oneIn(t, 12, "calm") {
		p.drawTroubles(t)
	}
	p.drawOrigins(t)
	return p
}

// drawTroubles draws the plan's faults.
func (p *Plan) drawTroubles(t *rapid.T) {
	p.ListLag = of(t, "list lag", 0, 0, 3*time.Second, 14*time.Second, 26*time.Second)
	p.Late = of(t, "late", 0, (settle-p.ListLag)/2, settle-p.ListLag-3*time.Second)
	if oneIn(t, 8, "later than promised") {
		p.ListLag, p.Late = 45*time.Second, 50*time.Second
	}
	if oneIn(t, 6, "has a preset") {
		p.Preset = of(t, "preset", presets()...).Name
	}
	if p.Fallbacks = oneIn(t, 5, "has fallbacks"); p.Fallbacks && p.Preset == "" && !oneIn(t, 3, "for nothing") {
		p.Preset = presetFullZone
	}
	forgetful := oneIn(t, 8, "forgetful")
	if oneIn(t, 12, "more skew than promised") {
		p.Skew = within(t, "skew", -25*time.Second, 25*time.Second)
	}
	if oneIn(t, 5, "has a storm") {
		storm := Storm{
			Operation: of(t, "storm", opCreate, opDelete, opPatch), Status: of(t, "its status", 0, 429, 500, 503),
			From: within(t, "from", 0, p.FaultPeriod/2), For: within(t, "for", time.Minute, 5*time.Minute),
		}
		if oneIn(t, 3, "of all") {
			storm.Operation, storm.Status, storm.Rate = "", 429, 2
		}
		p.Storms = append(p.Storms, storm)
	}
	if oneIn(t, 4, "has an outage") {
		p.Storms = append(p.Storms, Storm{
			Operation: opList, Status: of(t, "outage", 500, 502, 503, 504), Wide: rapid.Bool().Draw(t, "wide"),
			From: within(t, "from", 0, p.FaultPeriod/2), For: within(t, "for", 10*time.Second, p.FaultPeriod),
		})
	}
	p.Stale, p.Rotations = of(t, "stale", 0, 0.2, 0.6), of(t, "rotations", 0, 0, 1, 2)
	// Facts known only to the process that made a server are lost with it.
	lives := p.Preset == presetDroppedLabels || oneIn(t, 3, "every process lives")
	if !lives {
		p.Crashes, p.Pauses = of(t, "crashes", 0, 1, 3), of(t, "pauses", 0, 0, 1, 2, 4)
	}
	fault := rapid.Custom(func(t *rapid.T) Fault { return p.drawFault(t, lives, forgetful) })
	p.Faults = atMostOneHidden(rapid.SliceOfN(fault, of(t, "at least", 0, 0, 4, 16), 60).Draw(t, "faults"))
}

// atMostOneHidden keeps of the faults that answer a GET 404 by mistake one that does it once: two such answers
// prove a server gone.
func atMostOneHidden(faults []Fault) []Fault {
	hidden := 0
	return slices.DeleteFunc(faults, func(f Fault) bool {
		if f.Operation != opGet || f.trouble == nil || !f.trouble.hides {
			return false
		}
		hidden++
		return hidden > 1 || f.Times > 1
	})
}

// drawFault draws a fault that the plan allows.
func (p *Plan) drawFault(t *rapid.T, lives, forgetful bool) Fault {
	operation := of(t, "operation", append([]string{opWrite, opToken}, operations...)...)
	fitting := slices.DeleteFunc(FaultsOf(operation), func(f Fault) bool {
		return lives && f.ends() || p.Preset == presetDroppedLabels && f.late ||
			f.trouble != nil && (f.trouble.doubles && !forgetful || f.trouble.strands && !lives)
	})
	f := rapid.SampledFrom(fitting).Draw(t, "fault")
	f.Cluster = rapid.IntRange(0, p.Clusters-1).Draw(t, "cluster")
	f.Nth, f.Times = rapid.IntRange(0, 30).Draw(t, "nth"), rapid.IntRange(1, 4).Draw(t, "times")
	return f
}

// drawOrigins draws Machines from OpenStack for plans in which the driver cannot lose track of a server: only
// their names tell whose these servers are, so that an orphan run would not find a lost server.
func (p *Plan) drawOrigins(t *rapid.T) {
	if !oneIn(t, 4, "from OpenStack") || !p.promised() || presetTroubles[p.Preset].hides {
		return
	}
	p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return f.trouble != nil && f.trouble.leaves })
	p.Release = of(t, "release", 0, 0, 5*time.Second, 40*time.Second)
	p.Origins = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Origin {
		o := Origin{Class: of(t, "class", classA, classB), Servers: of(t, "servers", 1, 1, 0, 2)}
		o.Elsewhere = rapid.Bool().Draw(t, "elsewhere")
		o.HasID = o.Servers > 0 && rapid.Bool().Draw(t, "has an ID")
		o.Marked = of(t, "marked", 0, within(t, "marked at", time.Second, p.FaultPeriod*3/4))
		o.Deleted = of(t, "deleted", 0, within(t, "deleted at", time.Second, p.FaultPeriod))
		o.Broken = oneIn(t, 4, "broken")
		if o.Servers > 1 && !o.HasID {
			o.Named = within(t, "named at", time.Second, p.FaultPeriod/2)
		}
		return o
	}), 1, 2).Draw(t, "origins")
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// settle is the driver's default: what is promised, is promised for lags and late
// requests below it.
const settle = 30 * time.Second

// Plan is all that a run depends on.
type Plan struct {
	Seed uint64
	// Clusters share a project; each has a driver process of its own.
	Clusters int
	// Machines of each cluster to begin with.
	Machines int
	// Origins are those of each cluster's Machines that came from OpenStack.
	Origins []Origin
	// FaultPeriod is how long things go wrong, and users change their minds.
	FaultPeriod time.Duration
	// Collects says that processes make orphan runs on their own.
	Collects bool

	ListLag, AddressDelay, Boot, Deletion time.Duration
	// Release is how long NICs and volumes look attached to a server that is gone.
	Release time.Duration
	// CreationTimeout of all Machines; 0 is the manager's default.
	CreationTimeout time.Duration
	// Latency is the longest way of a request to the cloud, and of its answer back.
	Latency time.Duration
	// Late is the latest that a request is carried out whose sender has given up.
	Late time.Duration
	// ServerLabels makes the cloud add labels of its own.
	ServerLabels bool

	// Replicas lets each list be of one of several ages up to ListLag.
	Replicas bool
	// NullLists shows empty lists as null.
	NullLists bool
	// Skew is by how much the API server's clock is ahead of all others; negative if
	// it is behind.
	Skew time.Duration
	// Forgetful lets lists of servers be empty by mistake.
	Forgetful bool
	// Hiccup is how long the moments are in which the project looks empty, a minute apart;
	// 0 means that there are none.
	Hiccup time.Duration
	// Edit is what users edit by hand; "" is nothing.
	Edit string
	// Storm is when the cloud does less than it is asked for.
	Storm Storm
	// Outage is when lists fail while everything else works.
	Outage Outage

	// Odds of what may go wrong with each request, driver answer or write.
	Odds Odds
	// Rotations of the service-account key.
	Rotations int
	// Preset of the mock that holds as long as the fault period; "" is none.
	Preset string
	// Crashes at any moment, beside those around requests and answers.
	Crashes int
	// Pauses are how often the leader stands still at any moment, beside those after
	// requests.
	Pauses int
}

// Odds are probabilities.
type Odds struct {
	// Fault meets a request, a crash of the process comes around one.
	Fault, CrashAtRequest float64
	// Pause lets the leader stand still once a request was carried out.
	Pause float64
	// Vanish lets a request, or the answer, get lost; it may be carried out late.
	Vanish float64
	// CrashAtAnswer is around the answer of a driver call.
	CrashAtAnswer float64
	// Stale lets a reconcile begin from an older version of its Machine; Conflict
	// makes a write fail.
	Stale, Conflict float64
}

// Outage is a time in which lists of servers fail.
type Outage struct {
	// Status is what they answer; 0 means that there is no outage.
	Status int
	// From the beginning of the run, For that long.
	From, For time.Duration
	// Wide spares lists that ask for a single Machine.
	Wide bool
}

// skewPromised is the greatest skew at which the driver promises that there are
// never two servers. It is a little less than what the driver spares, since the API
// server's times are whole seconds.
const skewPromised = 9 * time.Second

// promised says whether the driver promises that there are never two servers. A list that
// would be the first to show a late one may fall into a moment in which it is empty.
func (p *Plan) promised() bool {
	return p.ListLag+p.Late+p.Hiccup < settle && p.Skew.Abs() <= skewPromised &&
		!p.Forgetful && !presetTroubles[p.Preset].doubles && !presetTroubles[p.Preset].forgets && !slices.Contains(unpromised, p.Preset)
}

// unpromised are presets whose lists and reads lag together, or longer than settle.
var unpromised = []string{"stale-lists", "stale-reads"}

// calm says that nothing goes wrong.
func (p *Plan) calm() bool {
	return p.Odds == (Odds{}) && p.Rotations == 0 && p.Crashes == 0 && p.Pauses == 0 && p.Preset == "" && p.Edit == "" && p.Outage == (Outage{}) && p.Storm == (Storm{}) && p.Hiccup == 0
}

// standsStill says that a leader may stand still.
func (p *Plan) standsStill() bool { return p.Pauses > 0 || p.Odds.Pause > 0 }

// NewPlan draws a plan from a seed.
func NewPlan(seed uint64) Plan {
	rng := random(seed, "plan")
	plan := Plan{
		Seed: seed, Clusters: 1 + rng.IntN(2), Machines: 1 + rng.IntN(4),
		FaultPeriod:  time.Duration(2+rng.IntN(8)) * time.Minute,
		Collects:     true,
		AddressDelay: pick(rng, 0, 0, 20*time.Second),
		Boot:         pick(rng, 2*time.Second, 12*time.Second, 40*time.Second),
		Deletion:     pick(rng, time.Second, 5*time.Second, 20*time.Second),
		Latency:      pick(rng, 5*time.Millisecond, 100*time.Millisecond, 2*time.Second),
		ServerLabels: rng.IntN(3) == 0,
	}
	if slow := random(seed, "slow"); slow.IntN(12) == 0 {
		plan.Boot, plan.CreationTimeout = 12*time.Minute, 45*time.Minute
	}
	surroundings := random(seed, "surroundings")
	plan.NullLists = surroundings.IntN(4) == 0
	plan.Skew = pick(surroundings, 0, between(surroundings, -skewPromised, skewPromised))
	if rng.IntN(12) == 0 {
		plan.drawOrigins(random(seed, "OpenStack"))
		return plan // nothing goes wrong
	}
	plan.ListLag = pick(rng, 0, 0, 3*time.Second, 14*time.Second, 26*time.Second)
	plan.Late = pick(rng, 0, (settle-plan.ListLag)/2, settle-plan.ListLag-3*time.Second)
	if rng.IntN(8) == 0 {
		plan.ListLag, plan.Late = 45*time.Second, 50*time.Second
	}
	plan.Odds = Odds{
		Fault: pick(rng, 0, 0.02, 0.1, 0.3), CrashAtRequest: pick(rng, 0, 0.01, 0.05),
		Vanish: pick(rng, 0, 0.02, 0.1), CrashAtAnswer: pick(rng, 0, 0.03, 0.15),
		Stale: pick(rng, 0, 0.2, 0.6), Conflict: pick(rng, 0, 0.1, 0.4),
	}
	plan.Rotations = pick(rng, 0, 0, 1, 2)
	plan.Crashes = pick(rng, 0, 1, 3)
	if rng.IntN(6) == 0 {
		plan.Preset = pick(rng, iaasmock.Presets()...).Name
	}
	plan.spoilLists(surroundings)
	if surroundings.IntN(12) == 0 {
		plan.Skew = pick(surroundings, -25*time.Second, 25*time.Second)
	}
	if surroundings.IntN(3) == 0 {
		plan.Pauses, plan.Odds.Pause = pick(surroundings, 1, 2, 4), pick(surroundings, 0, 0.01, 0.05)
	}
	if edits := random(seed, "edits"); edits.IntN(5) == 0 {
		plan.Edit = pick(edits, editSecret, editLabel, editName)
	}
	if plan.Edit == editSecret || plan.Preset == presetDroppedLabels {
		plan.stayAlive()
	}
	plan.addHiccups(random(seed, "hiccups"))
	if storms := random(seed, "storm"); storms.IntN(5) == 0 {
		plan.Storm = drawStorm(storms, plan.FaultPeriod)
	}
	plan.drawOrigins(random(seed, "OpenStack"))
	return plan
}

// addHiccups draws moments in which the project looks empty. Nothing else hides a server
// then: the driver takes a server for gone that has not been seen for longer.
func (p *Plan) addHiccups(rng *rand.Rand) {
	if rng.IntN(4) == 0 && !p.Forgetful && !slices.Contains(hidingPresets, p.Preset) {
		p.Hiccup = between(rng, 1500*time.Millisecond, longestHiccup)
	}
}

// longestHiccup is the longest moment in which a project may look empty.
const longestHiccup = 12 * time.Second

// hidingPresets are those that hide servers.
var hidingPresets = []string{"stale-lists", "stale-reads", "empty-lists", "empty-project", "random-404"}

// staysAlive says that every process lives, and leads, as long as the run.
func (p *Plan) staysAlive() bool {
	return p.Crashes == 0 && p.Odds.CrashAtRequest == 0 && p.Odds.CrashAtAnswer == 0 && !p.standsStill() && p.Edit != editName
}

// stayAlive lets every process live, for what only the process that did it knows. Then no
// request is lost with a label dropped, either.
func (p *Plan) stayAlive() {
	p.Crashes, p.Odds.CrashAtRequest, p.Odds.CrashAtAnswer = 0, 0, 0
	p.Pauses, p.Odds.Pause = 0, 0
	if p.Preset == presetDroppedLabels {
		p.Odds.Vanish = 0
	}
}

// spoilLists draws what goes wrong with lists.
func (p *Plan) spoilLists(rng *rand.Rand) {
	p.Replicas = rng.IntN(3) == 0
	p.Forgetful = p.Odds.Fault > 0 && rng.IntN(8) == 0
	if rng.IntN(4) == 0 {
		p.Outage = Outage{
			Status: pick(rng, 500, 502, 503, 504), Wide: rng.IntN(2) == 0,
			From: between(rng, 0, p.FaultPeriod/2), For: between(rng, 10*time.Second, p.FaultPeriod),
		}
	}
}

func (p *Plan) String() string {
	type fields Plan // without this method
	return fmt.Sprintf("seed %d: %+v", p.Seed, fields(*p))
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// chance is true with that probability.
func chance(rng *rand.Rand, probability float64) bool {
	return probability > 0 && rng.Float64() < probability
}

// between is a duration in least to most, to the nanosecond: moments then hardly
// ever coincide, so that their order is the seed's and not the scheduler's.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// random is a stream that depends on the seed and a name only, not on what else
// was drawn.
func random(seed uint64, name ...any) *rand.Rand {
	hash := fnvHash(fmt.Sprint(name...))
	return rand.New(rand.NewPCG(seed, hash))
}

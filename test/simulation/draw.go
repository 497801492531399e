// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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
	plan.Probabilities = Probabilities{
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
		plan.Pauses, plan.Probabilities.Pause = pick(surroundings, 1, 2, 4), pick(surroundings, 0, 0.01, 0.05)
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

// stayAlive lets every process live, for what only the process that did it knows. Then no
// request is lost with a label dropped, either.
func (p *Plan) stayAlive() {
	p.Crashes, p.Probabilities.CrashAtRequest, p.Probabilities.CrashAtAnswer = 0, 0, 0
	p.Pauses, p.Probabilities.Pause = 0, 0
	if p.Preset == presetDroppedLabels {
		p.Probabilities.Vanish = 0
	}
}

// spoilLists draws what goes wrong with lists.
func (p *Plan) spoilLists(rng *rand.Rand) {
	p.Replicas = rng.IntN(3) == 0
	p.Forgetful = p.Probabilities.Fault > 0 && rng.IntN(8) == 0
	if rng.IntN(4) == 0 {
		p.Outage = Outage{
			Status: pick(rng, 500, 502, 503, 504), Wide: rng.IntN(2) == 0,
			From: between(rng, 0, p.FaultPeriod/2), For: between(rng, 10*time.Second, p.FaultPeriod),
		}
	}
}

// drawOrigins draws how Machines come from OpenStack into plans in which nobody may lose track
// of a server: nothing in the cloud says whose these are but their names, so that no orphan run
// would find one that was lost. Whoever edits the Secret has to wait until they are labelled.
func (p *Plan) drawOrigins(rng *rand.Rand) {
	if rng.IntN(4) > 0 || !p.promised() || p.Edit == editSecret || slices.Contains(hidingPresets, p.Preset) {
		return
	}
	p.Release = pick(rng, 0, 0, 5*time.Second, 40*time.Second)
	for range 1 + rng.IntN(2) {
		origin := Origin{Class: pick(rng, classA, classB), Servers: pick(rng, 1, 1, 0, 2), Elsewhere: rng.IntN(2) == 0}
		origin.HasID = origin.Servers > 0 && rng.IntN(2) == 0
		origin.Marked = pick(rng, 0, between(rng, time.Second, p.FaultPeriod*3/4))
		origin.Deleted = pick(rng, 0, between(rng, time.Second, p.FaultPeriod))
		origin.Broken = rng.IntN(4) == 0
		if origin.Servers > 1 && !origin.HasID {
			origin.Named = between(rng, time.Second, p.FaultPeriod/2)
		}
		p.Origins = append(p.Origins, origin)
	}
}

// drawStorm draws a storm in the first half of the fault period: a kind of write that fails for
// minutes, or an API that takes two calls a second.
func drawStorm(rng *rand.Rand, faultPeriod time.Duration) Storm {
	s := Storm{
		Operation: pick(rng, opCreate, opDelete, opPatch), Status: pick(rng, 0, 429, 500, 503),
		From: between(rng, 0, faultPeriod/2), For: between(rng, time.Minute, 5*time.Minute),
	}
	if rng.IntN(3) == 0 {
		s.Operation, s.Status, s.Rate = "", 429, 2
	}
	return s
}

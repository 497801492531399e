// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"
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

	// Probabilities of what may go wrong with each request, driver answer or write.
	Probabilities Probabilities
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

// What users edit by hand; see Plan.Edit.
const (
	// editSecret names another project or region in the Secret for a time.
	editSecret = "the Secret"
	// editLabel gives a running server the machine label of another running Machine for
	// a time.
	editLabel = "a label"
	// editName ends a Machine without its deletion, and makes another of its name. The
	// old server is found again at once, or only once the new Machine has one, too.
	editName = "a name"
)

// Probabilities are probabilities.
type Probabilities struct {
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
	return p.Probabilities == (Probabilities{}) && p.Rotations == 0 && p.Crashes == 0 && p.Pauses == 0 && p.Preset == "" && p.Edit == "" && p.Outage == (Outage{}) && p.Storm == (Storm{}) && p.Hiccup == 0
}

// standsStill says that a leader may stand still.
func (p *Plan) standsStill() bool { return p.Pauses > 0 || p.Probabilities.Pause > 0 }

// staysAlive says that every process lives, and leads, as long as the run.
func (p *Plan) staysAlive() bool {
	return p.Crashes == 0 && p.Probabilities.CrashAtRequest == 0 && p.Probabilities.CrashAtAnswer == 0 && !p.standsStill() && p.Edit != editName
}

func (p *Plan) String() string {
	type fields Plan // without this method
	return fmt.Sprintf("seed %d: %+v", p.Seed, fields(*p))
}

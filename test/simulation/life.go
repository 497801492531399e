// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"sync"
	"time"
)

// Disturbance is the one thing that goes wrong in a life: it befalls the API
// request, or the driver answer, of that number. The zero value is nothing.
type Disturbance struct {
	Request, Answer int
	name            string
	callFault       callFault
	answerFault     answerFault
}

func (d Disturbance) String() string {
	switch {
	case d.Request > 0:
		return fmt.Sprintf("request %d: %s", d.Request, d.name)
	case d.Answer > 0:
		return fmt.Sprintf("answer %d: %s", d.Answer, d.name)
	default:
		return "nothing"
	}
}

// lateBy is how late a request is carried out whose sender is gone.
const lateBy = 6 * time.Second

// DisturbancesOf are all that can befall a request for the operation.
func DisturbancesOf(number int, operation string) []Disturbance {
	all := []Disturbance{
		{name: "crash before it", callFault: callFault{crashBefore: true}},
		{name: "crash once it is sent, carried out late", callFault: callFault{crashBefore: true, late: lateBy}},
		{name: "crash after it", callFault: callFault{crashAfter: true}},
		{name: "lost", callFault: callFault{vanish: true}},
		{name: "pause after it", callFault: callFault{pause: stillness{length: 14 * time.Second, renewal: time.Second, fresh: 3 * time.Second}}},
		{name: "pause after it, another leads", callFault: callFault{pause: stillness{
			length: 50 * time.Second, takeover: leaseDuration, notice: renewDeadline + retryPeriod, fresh: 8 * time.Second}}},
		{name: "the project looks empty from then on", callFault: callFault{hiccup: longestHiccup}},
		{name: "lost, carried out late", callFault: callFault{vanish: true, late: lateBy}},
	}
	for _, t := range troublesOf(operation) {
		all = append(all, Disturbance{name: t.name, callFault: callFault{trouble: t}})
	}
	for i := range all {
		all[i].Request = number
	}
	return all
}

// DisturbancesOfAnswer are all that can befall the answer of a driver call.
func DisturbancesOfAnswer(number int) []Disturbance {
	return []Disturbance{
		{Answer: number, name: "crash before it is used", answerFault: answerFault{crashBefore: true}},
		{Answer: number, name: "crash after it is written down", answerFault: answerFault{crashAfter: true}},
		{Answer: number, name: "writing it down fails", answerFault: answerFault{conflict: true}},
	}
}

// once is the injector in which one thing goes wrong.
type once struct {
	Disturbance

	mu sync.Mutex
	// operations that were asked for, in order.
	operations []string
}

func (o *once) request(c call) callFault {
	o.mu.Lock()
	o.operations = append(o.operations, c.operation)
	o.mu.Unlock()
	u := callFault{}
	if c.number == o.Request {
		u = o.callFault
	}
	u.there, u.back = 10*time.Millisecond, 10*time.Millisecond
	return u
}

func (o *once) answer(a answer) answerFault {
	if a.number == o.Answer {
		return o.answerFault
	}
	return answerFault{}
}

func (*once) stale(string, string, int) int { return 0 }

// Life is the one Machine of a life, and its cloud.
type Life struct {
	name string
	// lag of the cloud's lists of servers.
	lag time.Duration
	// origins has one where the Machine comes from OpenStack.
	origins []Origin
}

// Lives are those in which everything goes wrong, one at a time. The Machine from OpenStack is
// asked for before it is marked; what it had there is released late, so that much can happen
// between the end of its server and the DELETE of its volume.
var Lives = []Life{
	{name: "lag 0s"}, {name: "lag 20s", lag: 20 * time.Second},
	{name: "from OpenStack", lag: 5 * time.Second, origins: []Origin{{Class: classA, Servers: 1, Marked: 20 * time.Second}}},
}

// Live takes one Machine from its creation, or the moment when we take it over, until it is
// gone, and lets one thing go wrong. It returns the operations it asked for, too. Like Run it
// needs a bubble.
func Live(life Life, d Disturbance) (Result, []string) {
	plan := Plan{Seed: 1, Clusters: 1, ListLag: life.lag, Late: lateBy, Boot: 2 * time.Second, Deletion: 2 * time.Second, Hiccup: d.callFault.hiccup,
		Origins: life.origins, Release: 8 * time.Second}
	if d.callFault.pause.length > 0 {
		plan.Pauses = 1
	}
	plan.Forgetful = d.callFault.trouble != nil && d.callFault.trouble.forgets
	f := &once{Disturbance: d}
	s := newSimulation(&plan, f)
	s.disturbed = d.Request+d.Answer > 0
	result := s.run(func() Result {
		c := s.clusters[0]
		s.spawn(c.machineSet)
		s.sleep(15 * time.Second) // the Machine is not taken for a predecessor's work
		c.comeOver()
		if len(life.origins) == 0 {
			c.want(machineName(0), classA)
		}
		s.sleep(time.Minute) // a Machine that is wanted again afterwards is another life
		result := s.rest()
		s.tearDown()
		return result
	})
	return result, f.operations
}

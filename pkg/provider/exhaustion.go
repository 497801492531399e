// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/utils/clock"
)

// exhaustedFor is how long a class that ran out of quota or capacity is answered
// so again without asking the API: every event of a class makes the manager call
// for all of its machines, whatever its retry period.
const exhaustedFor = time.Minute

// classKey names a class across sessions.
type classKey struct {
	endpoint, projectID, region, class string
}

func (c *call) classKey() classKey {
	return classKey{c.key.endpoint, c.key.projectID, c.key.region, c.class}
}

// exhaustion remembers which classes ran out of quota or capacity.
type exhaustion struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	classes map[classKey]exhausted
}

type exhausted struct {
	err   error
	until time.Time
	// spec is the providerSpec that was refused: another may be served.
	spec string
}

func newExhaustion(clock clock.PassiveClock) *exhaustion {
	return &exhaustion{clock: clock, classes: map[classKey]exhausted{}}
}

// note remembers the error if it says that something is exhausted.
func (e *exhaustion) note(key classKey, spec string, err error) {
	if err == nil {
		return
	}
	if code, _ := judge(err); code != codes.ResourceExhausted {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	maps.DeleteFunc(e.classes, func(_ classKey, old exhausted) bool { return !now.Before(old.until) })
	e.classes[key] = exhausted{err: err, until: now.Add(exhaustedFor), spec: spec}
}

// check returns the remembered error, if it still holds.
func (e *exhaustion) check(key classKey, spec string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok := e.classes[key]
	if !ok {
		return nil
	}
	if found.spec != spec || !e.clock.Now().Before(found.until) {
		delete(e.classes, key)
		return nil
	}
	return found.err
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"maps"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Known is what the API has told a run of its own things by their IDs. With it things are
// found that have no marks: the API may lose them, or refuse them.
type Known struct {
	mu sync.Mutex
	// servers has the runs whose POSTs were answered with these IDs.
	servers map[string]string
	// parts are NICs and boot volumes by their IDs.
	parts map[string]part
}

// part is a NIC or boot volume of a run's server.
type part struct{ run, server string }

// NewKnown returns a Known of nothing: marks alone count.
func NewKnown() *Known { return &Known{servers: map[string]string{}, parts: map[string]part{}} }

// Server notes that a POST of the run was answered with this ID.
func (k *Known) Server(run, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.servers[id] = run
}

// Part notes that a server of the run has shown this NIC or boot volume as its own.
func (k *Known) Part(run, server, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parts[id] = part{run, server}
}

// Servers returns the noted servers: their runs, by ID.
func (k *Known) Servers() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.servers)
}

// PartOf returns the server that has shown this NIC or boot volume, empty for none.
func (k *Known) PartOf(id string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.parts[id].server
}

// Complete says whether a server has shown a NIC and its boot volume.
func (k *Known) Complete(server string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	shown := 0
	for _, of := range k.parts {
		if of.server == server {
			shown++
		}
	}
	return shown >= 2
}

// Parts returns how many NICs and boot volumes were noted.
func (k *Known) Parts() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.parts)
}

// Whose returns the run whose thing this is, and false for somebody else's: this alone decides
// what is deleted. It takes all marks; or, of a thing whose ID is known, those that the API
// leaves it, none of which may be somebody else's: a server has the run's name in any case, and
// the API gives NICs and boot volumes none.
func (k *Known) Whose(id, name string, labels api.Labels) (run string, ours bool) {
	if run, ours := RunOf(name, labels); ours {
		return run, true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	run, server := k.servers[id]
	of, isPart := k.parts[id]
	if isPart {
		run = of.run
	}
	if cluster := value(labels, ClusterLabel); cluster != "" && cluster != Cluster(run) {
		return "", false
	}
	named := strings.HasPrefix(name, Name(run, ""))
	return run, server && named || isPart && (named || name == "")
}

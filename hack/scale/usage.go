// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// mebibytes is how results give memory.
type mebibytes float64

// usage is what a process has used since it started: CPU time, and its resident
// memory now and at its peak. Part of the resident memory is the program's own file;
// anonymous is the rest, which no other process can share and only swapping frees.
// All are 0 where they are not known.
type usage struct {
	cpu                     seconds
	memory, anonymous, peak mebibytes
}

// cloudPart is this program itself: the mock runs in it, and the Nodes' simulator.
const cloudPart = "mock and measuring"

// othersPart is everything else on the computer. Where it takes much, the figures
// tell more about that than about the driver.
const othersPart = "other programs"

// parts are the processes that share the computer.
var parts = []localenv.Part{localenv.PartSidecar, localenv.PartManager, localenv.PartAPIServer, localenv.PartEtcd}

// usages reads the usage of all parts.
func usages(env *localenv.Env) (map[string]usage, error) {
	pids := map[string]int{cloudPart: os.Getpid()}
	for _, part := range parts {
		pids[string(part)] = env.PID(part)
	}
	all := map[string]usage{}
	busy, err := readBusy()
	if err != nil {
		return nil, err
	}
	for part, pid := range pids {
		u, err := readUsage(pid)
		if err != nil {
			return nil, err
		}
		all[part] = u
		busy -= u.cpu
	}
	all[othersPart] = usage{cpu: busy}
	return all, nil
}

// cpuBetween returns the CPU time of each part between two readings.
func cpuBetween(before, after map[string]usage) map[string]seconds {
	spent := map[string]seconds{}
	for part, u := range after {
		spent[part] = u.cpu - before[part].cpu
	}
	return spent
}

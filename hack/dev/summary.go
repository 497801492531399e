// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// inventory is what a cloud holds, as descriptions by ID.
type inventory map[string]string

func takeInventory(cloud *iaasmock.Cloud) inventory {
	held := inventory{}
	for _, server := range cloud.Servers() {
		held[server.ID] = fmt.Sprintf("server %s (%s, %s)", server.ID, server.Name, server.Status)
	}
	for _, nic := range cloud.NICs() {
		held[nic.ID] = fmt.Sprintf("NIC %s (%s%s)", nic.ID, nic.IPv4, attachment(nic.ServerID))
	}
	for _, volume := range cloud.Volumes() {
		held[volume.ID] = fmt.Sprintf("volume %s (%d GB%s)", volume.ID, volume.Size, attachment(volume.ServerID))
	}
	return held
}

func attachment(serverID string) string {
	if serverID == "" {
		return ""
	}
	return ", attached to " + serverID
}

// since returns what is held now and was not, or was otherwise, before; sorted.
func (now inventory) since(before inventory) []string {
	var added []string
	for id, description := range now {
		if before[id] != description {
			added = append(added, description)
		}
	}
	slices.Sort(added)
	return added
}

// lostSince returns what was held before and no longer is, sorted.
func (now inventory) lostSince(before inventory) []string {
	var lost []string
	for id, description := range before {
		if _, held := now[id]; !held {
			lost = append(lost, description)
		}
	}
	slices.Sort(lost)
	return lost
}

func timesTable(times []stepTime) string {
	var text strings.Builder
	var sum time.Duration
	for _, step := range times {
		limit := ""
		if step.limit > 0 {
			limit = fmt.Sprintf(" (limit %.0f s)", step.limit.Seconds())
		}
		sum += step.took
		_, _ = fmt.Fprintf(&text, "%7.1f s  %s%s\n", step.took.Seconds(), step.title, limit)
	}
	_, _ = fmt.Fprintf(&text, "%7.1f s  in all\n", sum.Seconds())
	return text.String()
}

func totals(machines int, history iaasmock.Totals, left []string) string {
	kinds := map[string]int{}
	for _, description := range left {
		kind, _, _ := strings.Cut(description, " ")
		kinds[kind]++
	}
	return fmt.Sprintf("Machines: %d\nServers:  %d created, %d deleted\nLeft:     servers: %d, NICs: %d, volumes: %d\n",
		machines, history.ServersCreated, history.ServersDeleted, kinds["server"], kinds["NIC"], kinds["volume"])
}

// apiCalls lists calls by kind, the most frequent first.
func apiCalls(counts map[string]int) string {
	sum := 0
	for _, count := range counts {
		sum += count
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "API calls: %d\n", sum)
	for _, name := range names {
		_, _ = fmt.Fprintf(&text, "  %6d %s\n", counts[name], name)
	}
	return text.String()
}

// stepTime is how long a step took.
type stepTime struct {
	title       string
	took, limit time.Duration
}

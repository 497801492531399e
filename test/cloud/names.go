// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"
)

const (
	// prefix begins the name of each network and server of the suite.
	prefix = "mcm-cloud-test-"
	// clusterLabel is the label by which the driver finds a cluster's orphans. The life's servers have
	// it, with the name of the run's network as value; the probes' servers do not.
	clusterLabel = "kubernetes.io/cluster"
	// probeLabel has the run's name as value.
	probeLabel = "mcm-cloud-test"
	// oldAfter is the age from which a sweep takes a run for ended: no run lasts that long.
	oldAfter = time.Hour
	// layout is the first part of a run's name: its start in UTC, to the second.
	layout = "20060102-150405"
)

// namePattern is strict, because a user's own cluster may be called mcm-cloud-test-prod.
var namePattern = regexp.MustCompile(`^` + prefix + `(\d{8}-\d{6}-[a-z2-7]{4})(-|$)`)

// newRunName returns the name of a run that starts now.
func newRunName(now time.Time) string {
	return now.UTC().Format(layout) + "-" + strings.ToLower(rand.Text()[:4])
}

// isRunName reports whether the text has the form of a run's name.
func isRunName(text string) bool {
	found, ok := runOf(networkName(text))
	return ok && found == text
}

// runOf returns the run to which a network or server of this name belongs.
func runOf(name string) (run string, ok bool) {
	found := namePattern.FindStringSubmatch(name)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// isOld reports whether the run began longer ago than oldAfter.
func isOld(run string, now time.Time) bool {
	started, err := time.Parse(layout, run[:min(len(run), len(layout))])
	return err == nil && now.Sub(started) > oldAfter
}

// networkName returns the name of the run's network.
func networkName(run string) string { return prefix + run }

// namesBegin returns how the names of the run's servers begin.
func namesBegin(run string) string { return prefix + run + "-" }

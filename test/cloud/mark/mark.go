// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package mark names the runs of the suite and what they make.
package mark

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

const (
	// Prefix begins the names of all that the suite makes, and the values of ClusterLabel.
	Prefix = "mcm-cloud-test-"
	// ClusterLabel has the value Prefix + run.
	ClusterLabel = "kubernetes.io/cluster"
	// Nobody is the ID of nothing.
	Nobody = "00000000-0000-4000-8000-00000000dead"
	// OldAfter is the age from which a run is over, whatever became of it: none lasts that long.
	OldAfter = time.Hour
)

// layout is how the name of a run begins: with the second of its start, in UTC.
const layout = "20060102-150405"

// named is strict: somebody's cluster may be called mcm-cloud-test-prod.
var named = regexp.MustCompile(`^` + Prefix + `(\d{8}-\d{6}-[a-z2-7]{4})(-|$)`)

// NewRun returns the name of a run that starts now.
func NewRun(now time.Time) string {
	return now.UTC().Format(layout) + "-" + strings.ToLower(rand.Text()[:4])
}

// IsRun says that a text has the form of a run's name.
func IsRun(run string) bool {
	found, ok := RunOf(Network(run))
	return ok && found == run
}

// RunOf returns the run that a network or server of this name belongs to.
func RunOf(name string) (run string, ok bool) {
	found := named.FindStringSubmatch(name)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// IsOld says that the run began longer ago than OldAfter.
func IsOld(run string, now time.Time) bool {
	started, err := time.Parse(layout, run[:min(len(run), len(layout))])
	return err == nil && now.Sub(started) > OldAfter
}

// Network returns the name of the run's network, which is also the value of ClusterLabel.
func Network(run string) string { return Prefix + run }

// Name returns the name of a thing of the run.
func Name(run, thing string) string { return Prefix + run + "-" + thing }

// Selector selects the servers of the run.
func Selector(run string) string { return ClusterLabel + "=" + Network(run) }

// Labels returns the labels of a server of the run that belongs to a Machine.
func Labels(run, machine, class string) map[string]string {
	return map[string]string{
		ClusterLabel: Network(run), provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class,
	}
}

// Kinds of things that a run makes, or lets the API make.
const (
	KindNetwork = "network"
	KindServer  = "server"
	KindNIC     = "NIC"
	KindVolume  = "volume"
)

// Thing is something in the cloud. Name is its own, or for a part of a server the server's.
type Thing struct {
	Kind, ID, Name string
	// Status is the last one seen, empty for none.
	Status string
	// Deleting says that a DELETE of it was accepted.
	Deleting bool
}

func (t Thing) String() string {
	text := t.Kind + " " + t.ID
	switch {
	case t.Name == "":
	case t.Kind == KindNIC || t.Kind == KindVolume:
		text += " (of " + t.Name + ")"
	default:
		text += " (" + t.Name + ")"
	}
	if t.Status != "" {
		text += ", " + t.Status
	}
	return text
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package mark is about what the suite's own servers, NICs and volumes are known by: their
// name, the label of the run, and the driver's two labels. What lacks one of them is
// somebody else's, unless the run itself has seen how it came to be: type Known. Nothing is
// deleted but what Known.Whose says is a run's.
package mark

import (
	"cmp"
	"crypto/rand"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

const (
	// Prefix begins the names of all that the suite makes, and the values of ClusterLabel.
	Prefix = "mcm-cloud-test-"
	// ClusterLabel has the value Prefix + run.
	ClusterLabel = "kubernetes.io/cluster"
)

// layout is how the name of a run begins: with the second of its start, in UTC.
const layout = "20060102-150405"

// NewRun returns the name of a run that starts now. Names are in the order of the starts.
func NewRun(now time.Time) string {
	return now.UTC().Format(layout) + "-" + strings.ToLower(rand.Text()[:4])
}

// Cluster returns the value of ClusterLabel.
func Cluster(run string) string { return Prefix + run }

// Name returns the name of a thing of the run.
func Name(run, thing string) string { return Prefix + run + "-" + thing }

// Selector selects what is the run's.
func Selector(run string) string { return ClusterLabel + "=" + Cluster(run) }

// Labels returns the labels of a thing of the run that belongs to a Machine.
func Labels(run, machine, class string) map[string]string {
	return map[string]string{
		ClusterLabel: Cluster(run), provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class,
	}
}

// Plain returns the key of a label as an API takes it that allows neither slashes nor dots,
// as is said of volumes' labels.
func Plain(key string) string { return strings.NewReplacer("/", "-", ".", "-").Replace(key) }

// value returns that of a label, whose key may be a plain one.
func value(labels api.Labels, key string) string {
	return cmp.Or(labels.Get(key), labels.Get(Plain(key)))
}

// RunOf returns the run whose thing this is by its marks, and false for somebody else's.
func RunOf(name string, labels api.Labels) (string, bool) {
	run, marked := strings.CutPrefix(value(labels, ClusterLabel), Prefix)
	ours := marked && settings.IsRun(run) && strings.HasPrefix(name, Name(run, "")) &&
		value(labels, provider.StackitMachineLabel) != "" && value(labels, provider.StackitMachineClassLabel) != ""
	return run, ours
}

// Similar says that something looks like the suite's.
func Similar(name string, labels api.Labels) bool {
	return strings.HasPrefix(name, Prefix) || strings.HasPrefix(value(labels, ClusterLabel), Prefix)
}

// Age returns how old a thing of the run is: by the API's time of its creation or, where it
// shows none, by the run's name.
func Age(run string, created, now time.Time) (time.Duration, bool) {
	if !created.IsZero() {
		return now.Sub(created), true
	}
	if len(run) < len(layout) {
		return 0, false
	}
	started, err := time.Parse(layout, run[:len(layout)])
	return now.Sub(started), err == nil
}

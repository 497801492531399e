// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

const (
	// Prefix begins the name of each resource of the suite and each value of ClusterLabel.
	Prefix = "mcm-cloud-test-"
	// ClusterLabel has the value Prefix + run.
	ClusterLabel = "kubernetes.io/cluster"
	// Nobody is a valid ID that no resource has.
	Nobody = "00000000-0000-4000-8000-00000000dead"
	// OldAfter is the age from which a run counts as over: no run lasts that long.
	OldAfter = time.Hour
)

// layout is the first part of a run's name: its start in UTC, to the second.
const layout = "20060102-150405"

// named is strict, since a user's cluster may be called mcm-cloud-test-prod.
var named = regexp.MustCompile(`^` + Prefix + `(\d{8}-\d{6}-[a-z2-7]{4})(-|$)`)

// NewRun returns the name of a run that starts now.
func NewRun(now time.Time) string {
	return now.UTC().Format(layout) + "-" + strings.ToLower(rand.Text()[:4])
}

// IsRun reports whether a text has the form of a run's name.
func IsRun(run string) bool {
	found, ok := RunOf(NetworkName(run))
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

// IsOld reports whether the run began longer ago than OldAfter.
func IsOld(run string, now time.Time) bool {
	started, err := time.Parse(layout, run[:min(len(run), len(layout))])
	return err == nil && now.Sub(started) > OldAfter
}

// NetworkName returns the name of the run's network, which is also the value of ClusterLabel.
func NetworkName(run string) string { return Prefix + run }

// Name returns the name of a resource of the run.
func Name(run, thing string) string { return Prefix + run + "-" + thing }

// Selector selects the run's servers.
func Selector(run string) string { return ClusterLabel + "=" + NetworkName(run) }

// ServerLabels returns the labels of the run's server of a Machine.
func ServerLabels(run, machine, class string) map[string]string {
	return map[string]string{
		ClusterLabel: NetworkName(run), provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class,
	}
}

// Kinds of resources that a run creates, or the API for it.
const (
	KindNetwork = "network"
	KindServer  = "server"
	KindNIC     = "NIC"
	KindVolume  = "volume"
)

var (
	// PartKinds are the kinds of what is made in a network.
	PartKinds = []string{KindServer, KindNIC, KindVolume}
	// Kinds are all kinds.
	Kinds = []string{KindServer, KindNIC, KindVolume, KindNetwork}
)

// Thing is a resource in the cloud. Name is its own or, for a part of a server, the server's.
type Thing struct {
	Kind, ID, Name string
	// Status is the last one seen, "" if none was.
	Status string
	// Deleting says that a DELETE was sent.
	Deleting bool
	// Network is the ID of a NIC's network, "" if it is not known.
	Network string
}

// Parts returns what the API has made for a server, as an answer with details shows it: its boot volume, and its
// NICs in the networks that are the run's.
func (s Server) Parts(isOurs func(network string) bool) (parts []Thing) {
	for _, nic := range s.NICs {
		if isOurs(nic.NetworkID) {
			parts = append(parts, Thing{Kind: KindNIC, ID: nic.ID, Name: s.Name, Network: nic.NetworkID})
		}
	}
	if volume := s.BootVolume.ID; volume != "" {
		parts = append(parts, Thing{Kind: KindVolume, ID: volume, Name: s.Name})
	}
	return parts
}

// Path is the path by which it is read, changed and deleted.
func (t Thing) Path() string {
	return map[string]string{
		KindServer: PathServers, KindVolume: PathVolumes, KindNetwork: PathNetworks, KindNIC: PathNICs(t.Network),
	}[t.Kind] + "/" + t.ID
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

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// result is a whole run, as it is written to a file. Times are in seconds, memory
// is in MiB.
type result struct {
	Conditions conditions    `json:"conditions"`
	Computer   computer      `json:"computer"`
	StartedAt  time.Time     `json:"startedAt"`
	Phases     []phaseResult `json:"phases"`
	// SidecarReady is from its start until it answers on /healthz.
	SidecarReady seconds `json:"sidecarReadySeconds,omitempty"`
	// SidecarIdle and SidecarPeak are its resident memory before the first Machine
	// and at most; SidecarIdleAnonymous leaves out what is in the program's file.
	SidecarIdle          mebibytes `json:"sidecarIdleMiB,omitempty"`
	SidecarIdleAnonymous mebibytes `json:"sidecarIdleAnonymousMiB,omitempty"`
	SidecarPeak          mebibytes `json:"sidecarPeakMiB,omitempty"`
}

// conditions are what two runs must share to be compared, and what they differ in.
type conditions struct {
	Driver           string  `json:"driver"`
	Machines         int     `json:"machines"`
	Boot             seconds `json:"boot"`
	Join             seconds `json:"join"`
	Delete           seconds `json:"delete"`
	Keep             int     `json:"keep"`
	LatencyMin       seconds `json:"latencyMin"`
	LatencyMax       seconds `json:"latencyMax"`
	Faults           float64 `json:"faults"`
	AllowedAddresses bool    `json:"allowedAddresses"`
	Surge            string  `json:"surge"`
	// SidecarArgs and ManagerArgs are the flags that bear on speed.
	SidecarArgs []string `json:"sidecarArgs"`
	ManagerArgs []string `json:"managerArgs"`
}

// computer is what the run was made on.
type computer struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	CPUs  int    `json:"cpus"`
	Model string `json:"model,omitempty"`
	Go    string `json:"go"`
}

// phaseResult is one of up, roll and down.
type phaseResult struct {
	Name string `json:"name"`
	// Took is until the Machines that were asked for were Running, or none was
	// left. Settled is until nothing too much was left either: the manager makes
	// more Machines than asked for at times, and deletes them again.
	Took           seconds `json:"took"`
	Settled        seconds `json:"settled"`
	ServersCreated int     `json:"serversCreated"`
	ServersDeleted int     `json:"serversDeleted"`
	// BeforeServer is, for each server made in the phase that is there at its end,
	// the time from the Machine's being there to the server's; OverBoot from the
	// server's being ACTIVE to the Machine's being Running.
	BeforeServer spread             `json:"beforeServer"`
	OverBoot     spread             `json:"overBoot"`
	Calls        callSummary        `json:"calls"`
	CPU          map[string]seconds `json:"cpu"`
	// History has the counts whenever they changed, at most twice a second.
	History []moment `json:"history"`
}

// moment is what the counts became some seconds after the begin of a phase.
type moment struct {
	At seconds `json:"at"`
	counts
}

// thin turns changes into moments of a phase that began at start; of those in the
// same half second the last is kept.
func thin(changes []change, start time.Time) []moment {
	var moments []moment
	for _, c := range changes {
		m := moment{At: toSeconds(max(c.at.Sub(start), 0)), counts: c.counts}
		if last := len(moments) - 1; last >= 0 && int(moments[last].At*2) == int(m.At*2) {
			moments[last] = m
			continue
		}
		moments = append(moments, m)
	}
	return moments
}

// phase returns the phase of this name, nil if there is none.
func (r *result) phase(name string) *phaseResult {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

func thisComputer() computer {
	return computer{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Model: cpuModel(), Go: runtime.Version()}
}

// cpuModel is the processor's name where the system tells it in a file.
func cpuModel() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (r *result) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

func readResult(path string) (*result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// checkFloor tells why a floor says nothing about a run.
func (r *result) checkFloor(floor *result) error {
	ours, theirs := r.Conditions, floor.Conditions
	if ours.Machines != theirs.Machines || ours.Boot != theirs.Boot || ours.Join != theirs.Join || ours.Keep != theirs.Keep || ours.Surge != theirs.Surge {
		return fmt.Errorf("it is of %d machines, %d kept, boot %gs, join %gs, surge %s", theirs.Machines, theirs.Keep, theirs.Boot, theirs.Join, theirs.Surge)
	}
	return nil
}

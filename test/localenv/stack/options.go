// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import "strings"

// Option configures an environment.
type Option func(*settings)

type settings struct {
	namespace      string
	cloud          API
	targetless     bool
	targetCluster  bool
	withoutManager bool
	withoutSidecar bool
	sidecarProgram string
	// sidecarReplicas is 0 for a single machine-controller without leader election.
	sidecarReplicas int
	sidecarArgs     []string
	managerArgs     []string
	progress        func(string)
}

func newSettings(opts []Option) settings {
	s := settings{
		namespace:      "default",
		sidecarProgram: "machine-controller",
		progress:       func(string) {},
	}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// controllers names the controllers that Start starts.
func (s *settings) controllers() string {
	var names []string
	if !s.withoutManager {
		names = append(names, string(PartManager))
	}
	if !s.withoutSidecar || s.sidecarReplicas > 0 {
		names = append(names, string(PartSidecar))
	}
	return strings.Join(names, " and ")
}

// WithNamespace sets the namespace of the control cluster that the controllers watch. Start creates
// it if it is missing. Default: "default".
func WithNamespace(name string) Option { return func(s *settings) { s.namespace = name } }

// WithCloud sets the IaaS API for the controllers. Without it the sidecar uses the public API.
func WithCloud(cloud API) Option { return func(s *settings) { s.cloud = cloud } }

// WithTargetless runs without a target cluster: both controllers get
// --target-kubeconfig=none.
func WithTargetless() Option { return func(s *settings) { s.targetless = true } }

// WithTargetCluster runs a second kube-apiserver as the target cluster: Machines are in the control cluster, Nodes in
// the target cluster. They share only etcd, under different prefixes.
func WithTargetCluster() Option { return func(s *settings) { s.targetCluster = true } }

// WithoutManager starts no machine-controller-manager, so that only Machines and MachineClasses
// have an effect: no controller handles MachineDeployments and MachineSets. StartManager can start
// it later.
func WithoutManager() Option { return func(s *settings) { s.withoutManager = true } }

// WithoutSidecar starts no machine-controller. StartSidecar can start it later.
func WithoutSidecar() Option { return func(s *settings) { s.withoutSidecar = true } }

// WithSidecarProgram runs the program of this name in bin/localenv instead of this project's
// machine-controller, with the same flags and environment. 'make localenv' must have built it.
func WithSidecarProgram(name string) Option { return func(s *settings) { s.sidecarProgram = name } }

// WithSidecarReplicas runs several machine-controllers that elect a leader. A replica that ends is
// restarted, as in Kubernetes. ReplicaPart returns their parts, for Logs. StartSidecar, KillSidecar
// and SidecarMetricsURL do not apply to them.
func WithSidecarReplicas(count int) Option {
	return func(s *settings) { s.sidecarReplicas, s.withoutSidecar = count, true }
}

// WithSidecarArgs appends flags to those of the machine-controller. The last value of a flag takes
// effect.
func WithSidecarArgs(args ...string) Option {
	return func(s *settings) { s.sidecarArgs = append(s.sidecarArgs, args...) }
}

// WithManagerArgs appends flags to those of machine-controller-manager. The last value of a flag
// takes effect.
func WithManagerArgs(args ...string) Option {
	return func(s *settings) { s.managerArgs = append(s.managerArgs, args...) }
}

// WithProgress calls report with a line whenever a step of Start begins, possibly from several
// goroutines.
func WithProgress(report func(line string)) Option {
	return func(s *settings) { s.progress = report }
}

// API describes how the controllers reach an IaaS API.
type API struct {
	// Environment holds the environment variables ("NAME=value") with which the sidecar reaches the
	// API.
	Environment []string
	// ServiceAccountKey is the key, in JSON, that ApplyFile writes into Secrets; nil leaves them
	// unchanged.
	ServiceAccountKey []byte
}

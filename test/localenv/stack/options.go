// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

// Option changes how an environment is made.
type Option func(*settings)

type settings struct {
	namespace      string
	cloud          API
	targetless     bool
	targetCluster  bool
	withoutManager bool
	withoutSidecar bool
	sidecarProgram string
	// sidecarReplicas is 0 for a single one without leader election.
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

// WithNamespace sets the namespace of the control cluster that the controllers
// watch. It is made if it does not exist. Default: "default".
func WithNamespace(name string) Option { return func(s *settings) { s.namespace = name } }

// WithCloud sets the IaaS API that the controllers work with. Without it the sidecar takes the
// public one.
func WithCloud(cloud API) Option { return func(s *settings) { s.cloud = cloud } }

// WithTargetless runs without a target cluster: both controllers get
// --target-kubeconfig=none.
func WithTargetless() Option { return func(s *settings) { s.targetless = true } }

// WithTargetCluster runs a second kube-apiserver, for a target cluster of its own:
// Machines are in the control cluster, Nodes in the target cluster. The two share etcd,
// where each has a prefix of its own, and nothing else.
func WithTargetCluster() Option { return func(s *settings) { s.targetCluster = true } }

// WithoutManager leaves machine-controller-manager out: only Machines and
// MachineClasses work then. StartManager can still start it.
func WithoutManager() Option { return func(s *settings) { s.withoutManager = true } }

// WithoutSidecar leaves the machine-controller out. StartSidecar can still
// start it.
func WithoutSidecar() Option { return func(s *settings) { s.withoutSidecar = true } }

// WithSidecarProgram runs another machine-controller than this project's: a program that
// 'make localenv' builds. It gets the same flags and environment.
func WithSidecarProgram(name string) Option { return func(s *settings) { s.sidecarProgram = name } }

// WithSidecarReplicas runs this many machine-controllers instead of one. They elect
// a leader, and each that ends is started again, as Kubernetes does it. Their logs are
// those of ReplicaPart, and StartSidecar, KillSidecar and SidecarMetricsURL are not
// about them.
func WithSidecarReplicas(count int) Option {
	return func(s *settings) { s.sidecarReplicas, s.withoutSidecar = count, true }
}

// WithSidecarArgs appends flags to the machine-controller's; the last of a kind
// wins.
func WithSidecarArgs(args ...string) Option {
	return func(s *settings) { s.sidecarArgs = append(s.sidecarArgs, args...) }
}

// WithManagerArgs appends flags to those of machine-controller-manager; the
// last of a kind wins.
func WithManagerArgs(args ...string) Option {
	return func(s *settings) { s.managerArgs = append(s.managerArgs, args...) }
}

// WithProgress calls report with a line whenever a step of Start begins. It may
// be called from several goroutines.
func WithProgress(report func(line string)) Option {
	return func(s *settings) { s.progress = report }
}

// API says how the controllers reach an IaaS API.
type API struct {
	// Environment holds the sidecar's variables ("NAME=value") for it.
	Environment []string
	// ServiceAccountKey (JSON) goes into the Secrets that ApplyFile applies; nil leaves them
	// as they are.
	ServiceAccountKey []byte
}

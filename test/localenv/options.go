// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Option configures an environment.
type Option func(*settings)

type settings struct {
	namespace      string
	cloudOptions   []iaasmock.Option
	cloudHandler   func(http.Handler) http.Handler
	joinDuration   time.Duration
	targetCluster  bool
	withoutManager bool
	withoutSidecar bool
	podRestarts    bool
	sidecarProgram string
	sidecarArgs    []string
	progress       func(string)
}

func newSettings(opts []Option) settings {
	s := settings{
		namespace:      "default",
		cloudHandler:   func(cloud http.Handler) http.Handler { return cloud },
		joinDuration:   time.Second,
		sidecarProgram: string(PartSidecar),
		progress:       func(string) {},
	}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// WithCloudOptions adds options for the mock of the cloud.
func WithCloudOptions(opts ...iaasmock.Option) Option {
	return func(s *settings) { s.cloudOptions = append(s.cloudOptions, opts...) }
}

// WithCloudMiddleware wraps the HTTP handler of the cloud's mock, for example to record calls.
func WithCloudMiddleware(wrap func(cloud http.Handler) http.Handler) Option {
	return func(s *settings) { s.cloudHandler = wrap }
}

// WithJoinDuration sets the time from when the simulator first sees a server ACTIVE until it
// registers the server's Node. Default: 1 s.
func WithJoinDuration(d time.Duration) Option { return func(s *settings) { s.joinDuration = d } }

// WithNamespace sets the namespace that the controllers watch, which Start creates. Default: "default".
func WithNamespace(name string) Option { return func(s *settings) { s.namespace = name } }

// WithTargetCluster runs a second control plane, in which the Nodes are: the target cluster.
func WithTargetCluster() Option { return func(s *settings) { s.targetCluster = true } }

// WithoutManager starts no machine-controller-manager, so that only Machines and MachineClasses
// have an effect: no controller handles MachineDeployments and MachineSets.
func WithoutManager() Option { return func(s *settings) { s.withoutManager = true } }

// WithoutSidecar starts no machine-controller. StartSidecar can start it later.
func WithoutSidecar() Option { return func(s *settings) { s.withoutSidecar = true } }

// WithPodRestarts starts a container of a Pod again when it has ended, as a kubelet does. Without it such an end is
// a failure of the environment.
func WithPodRestarts() Option { return func(s *settings) { s.podRestarts = true } }

// WithSidecarProgram runs the program of this name in bin/localenv instead of this project's
// machine-controller, with the same flags and environment.
func WithSidecarProgram(name string) Option { return func(s *settings) { s.sidecarProgram = name } }

// WithSidecarArgs appends flags to those of the machine-controller. The last value of a flag takes effect.
func WithSidecarArgs(args ...string) Option {
	return func(s *settings) { s.sidecarArgs = append(s.sidecarArgs, args...) }
}

// WithProgress calls report with a line whenever a step of Start begins, and about containers that start again.
func WithProgress(report func(line string)) Option {
	return func(s *settings) { s.progress = report }
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// Option configures an environment.
type Option func(*settings)

type settings struct {
	stack        []stack.Option
	cloudOptions []iaasmock.Option
	cloudHandler func(http.Handler) http.Handler
	joinDuration time.Duration
}

func newSettings(opts []Option) settings {
	s := settings{
		joinDuration: time.Second,
		cloudHandler: func(cloud http.Handler) http.Handler { return cloud },
	}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// of converts an option of package stack.
func of(option stack.Option) Option {
	return func(s *settings) { s.stack = append(s.stack, option) }
}

// WithCloudOptions adds options for the mock of the cloud.
func WithCloudOptions(opts ...iaasmock.Option) Option {
	return func(s *settings) { s.cloudOptions = append(s.cloudOptions, opts...) }
}

// WithCloudMiddleware wraps the HTTP handler of the cloud's mock, for example to record calls. If
// the option is given several times, the last one applies.
func WithCloudMiddleware(wrap func(cloud http.Handler) http.Handler) Option {
	return func(s *settings) { s.cloudHandler = wrap }
}

// WithJoinDuration sets the time from when the simulator first sees a server ACTIVE until it
// registers the server's Node. Default: 1 s.
func WithJoinDuration(d time.Duration) Option { return func(s *settings) { s.joinDuration = d } }

// WithNamespace sets the namespace that the controllers watch: see stack.WithNamespace. Default: "default".
func WithNamespace(name string) Option { return of(stack.WithNamespace(name)) }

// WithTargetCluster runs a second kube-apiserver for the Nodes: see stack.WithTargetCluster.
func WithTargetCluster() Option { return of(stack.WithTargetCluster()) }

// WithoutManager starts no machine-controller-manager: see stack.WithoutManager.
func WithoutManager() Option { return of(stack.WithoutManager()) }

// WithoutSidecar starts no machine-controller: see stack.WithoutSidecar.
func WithoutSidecar() Option { return of(stack.WithoutSidecar()) }

// WithSidecarProgram runs another program instead of this project's machine-controller: see stack.WithSidecarProgram.
func WithSidecarProgram(name string) Option { return of(stack.WithSidecarProgram(name)) }

// WithSidecarReplicas runs several machine-controllers that elect a leader: see stack.WithSidecarReplicas.
func WithSidecarReplicas(count int) Option { return of(stack.WithSidecarReplicas(count)) }

// WithSidecarArgs appends flags to those of the machine-controller: see stack.WithSidecarArgs.
func WithSidecarArgs(args ...string) Option { return of(stack.WithSidecarArgs(args...)) }

// WithManagerArgs appends flags to those of machine-controller-manager: see stack.WithManagerArgs.
func WithManagerArgs(args ...string) Option { return of(stack.WithManagerArgs(args...)) }

// WithProgress calls report with a line whenever a step of Start begins: see stack.WithProgress.
func WithProgress(report func(line string)) Option { return of(stack.WithProgress(report)) }

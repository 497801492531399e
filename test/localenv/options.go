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

// WithCloudOptions sets options of the cloud's mock.
func WithCloudOptions(opts ...iaasmock.Option) Option {
	return func(s *settings) { s.cloudOptions = append(s.cloudOptions, opts...) }
}

// WithCloudMiddleware wraps the HTTP handler of the cloud's mock, for example to record calls. If
// the option is given several times, the last one applies.
func WithCloudMiddleware(wrap func(cloud http.Handler) http.Handler) Option {
	return func(s *settings) { s.cloudHandler = wrap }
}

// WithJoinDuration sets the time from the simulator's first sight of an ACTIVE server to the
// server's Node. Default: 1 s.
func WithJoinDuration(d time.Duration) Option { return func(s *settings) { s.joinDuration = d } }

// WithNamespace applies stack.WithNamespace.
func WithNamespace(name string) Option { return of(stack.WithNamespace(name)) }

// WithTargetCluster applies stack.WithTargetCluster.
func WithTargetCluster() Option { return of(stack.WithTargetCluster()) }

// WithoutManager applies stack.WithoutManager.
func WithoutManager() Option { return of(stack.WithoutManager()) }

// WithoutSidecar applies stack.WithoutSidecar.
func WithoutSidecar() Option { return of(stack.WithoutSidecar()) }

// WithSidecarProgram applies stack.WithSidecarProgram.
func WithSidecarProgram(name string) Option { return of(stack.WithSidecarProgram(name)) }

// WithSidecarReplicas applies stack.WithSidecarReplicas.
func WithSidecarReplicas(count int) Option { return of(stack.WithSidecarReplicas(count)) }

// WithSidecarArgs applies stack.WithSidecarArgs.
func WithSidecarArgs(args ...string) Option { return of(stack.WithSidecarArgs(args...)) }

// WithManagerArgs applies stack.WithManagerArgs.
func WithManagerArgs(args ...string) Option { return of(stack.WithManagerArgs(args...)) }

// WithProgress applies stack.WithProgress.
func WithProgress(report func(line string)) Option { return of(stack.WithProgress(report)) }

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// Env is a running environment. Its methods may be used from several
// goroutines.
type Env struct {
	*stack.Env

	mock      *mock
	stopNodes func()
}

// Start starts all parts, whose programs make has built, and returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on
// /healthz. If it fails, the error names the part with the end of its log (a
// *PartError), and everything that had been started is stopped again. ctx
// bounds the start alone: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	s := newSettings(opts)
	e := &Env{mock: &mock{cloud: iaasmock.New(s.cloudOptions...), wrap: s.cloudHandler}, stopNodes: func() {}}
	var err error
	if e.Env, err = stack.Start(ctx, append(s.stack, stack.WithCloud(e.mock))...); err != nil {
		return nil, err
	}
	if !s.targetless {
		e.stopNodes = startNodes(e.Cloud(), e.TargetClient(), s.joinDuration)
	}
	return e, nil
}

// Stop stops all parts in reverse order and removes the temporary folder. It
// returns when everything is gone. Further calls do nothing.
func (e *Env) Stop() {
	e.stopNodes()
	e.Env.Stop()
}

// Cloud returns the mock of the cloud, to look at and to change.
func (e *Env) Cloud() *iaasmock.Cloud { return e.mock.cloud }

// CloudURL returns the URL at which the mock serves the IaaS API.
func (e *Env) CloudURL() string { return e.mock.url }

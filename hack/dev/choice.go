// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"
)

// errInterrupted is why a command ends when somebody asked it to.
var errInterrupted = errors.New("interrupted")

// choice is what a command's flags choose: how long the mock takes to boot a server and to
// remove it, and who starts the sidecar.
type choice struct {
	boot, remove time.Duration
	sidecar      string
}

// The environment has a sidecar of its own, or none.
const (
	ownSidecar = "own"
	noSidecar  = "none"
)

// causeOf returns why ctx has ended if that is what made err: client-go answers
// that the context was cancelled, and not why.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

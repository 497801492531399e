// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// recovered, deferred, replaces err by that of a panic, whose stack goes to the log.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		klog.ErrorS(nil, "A driver call panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		*err = newError(ReasonDriverBug, "the driver failed unexpectedly; its log has the stack")
	}
}

// safely guards a read, which runs in a goroutine of its own, against panics.
func safely[V any](read func(context.Context) (V, error)) func(context.Context) (V, error) {
	return func(ctx context.Context) (value V, err error) {
		defer recovered(&err)
		return read(ctx)
	}
}

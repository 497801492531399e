// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes what runs of the suite have left: servers, NICs and volumes that
// package mark takes for a run's, and nothing else.
package sweep

import (
	"io"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// OldAfter is the age from which things of a run go that has not been named: no run lasts
// that long.
const OldAfter = time.Hour

// Sweeper sweeps a project.
type Sweeper struct {
	API *api.Client
	// Known is what the run knows of its things beside their marks.
	Known *mark.Known
	// Out is told what is found, before anything is deleted.
	Out io.Writer
	// Settle is how long lists may lag: what they show is looked at again after it. Patience
	// is how long a deletion may take. Poll is how often the project is looked at.
	Settle, Patience, Poll time.Duration
}

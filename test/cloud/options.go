// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

// Options of a run. Those for times let the self-test be quick.
type Options struct {
	Settings settings.Settings
	Limits   guard.Limits
	// Settle is how long lists may lag; the sidecar's --stackit-settle, too.
	Settle time.Duration
	// Poll is how often the suite looks at the project.
	Poll time.Duration
	// Patience is how long one thing may take: a boot, a deletion, a sweep.
	Patience time.Duration
	// Command is the path of mcm-stackit.
	Command string
	// In is the terminal; Out gets what the run says, and hides what is secret.
	In  *os.File
	Out io.Writer
}

func (o Options) say(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, format+"\n", args...) }

// sweeper returns one that knows marks alone.
func (o Options) sweeper(client *api.Client) sweep.Sweeper {
	return sweep.Sweeper{API: client, Known: mark.NewKnown(), Out: o.Out, Settle: o.Settle, Patience: o.Patience, Poll: o.Poll}
}

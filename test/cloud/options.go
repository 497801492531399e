// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
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

// MaxDuration is the most that Limits may say: things of a run go when they are older than
// sweep.OldAfter, and its end takes time, too.
const MaxDuration = 40 * time.Minute

// Check says what is wrong with the options, before anything is asked of the API.
func (o Options) Check() error {
	var problems []error
	if o.Limits.Duration > MaxDuration {
		problems = append(problems, fmt.Errorf("--limit is %s, must be at most %s: other runs delete what is older than %s", o.Limits.Duration, MaxDuration, sweep.OldAfter))
	}
	if _, err := exec.LookPath(o.Command); err != nil {
		problems = append(problems, fmt.Errorf("--mcm-stackit: %w: make mcm-stackit builds it", err))
	}
	if o.Settings.Report != "" {
		file, err := os.OpenFile(o.Settings.Report, os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", settings.EnvReport, err))
		}
	}
	return errors.Join(problems...)
}

// where says where things are made and deleted.
func (o Options) where() string {
	project := o.Settings.ProjectID
	at := "at " + o.Settings.Endpoint
	if o.Settings.Endpoint != spi.DefaultEndpoint {
		at += fmt.Sprintf("\n  WHICH IS NOT %s: %s or %s is set", spi.DefaultEndpoint, spi.EnvIaaSEndpoint, spi.EnvAPIEndpoint)
	}
	return fmt.Sprintf("in the project that ends in %s, region %s, network %s,\n%s", project[max(0, len(project)-4):], o.Settings.Region, o.Settings.NetworkID, at)
}

func (o Options) say(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, format+"\n", args...) }

// sweeper returns one that knows marks alone.
func (o Options) sweeper(client *api.Client) sweep.Sweeper {
	return sweep.Sweeper{API: client, Known: mark.NewKnown(), Out: o.Out, Settle: o.Settle, Patience: o.Patience, Poll: o.Poll}
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		change func(o *Options)
		want   string
	}{
		"as they should be":        {func(o *Options) { o.Settings.Report = filepath.Join(t.TempDir(), "report.md") }, ""},
		"longer than a sweep lets": {func(o *Options) { o.Limits.Duration = 3 * time.Hour }, "--limit is 3h0m0s, must be at most 40m0s"},
		"no mcm-stackit":           {func(o *Options) { o.Command = "/none/mcm-stackit" }, "--mcm-stackit: "},
		"a report nobody can save": {func(o *Options) { o.Settings.Report = "/none/report.md" }, "REPORT: open /none/report.md"},
	} {
		t.Run(name, func(t *testing.T) {
			o := someOptions(t)
			row.change(&o)
			if err := o.Check(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// Who says yes has read where.
func TestThePlanSaysWhere(t *testing.T) {
	o := someOptions(t)
	for _, want := range []string{"ends in abcd,", "region eu01", nobody, spi.DefaultEndpoint} {
		if !strings.Contains(o.plan("r"), want) {
			t.Errorf("%q is not in\n%s", want, o.plan("r"))
		}
	}
	if strings.Contains(o.plan("r"), "IS NOT") || strings.Contains(o.plan("r"), o.Settings.ProjectID) {
		t.Error(o.plan("r"))
	}
	o.Settings.Endpoint = "https://iaas.example.com"
	if !strings.Contains(o.plan("r"), "https://iaas.example.com\n  WHICH IS NOT "+spi.DefaultEndpoint) {
		t.Error(o.plan("r"))
	}
}

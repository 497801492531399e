// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/flagtable"
)

var update = flag.Bool("update", false, "write the table of flags anew")

func TestFlagsAreCurrent(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	newDriverOptions().addFlags(flags)
	flagtable.Current(t, "README.md", flagtable.Of(flags), *update)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/reference"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

var update = flag.Bool("update", false, "write the table of flags anew")

func TestFlagsAreCurrent(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	newDriverOptions().addFlags(flags)
	reference.Current(t, "README.md", "flags", reference.Flags(flags), *update)
}

// described records what is registered, also what has no series yet.
type described struct {
	prometheus.Registerer

	all []*prometheus.Desc
}

func (d *described) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for description := range descriptions {
			d.all = append(d.all, description)
		}
	}
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", ` +
	`constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// metrics is the table of the driver's metrics. What one is follows from its name.
func metrics(t *testing.T) string {
	t.Helper()
	registered := &described{}
	newDriver(newServer(pflag.NewFlagSet("", pflag.ContinueOnError)), newDriverOptions(), &spi.PluginSPIImpl{}, registered)
	table := "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
	for _, described := range registered.all {
		parts := description.FindStringSubmatch(described.String())
		if parts == nil {
			t.Fatalf("not read: %s", described)
		}
		kind := "gauge"
		switch {
		case strings.HasSuffix(parts[1], "_total"):
			kind = "counter"
		case strings.HasSuffix(parts[1], "_duration_seconds"):
			kind = "histogram"
		}
		labels := strings.Fields(strings.NewReplacer(",", " ").Replace(parts[4]))
		for _, fixed := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(parts[3], -1) {
			labels = append([]string{fixed[1]}, labels...)
		}
		help := strings.NewReplacer(`\"`, `"`, "|", `\|`).Replace(strings.Trim(parts[2], `"`))
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", parts[1], kind, strings.Join(labels, ", "), help)
	}
	return table
}

func TestMetricsAreCurrent(t *testing.T) {
	elsewhere, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range elsewhere {
		if strings.HasPrefix(family.GetName(), "stackit_") {
			t.Errorf("%s is not registered by newDriver: the table would not have it", family.GetName())
		}
	}
	reference.Current(t, "../../kubernetes/monitoring/README.md", "metrics", metrics(t), *update)
}

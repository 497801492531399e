// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// noNames are the parts of a query that may hold words, but no names of metrics, in the
	// order in which they are taken out.
	noNames = []*regexp.Regexp{
		regexp.MustCompile(`"[^"]*"`),
		regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`),
		regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`),
		regexp.MustCompile(`\boffset\s+\S+`),
	}
	word      = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(?)`)
	operators = []string{"and", "or", "unless", "bool", "by", "without", "on", "ignoring", "group_left", "group_right"}
)

// MetricNames returns the metrics that a valid query reads, each once. A histogram's
// _bucket, _sum and _count stand for the histogram.
func MetricNames(query string) []string {
	for _, part := range noNames {
		query = part.ReplaceAllString(query, "")
	}
	var names []string
	for _, match := range word.FindAllStringSubmatch(query, -1) {
		if isFunction := match[2] != ""; isFunction || slices.Contains(operators, match[1]) {
			continue
		}
		names = append(names, Family(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Family returns the metric that a series is of.
func Family(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

// grafana is what Grafana puts in the place of its variables.
var grafana = strings.NewReplacer(
	"$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h", "$namespace", "shoot--a--b")

// Query returns a dashboard's query as Prometheus gets it.
func Query(expr string) string { return grafana.Replace(expr) }

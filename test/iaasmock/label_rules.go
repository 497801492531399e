// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"
)

// The rules for labels as the document states them in prose, less the look-ahead
// for the length that Go's expressions lack.
var (
	labelKeyRule   = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	labelValueRule = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])*$`)
)

// checkLabelRules looks at the labels of a decoded body. A null value takes a
// label away, so that only its key counts.
func checkLabelRules(body any) *apiError {
	object, _ := body.(map[string]any)
	labels, _ := object["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !obeys(key, labelKeyRule) {
			return badRequest("label key %q does not match %s", key, labelKeyRule)
		}
		if value, isText := labels[key].(string); isText && !obeys(value, labelValueRule) {
			return badRequest("label %q: the value %q does not match %s", key, value, labelValueRule)
		}
	}
	return nil
}

func obeys(text string, rule *regexp.Regexp) bool {
	return utf8.RuneCountInString(text) <= maxLabelLength && rule.MatchString(text)
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The rules for labels that the API checks. It documents more: slashes in keys, for
// example, work on servers.
const (
	maxLabelLength      = 63
	maxMetadataLength   = 255
	reservedLabelPrefix = "stackit-"
)

// mergeLabels returns a new map: current with change applied. A null value removes a
// label.
func mergeLabels(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if key == "" || utf8.RuneCountInString(key) > maxLabelLength {
			// Source: the document: Labels' description.
			return nil, badRequest("label key %q must have between 1 and %d characters", key, maxLabelLength)
		}
		if strings.HasPrefix(key, reservedLabelPrefix) {
			// Source: the document: Labels' description.
			return nil, badRequest("label key %q uses the reserved prefix %q", key, reservedLabelPrefix)
		}
	}
	return mergeStrings(current, change, "label", maxLabelLength)
}

// mergeMetadata is mergeLabels for metadata.
func mergeMetadata(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if key == "" || utf8.RuneCountInString(key) > maxMetadataLength {
			// Source: the document: Metadata's description.
			return nil, badRequest("metadata key %q must have between 1 and %d characters", key, maxMetadataLength)
		}
	}
	return mergeStrings(current, change, "metadata", maxMetadataLength)
}

func mergeStrings(current map[string]string, change map[string]any, what string, maxLength int) (map[string]string, *apiError) {
	merged := maps.Clone(current)
	if merged == nil {
		merged = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(change)) {
		switch value := change[key].(type) {
		case nil:
			delete(merged, key)
		case string:
			if utf8.RuneCountInString(value) > maxLength {
				// Source: the document: Labels' and Metadata's descriptions.
				return nil, badRequest("%s %q: the value must not exceed %d characters", what, key, maxLength)
			}
			merged[key] = value
		default:
			// Source: the document: Labels' and Metadata's descriptions have a pattern for values.
			return nil, badRequest("%s %q: the value must be a string", what, key)
		}
	}
	return merged, nil
}

// The documented patterns of label keys and values, without their length look-ahead (Go
// has none): obeys checks the length.
var (
	labelKeyRule   = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	labelValueRule = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])*$`)
)

// checkLabelRules checks the labels of a decoded body, for WithStrictLabels. A null value
// removes a label, so that only its key is checked.
func checkLabelRules(body any) *apiError {
	object, _ := body.(map[string]any)
	labels, _ := object["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !obeys(key, labelKeyRule) {
			// Source: the document: Labels' description.
			return badRequest("label key %q does not match %s", key, labelKeyRule)
		}
		if value, isText := labels[key].(string); isText && !obeys(value, labelValueRule) {
			// Source: the document: Labels' description.
			return badRequest("label %q: the value %q does not match %s", key, value, labelValueRule)
		}
	}
	return nil
}

func obeys(text string, rule *regexp.Regexp) bool {
	return utf8.RuneCountInString(text) <= maxLabelLength && rule.MatchString(text)
}

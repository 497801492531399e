// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
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

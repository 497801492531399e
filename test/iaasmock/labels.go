// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
)

// The API documents more rules for labels than it checks in practice: slashes
// in keys, say, work on servers. These are the ones that hold.
const (
	maxLabelLength      = 63
	maxMetadataLength   = 255
	reservedLabelPrefix = "stackit-"
)

// mergeLabels returns a new map: current with change applied. A null value
// takes a label away.
func mergeLabels(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if key == "" || utf8.RuneCountInString(key) > maxLabelLength {
			return nil, badRequest("label key %q must have between 1 and %d characters", key, maxLabelLength)
		}
		if strings.HasPrefix(key, reservedLabelPrefix) {
			return nil, badRequest("label key %q uses the reserved prefix %q", key, reservedLabelPrefix)
		}
	}
	return mergeStrings(current, change, "label", maxLabelLength)
}

// mergeMetadata is mergeLabels for metadata.
func mergeMetadata(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if key == "" || utf8.RuneCountInString(key) > maxMetadataLength {
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
				return nil, badRequest("%s %q: the value must not exceed %d characters", what, key, maxLength)
			}
			merged[key] = value
		default:
			return nil, badRequest("%s %q: the value must be a string", what, key)
		}
	}
	return merged, nil
}

// selector reads label_selector. Every form clients are known to send is in the
// grammar of Kubernetes.
func (r *request) selector() (labels.Selector, *apiError) {
	selector, err := labels.Parse(r.URL.Query().Get("label_selector"))
	if err != nil {
		return nil, badRequest("invalid label_selector: %v", err)
	}
	return selector, nil
}

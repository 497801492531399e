// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

func one(body []byte) api.Server {
	var s api.Server
	_ = json.Unmarshal(body, &s) // shows in what is missing then
	return s
}

func sentLabels(e guard.Exchange) map[string]string {
	var sent struct{ Labels map[string]*string }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has no labels
	if sent.Labels == nil {
		return nil
	}
	labels := map[string]string{}
	for key, value := range sent.Labels {
		if value != nil {
			labels[key] = *value
		} else {
			labels[key] = ""
		}
	}
	return labels
}

// selected returns the labels that a selector asks for, and false for a selector of other
// forms than the driver's.
func selected(selector string) (map[string]string, bool) {
	labels := map[string]string{}
	if selector == "" {
		return labels, true
	}
	for part := range strings.SplitSeq(selector, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || strings.HasSuffix(key, "!") {
			return nil, false
		}
		labels[key] = strings.TrimPrefix(value, "=")
	}
	return labels, true
}

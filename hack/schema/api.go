// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// apiInfo names the source of the facts. Change source and date with the document.
var apiInfo = node{
	"title": "STACKIT IaaS API, facts only: no descriptions, no examples", "version": "2",
	"license":     node{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
	"x-copyright": "Schwarz IT KG",
	"x-source":    "https://github.com/stackitcloud/stackit-api-specifications/blob/b7d1b61/services/iaas/v2/iaas.json",
	"x-date":      "2026-11-24",
}

var (
	// prose are the keywords of descriptions.
	prose = []string{"description", "summary", "example", "examples", "title", "tags", "externalDocs"}
	// namedParts are the keywords of objects whose keys are names, such as a property "description".
	namedParts = []string{"paths", "parameters", "responses", "schemas", "properties", "content"}
)

// apiFacts returns the parts of an OpenAPI document that a program can check: operations,
// parameters, schemas and statuses, but no descriptions. Keys are sorted, and each operation and
// schema is on its own line, so that a small change of the API changes only a few lines.
func apiFacts(document []byte) ([]byte, error) {
	var whole struct {
		OpenAPI    any                                          `json:"openapi"`
		Paths      any                                          `json:"paths"`
		Components struct{ Parameters, Responses, Schemas any } `json:"components"`
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // 1<<63-1 is no float64
	if err := decoder.Decode(&whole); err != nil {
		return nil, err
	}
	parts := whole.Components
	facts := withoutProse(node{"openapi": whole.OpenAPI, "paths": whole.Paths, "components": node{
		"parameters": parts.Parameters, "responses": parts.Responses, "schemas": parts.Schemas,
	}}, false)
	facts.(node)["info"] = apiInfo
	text, err := lines(facts, 3)
	return []byte(text + "\n"), err
}

// withoutProse removes the descriptions from a part of the document, and STACKIT's own keywords
// except the keyword for values of enumerations. The keys of a named part are no keywords.
func withoutProse(part any, isNamed bool) any {
	switch part := part.(type) {
	case node:
		for key, value := range part {
			isExtension := strings.HasPrefix(key, "x-") && key != "x-extensible-enum"
			if !isNamed && (isExtension || slices.Contains(prose, key)) {
				delete(part, key)
				continue
			}
			part[key] = withoutProse(value, !isNamed && slices.Contains(namedParts, key))
		}
	case []any:
		for i, item := range part {
			part[i] = withoutProse(item, false)
		}
	}
	return part
}

// lines encodes a value. Objects down to the given depth get one line for each key.
func lines(value any, depth int) (string, error) {
	object, isObject := value.(node)
	if !isObject || depth == 0 {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(value)
		return strings.TrimSuffix(text.String(), "\n"), err
	}
	var members []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		member, err := lines(object[key], depth-1)
		if err != nil {
			return "", err
		}
		members = append(members, `"`+key+`":`+member)
	}
	return "{\n" + strings.Join(members, ",\n") + "\n}", nil
}

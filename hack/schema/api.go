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

// apiFacts returns the parts of an OpenAPI document that a program can check: operations,
// parameters, schemas and statuses, but no descriptions. Keys are sorted, and each operation and
// schema is on its own line, so that a small change of the API changes only a few lines.
func apiFacts(document []byte) ([]byte, error) {
	var whole node
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // 1<<63-1 is no float64
	if err := decoder.Decode(&whole); err != nil {
		return nil, err
	}
	facts := node{"openapi": whole["openapi"], "info": apiInfo, "paths": named(whole["paths"]), "components": node{}}
	components, _ := whole["components"].(node)
	for _, kind := range []string{"parameters", "responses", "schemas"} {
		facts["components"].(node)[kind] = named(components[kind])
	}
	var text bytes.Buffer
	err := writeLines(&text, facts, 3)
	return append(text.Bytes(), '\n'), err
}

// factsOf removes the descriptions from a part of the document, and STACKIT's own keywords except
// the keyword for values of enumerations.
func factsOf(part any) any {
	switch part := part.(type) {
	case node:
		kept := node{}
		for keyword, value := range part {
			switch {
			case slices.Contains([]string{"description", "summary", "example", "examples", "title", "tags", "externalDocs"},
				keyword):
			case strings.HasPrefix(keyword, "x-") && keyword != "x-extensible-enum":
			case keyword == "properties" || keyword == "responses" || keyword == "content":
				kept[keyword] = named(value)
			default:
				kept[keyword] = factsOf(value)
			}
		}
		return kept
	case []any:
		kept := []any{}
		for _, item := range part {
			kept = append(kept, factsOf(item))
		}
		return kept
	}
	return part
}

// named is factsOf for an object whose keys are names, such as a property "description".
func named(object any) any {
	parts, isObject := object.(node)
	if !isObject {
		return object
	}
	kept := node{}
	for name, part := range parts {
		kept[name] = factsOf(part)
	}
	return kept
}

// writeLines writes a value. Objects down to the given depth get one line for each key.
func writeLines(to *bytes.Buffer, value any, depth int) error {
	object, isObject := value.(node)
	if !isObject || depth == 0 {
		return writeCompact(to, value)
	}
	to.WriteByte('{')
	separator := "\n"
	for _, key := range slices.Sorted(maps.Keys(object)) {
		to.WriteString(separator)
		separator = ",\n"
		if err := writeCompact(to, key); err != nil {
			return err
		}
		to.WriteByte(':')
		if err := writeLines(to, object[key], depth-1); err != nil {
			return err
		}
	}
	to.WriteString("\n}")
	return nil
}

func writeCompact(to *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	to.Truncate(to.Len() - 1) // the line break
	return nil
}

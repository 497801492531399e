// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// unknownProperties returns the paths of properties in an answer that the schema does not
// have. The document allows additional properties nearly everywhere, but no client reads
// undocumented ones: they are spelling mistakes.
func unknownProperties(schema *openapi3.SchemaRef, body []byte) []string {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return []string{err.Error()}
	}
	return unknownIn("", []*openapi3.SchemaRef{schema}, value)
}

func unknownIn(path string, schemas []*openapi3.SchemaRef, value any) []string {
	schemas = flatten(schemas)
	var unknown []string
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			unknown = append(unknown, unknownIn(fmt.Sprintf("%s/%d", path, i), itemsOf(schemas), item)...)
		}
	case map[string]any:
		if isFree(schemas) {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := propertyOf(schemas, name)
			if len(below) == 0 {
				unknown = append(unknown, path+"/"+name)
				continue
			}
			unknown = append(unknown, unknownIn(path+"/"+name, below, value[name])...)
		}
	}
	return unknown
}

// flatten returns the schemas and the schemas in their allOf, oneOf and anyOf.
func flatten(schemas []*openapi3.SchemaRef) []*openapi3.SchemaRef {
	var flat []*openapi3.SchemaRef
	for _, schema := range schemas {
		flat = append(flat, schema)
		for _, parts := range []openapi3.SchemaRefs{schema.Value.AllOf, schema.Value.OneOf, schema.Value.AnyOf} {
			flat = append(flat, flatten(parts)...)
		}
	}
	return flat
}

func itemsOf(schemas []*openapi3.SchemaRef) []*openapi3.SchemaRef {
	var items []*openapi3.SchemaRef
	for _, schema := range schemas {
		if schema.Value.Items != nil {
			items = append(items, schema.Value.Items)
		}
	}
	return items
}

func propertyOf(schemas []*openapi3.SchemaRef, name string) []*openapi3.SchemaRef {
	var properties []*openapi3.SchemaRef
	for _, schema := range schemas {
		if property := schema.Value.Properties[name]; property != nil {
			properties = append(properties, property)
		}
	}
	return properties
}

// isFree reports whether any property is allowed: labels, for example, have no documented
// properties.
func isFree(schemas []*openapi3.SchemaRef) bool {
	return !slices.ContainsFunc(schemas, func(s *openapi3.SchemaRef) bool { return len(s.Value.Properties) > 0 })
}

// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package schema generates the JSON Schema of a MachineClass from the driver's types, their
// comments and the limits in package validation. It also extracts the facts of the official API
// document. Its tests compare the files with these; with -update they write them.
package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// The package whose types and comments are read, relative to this folder, where tests run.
const (
	module = "github.com/stackitcloud/machine-controller-manager-provider-stackit/hack/schema"
	types  = "../../pkg/provider/apis"
)

// node is an object of a JSON document.
type node = map[string]any

// machineClass returns the schema of a MachineClass with a providerSpec of the driver's, in the
// version of JSON Schema that editors support best.
func machineClass() ([]byte, error) {
	spec, err := providerSpec()
	if err != nil {
		return nil, err
	}
	text := node{"type": "string", "minLength": 1}
	secretRef := func(description string) node {
		return node{"type": []any{"object", "null"}, "description": description, "required": []any{"name", "namespace"},
			"additionalProperties": false, "properties": node{"name": text, "namespace": text}}
	}
	has := func(name string) node {
		return node{"required": []any{name}, "properties": node{name: node{"type": "object"}}}
	}
	encoded, err := json.MarshalIndent(node{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "MachineClass", "type": "object",
		"description": "A MachineClass of machine-controller-manager for STACKIT.",
		"required":    []any{"apiVersion", "kind", "metadata", "providerSpec"}, "additionalProperties": false,
		"anyOf": []any{has("secretRef"), has("credentialsSecretRef")},
		"properties": node{
			"apiVersion": node{"const": "machine.sapcloud.io/v1alpha1"},
			"kind":       node{"const": "MachineClass"},
			"metadata": node{"type": "object", "required": []any{"name"}, "properties": node{
				"name": node{"type": "string", "minLength": 1, "maxLength": validation.MaxLabel,
					"description": "It becomes a label of the servers."},
			}},
			"provider": node{"enum": []any{provider.StackitProviderName, "", nil},
				"description": "The driver's name, stackit, or empty."},
			"secretRef":            secretRef("The Secret with user data, credentials and defaults."),
			"credentialsSecretRef": secretRef("A second Secret; its keys take precedence."),
			"nodeTemplate": node{
				"type":        []any{"object", "null"},
				"description": "What a Node of the class will offer, for the cluster autoscaler to scale up from zero.",
			},
			"providerSpec": spec,
		},
	}, "", "  ")
	return append(encoded, '\n'), err
}

// providerSpec returns the schema of a providerSpec, with the types' comments as descriptions.
func providerSpec() (schema node, err error) {
	reflector := &jsonschema.Reflector{Anonymous: true, DoNotReference: true}
	if err := reflector.AddGoComments(module, types); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(reflector.Reflect(&apis.ProviderSpec{}))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &schema); err != nil {
		return nil, err
	}
	limits := validation.SpecLimits()
	complete(schema, "", limits)
	if len(limits) > 0 {
		return nil, fmt.Errorf("package validation has limits for no field of the providerSpec: %v", limits)
	}
	schema["required"] = []any{"machineType"}
	boot := schema["properties"].(node)["bootVolume"].(node)
	boot["if"] = node{"required": []any{"source"}, "properties": node{"source": node{ // an existing volume has its size
		"type": "object", "required": []any{"type"}, "properties": node{"type": node{"const": apis.SourceVolume}},
	}}}
	boot["else"] = node{"required": []any{"size"}, "properties": node{"size": node{"type": "integer"}}}
	return schema, nil
}

// complete adds limits to a schema and its children, and removes them from the map. Fields may be
// null, which means unset.
func complete(schema node, path string, limits map[string]validation.Limits) {
	delete(schema, "$schema")
	delete(schema, "required")
	properties, _ := schema["properties"].(node)
	for name, property := range properties {
		if below, isNode := property.(node); isNode {
			complete(below, strings.TrimPrefix(path+"."+name, "."), limits)
		}
	}
	if path == "metadata" {
		schema["additionalProperties"] = node{"type": []any{"string", "number", "boolean"}}
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if below, isNode := schema[part].(node); isNode {
			complete(below, path+"[]", limits)
		}
	}
	put(limits[path], schema)
	delete(limits, path)
	isItem := strings.HasSuffix(path, "[]") && path != "labels[]" // a label that is null is empty
	if path != "" && path != "machineType" && !isItem {
		schema["type"] = []any{schema["type"], "null"}
		if values, isLimited := schema["enum"].([]any); isLimited {
			schema["enum"] = append(values, nil)
		}
	}
}

// put adds limits to a schema.
func put(limit validation.Limits, schema node) {
	for name, value := range map[string]int{"maxLength": limit.MaxLength, "minimum": limit.Minimum,
		"maximum": limit.Maximum} {
		if value != 0 {
			schema[name] = value
		}
	}
	if limit.Pattern != nil {
		schema["pattern"] = limit.Pattern.String()
		if limit.Unset {
			schema["pattern"] = "^$|" + limit.Pattern.String()
		}
	}
	if limit.MaxItems > 0 && schema["type"] == "array" {
		schema["maxItems"] = limit.MaxItems
	} else if limit.MaxItems > 0 {
		schema["maxProperties"] = limit.MaxItems
	}
	if limit.Keys != nil {
		keys := node{}
		put(*limit.Keys, keys)
		schema["propertyNames"] = keys
	}
	if len(limit.Values) > 0 {
		values := []any{}
		for _, value := range limit.Values {
			values = append(values, value)
		}
		if limit.Unset {
			values = append(values, "")
		}
		schema["enum"] = values
	}
}
